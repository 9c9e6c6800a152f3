"""Cases written by hand, each in a line: one that has an anomaly, and its nearest neighbour that has not."""

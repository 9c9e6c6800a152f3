"""A deterministic ZooKeeper: a tree of nodes, sessions in virtual time, and the faults of both."""

"""A broker's session with a real ZooKeeper."""

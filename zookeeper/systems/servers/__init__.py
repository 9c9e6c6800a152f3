"""ZooKeeper: the server on its hosts, what its ensemble says of itself, and our own session with it."""

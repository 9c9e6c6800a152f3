"""Common parts of every system that we deploy: one process on each host, reached over SSH."""

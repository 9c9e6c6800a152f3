"""What every system that we deploy has in common: one process on each host, reached over SSH."""

"""Commands about this machine: what it can do, its fleets, what is installed."""

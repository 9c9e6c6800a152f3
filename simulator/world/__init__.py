"""A cluster in virtual time: nodes, clock, network and disks."""

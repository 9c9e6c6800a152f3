"""A cluster in virtual time: nodes, clock, network, disks and clients."""

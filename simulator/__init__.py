"""The whole cluster in one thread of virtual time: the broker's own core, simulated network, disks and
clients."""

"""Faults of the network: partitions, packets, messages, connections."""

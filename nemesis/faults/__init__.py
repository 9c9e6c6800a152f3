"""Faults of a cluster: network, processes, power, growth."""

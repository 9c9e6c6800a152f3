"""Faults of ZooKeeper."""

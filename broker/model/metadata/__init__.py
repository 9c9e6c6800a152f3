"""Metadata of the cluster: its records, its image, ZooKeeper's nodes."""

"""Replication of partitions: leaders, followers and their logs."""

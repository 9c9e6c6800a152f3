"""Faults of disks: power cuts, page caches, errors, space, bytes."""

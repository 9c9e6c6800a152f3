"""Faults that follow the cluster's state: what has just become true draws the next one."""

"""A system, a fleet, a fault, a workload and a check for Wrackline."""

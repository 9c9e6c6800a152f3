"""Targets of faults: roles, and who has them when the fault begins."""

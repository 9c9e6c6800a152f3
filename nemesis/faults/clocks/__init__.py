"""Faults of clocks: jump, strobe, drift."""

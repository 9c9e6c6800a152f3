"""The part of a run that touches hosts: set-up, load, faults, drain."""

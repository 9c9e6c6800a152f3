"""The nemesis: faults, their targets and their schedule."""

"""What goes wrong: faults, their targets and their schedule."""

"""Output of a run: a timeline, a run directory, rows of faults."""

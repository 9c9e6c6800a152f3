"""Drills: what a cluster that nothing hinders must do within a time, asked for after the faults of a run."""

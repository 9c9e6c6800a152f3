"""The contents of a run, as values in bounded memory: its files, excerpts of its history, its faults, and
who led."""

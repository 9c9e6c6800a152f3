"""A run as it was written down: which files, which phases and faults, which rows of its history."""

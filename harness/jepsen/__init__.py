"""Histories in Jepsen's format as the columns that the exact checks and the searches read."""

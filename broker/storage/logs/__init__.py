"""Logs on disk: segments, indexes, recovery."""

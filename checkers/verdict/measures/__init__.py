"""Counts and measures of a run."""

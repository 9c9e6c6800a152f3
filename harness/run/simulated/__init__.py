"""Runs of specifications in virtual time."""

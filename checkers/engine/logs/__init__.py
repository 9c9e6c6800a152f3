"""Logs: what ranges of offsets and places of values show."""

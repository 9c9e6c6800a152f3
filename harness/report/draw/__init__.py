"""Drawings of the report: each takes values that were read and gives one drawing, and reads no file."""

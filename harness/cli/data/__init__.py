"""Commands for histories and runs as data."""

"""Nights: many runs from one file, what follows from a violation, and a journal to go on from."""

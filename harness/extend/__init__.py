"""Tools for those who add parts of their own: lists, skeletons, rehearsals, and runs from Python."""

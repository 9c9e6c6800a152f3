"""For those who add parts of their own: what there is, skeletons, rehearsals, and runs from Python."""

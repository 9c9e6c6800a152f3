"""Commands that list what there is, and write parts of one's own."""

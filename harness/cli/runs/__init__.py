"""Commands that make runs, and those that say beforehand what a run would do."""

"""Entry points of the parts of a run, and the types of their settings."""

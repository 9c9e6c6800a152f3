"""The conditions that a run must meet so that a pass means something."""

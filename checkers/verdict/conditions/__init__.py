"""What a run must have done so that a pass means something."""

"""What is counted in a run."""

"""What a part of a run is found by and set by: the doors for parts from elsewhere, the types of settings."""

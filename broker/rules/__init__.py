"""The protocol's decisions, one small pure function each, gathered in classes a profile combines."""

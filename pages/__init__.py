"""The parts of every page: base template, look, script, and the parts of drawings."""

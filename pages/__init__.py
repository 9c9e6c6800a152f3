"""What every page is made with: base template, look, script, and the parts of drawings."""

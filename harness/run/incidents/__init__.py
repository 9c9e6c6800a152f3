"""An incident's evidence in the lines of the nodes' logs."""

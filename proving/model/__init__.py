"""Models of a correct log, register and queue under load, and their runs as histories."""

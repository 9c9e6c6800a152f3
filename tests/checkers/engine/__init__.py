"""How facts meet."""

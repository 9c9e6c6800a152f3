"""A broker's answers to clients: one file a request."""

"""What a broker answers clients: one file a request."""

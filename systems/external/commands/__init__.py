"""Commands of the user that act on brokers which are not ours."""

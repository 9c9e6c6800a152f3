"""The search for an order of operations that a model allows."""

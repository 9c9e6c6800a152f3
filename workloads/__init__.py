"""What clients do: operations against the system, and the client wrappers that perform them."""

"""One schedule per defect: the shortest way to see the harm that it does (docs/protocol.md 4.2, 4.3)."""

"""The meaning of findings: contracts, the conditions of a pass, and the verdict."""

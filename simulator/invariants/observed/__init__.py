"""The observed state of a cluster, which the invariants are asked about."""

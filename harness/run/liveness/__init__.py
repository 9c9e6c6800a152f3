"""Promises of liveness, and whether the cluster keeps them."""

"""Workloads: operations of clients against the system, and the client wrappers that perform them."""

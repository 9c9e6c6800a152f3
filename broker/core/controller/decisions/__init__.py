"""Decisions of the controller on requests that may change the cluster."""

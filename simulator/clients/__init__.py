"""Clients of a simulated cluster, and the history that they write."""

"""Connections of a node: accepted ones, and those to other nodes."""

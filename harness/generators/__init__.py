"""Streams of operations at an asked rate."""

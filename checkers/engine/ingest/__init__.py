"""Ingest turns events into facts."""

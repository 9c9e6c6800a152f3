"""Histories on disk and in object storage."""

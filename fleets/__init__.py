"""Hosts we can log in to, and their power switch."""

"""Registers and queues: values, then intervals of time."""

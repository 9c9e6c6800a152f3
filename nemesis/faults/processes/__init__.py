"""Faults of processes and hosts: kill, pause, restart, pressure, freeze."""

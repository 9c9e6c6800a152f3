"""Guided schedules: steps that follow the cluster's state instead of the clock."""

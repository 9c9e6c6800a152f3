"""Tests of faults that follow the state of the cluster."""

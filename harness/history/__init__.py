"""The one record format: every operation and every fault of a run, on one clock."""

"""Exact linearizability checks as pure algorithms: numpy alone, no Spark."""

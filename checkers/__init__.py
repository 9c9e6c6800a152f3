"""The judge: Spark tables, anomaly queries, contracts and verdicts."""

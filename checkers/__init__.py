"""The judge: facts of a history, anomalies, contracts and verdicts (docs/checkers.md)."""

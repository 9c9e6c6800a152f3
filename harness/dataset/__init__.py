"""Runs, findings, metrics and faults of all nights as one dataset of Parquet files, for questions in SQL."""

from wrackline.harness.dataset.tables import TABLES
from wrackline.harness.dataset.writer import Written, write_dataset

__all__ = ["TABLES", "Written", "write_dataset"]

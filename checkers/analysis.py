"""From run directories to verdicts: one Spark job for any number of runs.

``findings.parquet``, ``verdict.json`` and ``metrics.json`` appear in each run's directory; with a contract forced
on the run, its verdict goes to ``verdict.<contract>.json`` and its own stays as it was.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from checkers.evidence import finished
from checkers.findings import EXIT_CODES, FINDINGS, Verdict
from checkers.loss import unproven
from checkers.order import steps
from checkers.places import JUMP, places
from checkers.registry import Evidence, checks, suspect
from checkers.runs import AnalysisError, Place, Run, load_run
from checkers.tables import Tables, keep

FINDINGS_FILE = "findings.parquet"
BATCH_ROWS = 16_384


@dataclass
class Found:
    """What was found in one run, counted."""

    counts: dict[tuple[str, Place | None], int] = field(default_factory=dict)
    """(anomaly, partition) -> findings."""
    unproven_read: int = 0
    unproven_unseen: int = 0


def evidence_of(tables: Tables) -> Evidence:
    """The places and steps that some check wants to see; everything else of the histories is read once, here."""
    unsteady = keep(steps(tables))
    jumps = unsteady.filter("told > offset")
    every = places(tables, jumps)
    return Evidence(tables, keep(every.filter(suspect() | unproven())), unsteady)


def all_findings(evidence: Evidence) -> DataFrame:
    """Findings of every check, in the common schema plus ``run``."""
    found = [one.find(evidence) for one in checks()]
    return finished(reduce(DataFrame.unionByName, found), evidence.tables)

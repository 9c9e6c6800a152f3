"""Log directories (docs/anomalies.md section 2): a replica lies in one of those that its node has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson
import pyarrow as pa

from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.explained_by import By, ExplainedBy, Spelt
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk
from wrackline.checkers.verdict.anomaly import Family, Promise

_COLUMNS = ("index", "node", "topic", "partition", "extra")


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Iterator[Finding]:
    """Goes through the replicas' own logs of one run; each has its log directories in all its rows."""
    replicas = set()
    for batch in batches:
        for row in batch.select(_COLUMNS).to_pylist():
            log_dirs = orjson.loads(row["extra"] or b"{}").get("log_dirs", ())
            log = about.logs.get((row["topic"], row["partition"]))
            if len(log_dirs) < 2 or log is None or (row["node"], log.number) in replicas:
                continue
            replicas.add((row["node"], log.number))
            yield Finding(
                anomaly="duplicate-log",
                log=log,
                operations=[row["index"]],
                where=row["node"],
                sentence=f"{row['node']} has {log} in {len(log_dirs)} of its log directories: "
                f"{' and '.join(log_dirs)}",
                since_ns=0,
            )


found_by(
    Walk(name="log directories", needs=frozenset({"replica"}), reads=frozenset({"replica"}), find=find),
    Family.INTEGRITY,
    {
        "duplicate-log": WalkAnomaly(
            "a node has one partition in several of its log directories",
            Promise.ONE_LOG_DIR,
            explained_by=ExplainedBy(By.FACTS, spelt=Spelt.WHOLE),
            rests_on_replicas=True,
        )
    },
)

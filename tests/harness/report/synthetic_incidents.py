"""Incidents of the made-up run: one that lost records, with a stale read as evidence; one that diverged; and
stale reads elsewhere that the contract allows. Two of the lost writes are of an incident that is not told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.harness.report.synthetic_run import edited, write_findings
from wrackline.checkers.explain.step import explain

LOSS, DIVERGENCE, ALLOWED = "i-0123456789", "i-1123456789", "i-2123456789"
STALE = "a reader was given less than others had been given"
INCIDENT: dict[str, Any] = {
    "id": LOSS,
    "meaning": "violation",
    "sentence": (
        "40 acknowledged records of log-1 (between offsets 0 and 9,999) are gone since n3 became leader at "
        "16.5 s"
    ),
    "gone": {
        "what": "40 acknowledged records of log-1 (between offsets 0 and 9,999) are gone",
        "also": "",
    },
    "mechanism": ["n2 led log-1 until 16.5 s, in leader epoch 1.", "n3 cut its log back to offset 0."],
    "topic": "log",
    "partition": 1,
    "first_offset": 0,
    "last_offset": 9_999,
    "at_ns": 16_500_000_000,
    "anomalies": [
        {"anomaly": "lost-write", "meaning": "violation", "count": 40},
        {"anomaly": "vanished-read", "meaning": "violation", "count": 3},
        {"anomaly": "inconsistent-offset", "meaning": "violation", "count": 42},
        {"anomaly": "stale-read", "meaning": "allowed", "count": 1},
    ],
    "faults": ["f1"],
    "operations": [1, 2],
    "lines": [
        {
            "file": "nodes/n3/broker.log",
            "number": 7,
            "at_ns": 13_055_000_000,
            "text": "Truncating to 0",
            "words": "n3 cut log-1 to 0",
        }
    ],
    "truncations": [
        {"node": "n3", "at_ns": 13_055_000_000, "to": 0, "was": 10_000},
        {"node": "n1", "at_ns": 17_000_000_000, "to": 0, "was": 12_000},
    ],
    "leader_before": {"leader": "n2", "since_ns": 0, "replicas": ["n1", "n2", "n3"]},
    "leader_after": {"leader": "n3", "since_ns": 16_500_000_000, "replicas": ["n1", "n2", "n3"]},
    "moments": [
        {"at_ns": 13_055_000_000, "node": "n3", "kind": "cut", "words": "n3 cut log-1 from 10,000 to 0"},
        {"at_ns": 16_400_000_000, "node": "", "kind": "vacant", "words": "nobody leads log-1"},
        {"at_ns": 16_500_000_000, "node": "n3", "kind": "leader", "words": "n3 leads log-1"},
    ],
}


def add_incidents(run_dir: Path) -> None:
    """To findings, verdict and explanations of ``synthetic_run.write_run``."""
    found = pq.read_table(run_dir / "findings.parquet").to_pylist()
    for partition, offset in ((1, 5), (0, 3), (0, 4)):
        found.append(
            found[0]
            | {"anomaly": "stale-read", "partition": partition, "offset": offset, "explanation": f"{STALE}."}
        )
    write_findings(run_dir, found)
    rows: dict[tuple[str, int], list[int]] = {}
    for at, one in enumerate(found):
        rows.setdefault((one["anomaly"], one["partition"]), []).append(at)
    loss = json.loads(json.dumps(INCIDENT))
    for one in loss["anomalies"]:
        own = rows[one["anomaly"], 1]
        one["rows"] = [[own[0], own[0] + one["count"] - 1]]
    others = [
        _incident(DIVERGENCE, "violation", "two logs differ", 2, "replica-divergence", rows),
        _incident(ALLOWED, "allowed", STALE, 0, "stale-read", rows),
    ]
    with edited(run_dir) as verdict:
        verdict |= {"incidents": [loss, *others], "incident_counts": {"violation": 21, "allowed": 1}}
        [stale] = [row for row in verdict["anomalies"] if row["anomaly"] == "stale-read"]
        stale |= {"count": 3, "in_violations": 1}
    explain(run_dir)


def _incident(
    name: str,
    meaning: str,
    sentence: str,
    partition: int,
    anomaly: str,
    rows: dict[tuple[str, int], list[int]],
) -> dict[str, Any]:
    own = rows[anomaly, partition]
    seen = {"anomaly": anomaly, "meaning": meaning, "count": len(own), "rows": [[own[0], own[-1]]]}
    return {
        "id": name, "meaning": meaning, "sentence": sentence, "topic": "log", "partition": partition,
        "mechanism": [], "anomalies": [seen], "faults": [], "operations": [],
    }  # fmt: skip

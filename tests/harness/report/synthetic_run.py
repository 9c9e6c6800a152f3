"""A made-up run directory that looks like a real one: a few thousand operations, three faults, records lost
in a power cut, and replicas that diverge. Everything is derived from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.harness.report.synthetic_history import (
    Draft,
    final_logs,
    record_control,
    record_ends,
    record_final_reads,
    record_polls,
    record_sends,
)
from tests.harness.report.synthetic_setting import (
    CUT_AT,
    FAULTS,
    HEADLINE,
    INFO,
    LOST,
    MS,
    NODES,
    REASONS,
    TEST_ID,
    S,
)
from wrackline.checkers.analysis import analyze
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.verdict.seal import SEAL
from wrackline.history.model import Event, Record
from wrackline.history.store.schema import METADATA_KEY, SCHEMA

__all__ = [
    "CUT_AT", "FAULTS", "INFO", "LOST", "MS", "NODES", "TEST_ID", "S", "edited", "write_findings",
    "write_history", "write_run",
]  # fmt: skip


def write_run(run_dir: Path, *, seed: int = 7, rate: int = 100) -> Path:
    """A run that ends in ``violation``: 42 records of log-1 lost, one offset of log-2 diverging. The judge
    judges it; the incidents that it finds are left out, and its sentences are ours."""
    run_dir.mkdir(parents=True, exist_ok=True)
    dice = random.Random(seed)
    draft = Draft()
    record_control(draft)
    record_sends(draft, dice, rate)
    lost = [record for record in draft.logs[1] if _acked_before_cut(draft, record)][-LOST:]
    first_lost = lost[0].offset
    final = final_logs(draft, first_lost)
    record_polls(draft, dice)
    record_ends(draft, dice)
    record_final_reads(draft, final)
    events = [
        replace(event, index=index)
        for index, event in enumerate(sorted(draft.events, key=lambda e: e.time_ns))
    ]
    write_history(run_dir, events)
    (run_dir / "run.json").write_bytes(INFO.to_json())
    _texts(run_dir)
    analyze([run_dir], engine="local")
    with edited(run_dir) as verdict:
        for left_out in ("incidents", "incident_counts", SEAL):
            del verdict[left_out]
        [duplicate] = [row for row in verdict["anomalies"] if row["anomaly"] == "duplicate"]
        duplicate |= {"meaning": "n/a", "why": "idempotence is off"}
        verdict |= {"headline": HEADLINE, "reasons": REASONS, "faults": FAULTS}
    return run_dir


@contextmanager
def edited(run_dir: Path, file: str = "verdict.json") -> Iterator[dict[str, Any]]:
    """The content of a JSON file of a run, to be changed."""
    content = json.loads((run_dir / file).read_text())
    yield content
    (run_dir / file).write_text(json.dumps(content))


def write_history(run_dir: Path, events: list[Event]) -> None:
    rows = []
    for event in events:
        row = asdict(event) | {"test_id": TEST_ID, "type": event.type.value}
        row["records"] = [record._asdict() for record in event.records]
        row["extra"] = None if event.extra is None else json.dumps(event.extra)
        rows.append(row)
    schema = SCHEMA.with_metadata({METADATA_KEY: INFO.to_json()})
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema), run_dir / "history.parquet", row_group_size=2_000
    )


def write_findings(run_dir: Path, findings: list[dict[str, Any]]) -> None:
    """Other findings for a run; ``explain`` makes explanations of them."""
    pq.write_table(pa.Table.from_pylist(findings, schema=FINDINGS), run_dir / "findings.parquet")


def _acked_before_cut(draft: Draft, record: Record) -> bool:
    ack = draft.acks.get(record.value)
    return ack is not None and ack.time_ns < CUT_AT


def _texts(run_dir: Path) -> None:
    (run_dir / "spec.yaml").write_text(
        "name: acks all, power cut of the leader\nworkload: {log: {topics: 1, partitions: 3, rate: 100}}\n"
        "nemesis:\n  - {fault: partition-isolate, target: leader(log-0), at: 12s, for: 6s}\n"
        "  - {fault: kill, target: isr-last, at: 24s, for: 3s}\n  - {fault: power-cut, target: "
        "leader(log-1), at: 36s}\n"
    )
    (run_dir / "plan.json").write_text(json.dumps({"seed": INFO.seed, "faults": FAULTS}, indent=1))
    for node_id, host in NODES.items():
        folder = run_dir / "nodes" / host
        folder.mkdir(parents=True, exist_ok=True)
        config = f'node_id = {node_id}\nrole = "broker"\nhost = "198.18.0.1{node_id}"\n'
        config += 'port = 9092\nprofile = "kip966"\n'
        (folder / "effective-config.toml").write_text(config)

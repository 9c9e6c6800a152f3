"""Nights of runs that are made up: verdicts and figures are asked for, everything else is the sample's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from wrackline.checkers.verdict.seal import SEAL

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "results/sample"
FIRST = datetime(2026, 11, 1, 1, tzinfo=UTC)


def run(
    folder: Path,
    began: datetime,
    *,
    name: str = "acks-all",
    verdict: str = "pass",
    anomalies: tuple[str, ...] = (),
    system: str = "apache-kafka",
    version: str = "4.0.0",
    seed: int = 7,
    p99_ms: float = 40.0,
    acked: int = 1_800,
    guided: str = "",
    defects: tuple[str, ...] = (),
    must_violate: bool = False,
) -> Path:
    """A judged run in a folder below ``folder``."""
    made = folder / f"{began:%Y%m%dT%H%M%SZ}-{name}-{seed:04x}"
    made.mkdir(parents=True)
    info = {
        "test_id": made.name,
        "name": name,
        "seed": seed,
        "started_at": began.isoformat(),
        "system": system,
        "system_kind": system,
        "system_version": version,
        "workload": "log",
        "acks": "all",
        "plan": {"duration_s": 20.0, "guided": guided},
        "defects": defects,
    }
    (made / "run.json").write_text(json.dumps(info))
    told: dict[str, Any] = json.loads((SAMPLE / "verdict.json").read_text())
    found = [{"anomaly": one, "meaning": "violation", "count": 3, "why": "forbidden"} for one in anomalies]
    for of_the_sample in ("incidents", "incident_counts", SEAL):  # without them the anomalies are the causes
        told.pop(of_the_sample)
    told |= {"verdict": verdict, "headline": f"{verdict} of {name}", "anomalies": found}
    told["counts"]["acked_records"] = acked
    (made / "verdict.json").write_text(json.dumps(told))
    metrics = json.loads((SAMPLE / "metrics.json").read_text())
    metrics["latency"]["before"]["p99_ms"] = p99_ms
    (made / "metrics.json").write_text(json.dumps(metrics))
    spec = yaml.safe_load((SAMPLE / "spec.yaml").read_text())
    spec["contract"] |= {"verdict": "violation"} if must_violate else {}
    (made / "spec.yaml").write_text(yaml.safe_dump(spec))
    (made / "report.html").write_text("<!doctype html><title>a report</title><p id='a-lost-write'>here</p>")
    return made


def night(results: Path, number: int, runs: list[dict[str, Any]]) -> Path:
    """The night of a day. ``task`` of a run is what the night calls it, by default its name and seed."""
    began = FIRST + timedelta(days=number)
    folder = results / "nights" / f"nightly-{began:%Y%m%dT%H%M%SZ}"
    lines = []
    for at, asked in enumerate(runs):
        wanted = dict(asked)
        task = wanted.pop("task", None)
        made = run(folder / "runs", began + timedelta(minutes=at), **wanted)
        task = task or f"{wanted.get('name', 'acks-all')}.s{wanted.get('seed', 7)}"
        lines.append(json.dumps({"did": "made", "task": task, "run": made.name, "seconds": 1, "spent_s": at}))
    (folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder

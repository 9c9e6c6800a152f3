"""Stands in for the commands `run` and `analyze`, whose real runs take half a minute: what a night does with
them is what is tried here. `test_real_nights.py` has real ones."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import yaml


def make(spec: Path, results: Path) -> int:
    raw = yaml.safe_load(spec.read_text())
    name = spec.stem
    run = results / f"{time.time_ns()}-{raw['name']}"
    print(f"run {run.name}  seed 0", flush=True)
    if "breaks" in name:
        print("no host could be made")
        return 4
    began = results.parent / "began"
    with began.open("a") as file:
        file.write(f"{name}\n")
    time.sleep(float(raw["workload"]["duration_s"]))
    run.mkdir()
    (run / "history.wal").write_bytes(b"x")
    (run / "spec.yaml").write_text(spec.read_text())
    if reads := os.environ.get("STAND_IN_READS"):  # a file of the commit that is run
        (run / "bad").write_text((Path(os.environ["PYTHONPATH"]) / reads).read_text())
    print(f"recorded in {run}", flush=True)
    return 0


def judge(runs: list[Path]) -> int:
    for run in runs:
        raw = yaml.safe_load((run / "spec.yaml").read_text())
        if raw["name"] == "unjudged":
            print("its history is torn")
            return 2
        faults = [one["inject"]["fault"] for one in raw["nemesis"].get("schedule") or ()]
        bad = "pause" in faults or ((run / "bad").exists() and (run / "bad").read_text() == "True")
        verdict = {
            "verdict": "violation" if bad else "pass",
            "headline": f"{len(faults)} faults",
            "anomalies": [{"anomaly": "lost-write", "meaning": "violation", "count": 3}] if bad else [],
        }
        (run / "verdict.json").write_text(json.dumps(verdict))
    return 0


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command, *rest = sys.argv[1:]
    try:
        if command == "run":
            return make(Path(rest[0]), Path(rest[2]))
        return judge([Path(one) for one in rest[: rest.index("--master")]])
    except KeyboardInterrupt:
        print("healed, and removed")
        return 130


if __name__ == "__main__":
    sys.exit(main())

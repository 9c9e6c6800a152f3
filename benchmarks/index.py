"""How long the index of nights takes, and how large it is.

    python benchmarks/index.py                            # one night of 200 runs of 100,000 operations
    python benchmarks/index.py --nights 12 --runs 40 --operations 2000 --keep /tmp/nights

The nights are made up: verdicts and figures are drawn from a seed, around those of results/sample, and the
history is one that was made once and is linked into each run (so it is in the page cache after the first
read, as it is after a night that has just been judged). Everything that the index reads of a run is there:
specification, verdict, metrics, journal, history. Reports are empty files, since the index links to them and
does not read them. Measured are the first build, the next one without a change, and one after one more run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from upath import UPath

sys.path.insert(0, str(Path(__file__).parent / "checkers"))

from synthetic import TOPIC, write_history

from wrackline.checkers.verdict.seal import SEAL
from wrackline.harness.index.collect import gather, load
from wrackline.harness.index.runs import beside
from wrackline.harness.index.site import KEPT, Built, Reader, build
from wrackline.history.store.files import ROW_GROUP_ROWS, open_writer, put_info
from wrackline.history.store.schema import SCHEMA

SAMPLE = Path(__file__).parents[1] / "results/sample"
PARTITIONS = 16
SUITES = (
    "acks-all",
    "power-cut",
    "partition",
    "rolling-upgrade",
    "leader-kill",
    "disk-full",
    "clock-jump",
    "txn",
)
VERSIONS = ("4.0.0", "4.1.1", "4.4.0")


def history(folder: Path, operations: int) -> Path:
    """With latencies and leaders, which the makers of histories for the judge leave out."""
    info = write_history(folder, operations, partitions=PARTITIONS)
    path = folder / "history.parquet"
    table = pq.read_table(path)
    random_ = np.random.default_rng(1)
    took = (random_.lognormal(1.2, 0.9, len(table)) * 1e6).astype(np.int64)
    ended = pc.and_(pc.equal(table["type"], "ok"), pc.is_in(table["f"], pa.array(["send", "poll", "end"])))
    latency = pc.if_else(ended, pa.array(took), pa.scalar(None, pa.int64()))
    table = table.set_column(SCHEMA.get_field_index("latency_ns"), SCHEMA.field("latency_ns"), latency)
    asked = [_asked(at) for at in range(0, int(table["time_ns"][-1].as_py()), 200_000_000)]
    table = pa.concat_tables([table.cast(SCHEMA), pa.Table.from_pylist(asked, schema=SCHEMA)])
    table = table.take(pc.sort_indices(table["time_ns"]))
    table = table.set_column(1, SCHEMA.field("index"), pa.array(range(len(table)), pa.int64()))
    with open_writer(path) as writer:
        writer.write_table(table.cast(SCHEMA), row_group_size=ROW_GROUP_ROWS)
        put_info(writer, info)
    return path


def _asked(at_ns: int) -> dict[str, Any]:
    """What a broker answers about leaders, five times a second; they change every four seconds."""
    turn = at_ns // 4_000_000_000
    rows = [
        {"topic": TOPIC, "partition": p, "leader": (p + turn) % 3 + 1, "leader_epoch": turn, "isr": [1, 2, 3]}
        for p in range(PARTITIONS)
    ]
    extra = orjson.dumps({"partitions": rows}).decode()
    own = {"test_id": "", "index": 0, "time_ns": at_ns, "process": -2, "type": "info", "f": "cluster"}
    return {**dict.fromkeys(SCHEMA.names), **own, "extra": extra}


def night(results: Path, number: int, runs: int, made: Path, dice: random.Random) -> None:
    began = datetime(2026, 9, 1, 1, tzinfo=UTC) + timedelta(days=number)
    folder = results / "nights" / f"nightly-{began:%Y%m%dT%H%M%SZ}"
    (folder / "runs").mkdir(parents=True)
    (folder / "night.json").write_bytes(b"{}")
    with (folder / "journal.jsonl").open("wb") as journal:
        for at in range(runs):
            suite, seed = SUITES[at % len(SUITES)], at // len(SUITES) + 1
            run = _run(folder / "runs", suite, seed, began + timedelta(minutes=2 * at), number, made, dice)
            said = {
                "task": f"{suite}.s{seed}",
                "run": run.name,
                "seconds": 60.0,
                "did": "made",
                "spent_s": at,
            }
            journal.write(orjson.dumps(said) + b"\n")


def _run(
    runs: Path, suite: str, seed: int, began: datetime, night: int, made: Path, dice: random.Random
) -> Path:
    run = runs / f"{began:%Y%m%dT%H%M%SZ}-{suite}-{dice.randrange(1 << 16):04x}"
    run.mkdir()
    try:
        os.link(made, run / "history.parquet")
    except OSError:  # on another file system
        shutil.copy(made, run / "history.parquet")
    (run / "report.html").touch()
    shutil.copy(SAMPLE / "spec.yaml", run)
    version = VERSIONS[min(night * len(VERSIONS) // 12, len(VERSIONS) - 1)]
    slow = 1.6 if suite == "acks-all" and version == VERSIONS[-1] else 1.0
    info = {
        "test_id": run.name,
        "name": suite,
        "seed": seed,
        "started_at": began.isoformat(),
        "system": f"kafka-{version}",
        "system_kind": "apache-kafka",
        "system_version": version,
        "workload": "log",
        "acks": "all",
        "nodes": {"1": "n1", "2": "n2", "3": "n3"},
    }
    (run / "run.json").write_bytes(orjson.dumps(info))
    verdict = orjson.loads((SAMPLE / "verdict.json").read_bytes())
    del verdict[SEAL]  # it is that of the sample's own history
    bad = dice.random() < {"power-cut": 0.12, "txn": 0.05}.get(suite, 0.004)
    if not bad:
        verdict |= {"verdict": "inconclusive" if dice.random() < 0.02 else "pass"}
        verdict["headline"] = (
            "3 faults, 58,212 records acknowledged: none of the records is gone. acks-all was kept"
        )
        verdict["anomalies"] = [one for one in verdict["anomalies"] if one["meaning"] != "violation"]
        verdict |= {"incidents": [], "incident_counts": {}}
    counts = verdict["counts"]
    counts["acked_records"] = int(58_000 * dice.gauss(1, 0.02))
    (run / "verdict.json").write_bytes(orjson.dumps(verdict))
    metrics = orjson.loads((SAMPLE / "metrics.json").read_bytes())
    for phase in metrics["latency"].values():
        for name in phase:
            phase[name] = round((phase[name] or 1.0) * slow * dice.lognormvariate(0, 0.12), 3)
    metrics["longest_gap_ms"] = round(2_000 * dice.lognormvariate(0, 0.2), 3)
    metrics["seconds"] = metrics["seconds"] * 3  # as many as a run of three minutes has
    (run / "metrics.json").write_bytes(orjson.dumps(metrics))
    return run


def built(results: Path, site: Path) -> tuple[float, float, Built]:
    """As `wrackline site build` does it, without the script that reads histories."""
    began, busy = time.monotonic(), time.process_time()
    kept = load(site / KEPT)
    made = build(
        "benchmark",
        gather(UPath(results), kept),
        site,
        kept,
        link=beside(site),
        reader=Reader("", "-"),
        live=False,
    )
    return time.monotonic() - began, time.process_time() - busy, made


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--nights", type=int, default=1)
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--operations", type=int, default=100_000)
    options.add_argument("--keep", type=Path, help="a folder for the nights and their site, which stays")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-nights-", dir="/var/tmp") as temporary:
        results = given.keep or Path(temporary) / "results"
        made = history(Path(temporary) / "made", given.operations)
        dice = random.Random(7)
        for number in range(given.nights):
            night(results, number, given.runs, made, dice)
        rows, size = pq.ParquetFile(made).metadata.num_rows, made.stat().st_size
        print(f"{given.nights} x {given.runs} runs, each {rows:,} events in {size / 1e6:.1f} MB")
        site = results / "site"
        site.mkdir()
        for what in ("first build", "again, nothing new", "again, one more run"):
            if what.endswith("run"):
                last = sorted((results / "nights").iterdir())[-1]
                _run(last / "runs", SUITES[0], 1, datetime(2026, 11, 1, tzinfo=UTC), 11, made, dice)
            took, busy, said = built(results, site)
            print(
                f"{what}: {took:.1f} s, {busy:.1f} s of processor time; {said.written} pages written, "
                f"{said.bytes / 1e6:.1f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()

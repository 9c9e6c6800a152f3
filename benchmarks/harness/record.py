"""How many operations per second the harness records when the client costs nothing.

    python benchmarks/harness/record.py [--seconds 5] [--threads 4]

Every operation is two events (an invocation, then its completion with one record), each on disk before
``record`` returns; the Parquet file is written meanwhile. Goal: 20,000 operations per second.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from wrackline.history import Recorder
from wrackline.history.model import Event, Record, RunInfo, TopicInfo, Type, value_of

GOAL = 20_000


def run_info(name: str) -> RunInfo:
    return RunInfo(
        test_id=name,
        name=name,
        seed=0,
        started_at="1970-01-01T00:00:00Z",
        system="stub",
        workload="log",
        acks="all",
        idempotence=False,
        topics=(TopicInfo("log", 4, 3, 2),),
    )


def client(recorder: Recorder, process: int, until: float) -> None:
    counter = 0
    while time.monotonic() < until:
        value = value_of(process, counter)
        sent = (Record(counter % 4, -1, value),)
        recorder.record(Event(process, Type.INVOKE, "send", topic="log", partition=counter % 4, records=sent))
        acked = (Record(counter % 4, counter, value),)
        recorder.record(
            Event(process, Type.OK, "send", topic="log", partition=counter % 4, records=acked, latency_ns=1)
        )
        counter += 1


def measure(run_dir: Path, seconds: float, threads: int) -> tuple[float, float]:
    """(operations per second while recording, seconds that closing took)."""
    recorder = Recorder(run_dir, run_info("benchmark"))
    started = time.monotonic()
    clients = [
        threading.Thread(target=client, args=(recorder, process, started + seconds))
        for process in range(threads)
    ]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    rate = recorder.events / 2 / (time.monotonic() - started)
    closing = time.monotonic()
    recorder.close()
    return rate, time.monotonic() - closing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-record-") as folder:
        rate, closing = measure(Path(folder) / "run", asked.seconds, asked.threads)
        size = (Path(folder) / "run" / "history.parquet").stat().st_size
    print(f"recorded {rate:,.0f} operations/s with {asked.threads} threads (goal {GOAL:,})")
    print(
        f"closing took {closing:.2f} s; {size / 1e6:.1f} MB of Parquet for {rate * asked.seconds:,.0f} "
        "operations"
    )


if __name__ == "__main__":
    main()

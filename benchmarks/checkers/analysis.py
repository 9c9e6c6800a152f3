"""How long the judgement of one history takes, and how much memory: ``python benchmarks/checkers/analysis.py``.

Prints one line: operations, events, seconds to start Spark, seconds to judge, peak memory of JVM and Python.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from synthetic import write_history

from checkers.analysis import BRIEF_ROWS, analyze
from checkers.session import session


def children_peak_mib() -> float:
    """Peak resident memory of our children that still run (the JVM), from /proc."""
    peak = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue  # it has ended
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(fields.get("PPid", "0")) == os.getpid() and "VmHWM" in fields:
            peak = max(peak, int(fields["VmHWM"].split()[0]) / 1024)
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--keep", type=Path, help="write the history here and leave it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-bench-") as scratch:
        directory = arguments.keep or Path(scratch) / "run"
        if not (directory / "history.parquet").exists():
            write_history(directory, arguments.operations, partitions=arguments.partitions)
        size = (directory / "history.parquet").stat().st_size / 2**20
        began = time.monotonic()
        with session(arguments.master, brief=2 * arguments.operations < BRIEF_ROWS):
            started = time.monotonic()
            [found] = analyze(
                [directory], progress=lambda text: print(f"  {time.monotonic() - started:6.1f} s  {text}")
            )
            done = time.monotonic()
            jvm = children_peak_mib()
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wrong = [f"{one['count']} {one['anomaly']}" for one in found["anomalies"] if one["count"]]
    print(
        f"{arguments.operations:,} operations in {arguments.partitions} partitions ({size:.0f} MiB): "
        f"Spark started in {started - began:.1f} s, judged in {done - started:.1f} s, "
        f"peak memory JVM {jvm:.0f} MiB, Python {python:.0f} MiB; {found['verdict']}; "
        f"findings: {', '.join(wrong) or 'none'}"
    )


if __name__ == "__main__":
    main()

"""How long the judgement of one history takes, and how much memory: ``python benchmarks/checkers/analysis.py``.

Prints one line: operations, seconds to start Spark, seconds to judge (and of processor time, which does not depend
on what else the machine does), peak memory of JVM and Python.
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

from checkers.analysis import BRIEF_FACTS, analyze
from checkers.session import session


def jvm() -> tuple[float, float]:
    """(peak resident MiB, processor seconds) of our child that still runs, from /proc."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            if int(fields.get("PPid", "0")) == os.getpid() and "VmHWM" in fields:
                used = (status.parent / "stat").read_text().rpartition(")")[2].split()
                ticks = int(used[11]) + int(used[12])
                return int(fields["VmHWM"].split()[0]) / 1024, ticks / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue  # it has ended
    return 0.0, 0.0


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
        with session(arguments.master, brief=6 * arguments.operations < BRIEF_FACTS):
            started, spent = time.monotonic(), jvm()[1] + time.process_time()
            [found] = analyze(
                [directory], progress=lambda text: print(f"  {time.monotonic() - started:6.1f} s  {text}")
            )
            done = time.monotonic()
            peak, spent = jvm()[0], jvm()[1] + time.process_time() - spent
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wrong = [f"{one['count']} {one['anomaly']}" for one in found["anomalies"] if one["count"]]
    print(
        f"{arguments.operations:,} operations in {arguments.partitions} partitions ({size:.0f} MiB): "
        f"Spark started in {started - began:.1f} s, judged in {done - started:.1f} s "
        f"({spent:.1f} s of processor time), "
        f"peak memory JVM {peak:.0f} MiB, Python {python:.0f} MiB; {found['verdict']}; "
        f"findings: {', '.join(wrong) or 'none'}"
    )


if __name__ == "__main__":
    main()

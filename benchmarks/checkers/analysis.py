"""What judging costs: seconds, processor time and peak memory, for histories of any size and any number of
runs.

    python benchmarks/checkers/analysis.py --operations 1000000              one run in 16 partitions
    python benchmarks/checkers/analysis.py --operations 10000000
    python benchmarks/checkers/analysis.py --operations 100000000
    python benchmarks/checkers/analysis.py --records 50000000 --partitions 1 one partition with 50M records
    python benchmarks/checkers/analysis.py --engine local                    in one process, without Spark
    python benchmarks/checkers/analysis.py --runs 200 --operations 100000    a night of runs in one Spark job
    python benchmarks/checkers/analysis.py --runs 200 --operations 100000 --separately 5
                                                                             ... and five of them one by one

Memory is that of the driver, its JVM and Python's workers together: the proportional set size of the whole
process tree, looked at twice a second, but rarely enough that looking stays below two per cent of the time:
the kernel counts the pages of a JVM for a tenth of a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from synthetic import write_history

from wrackline.checkers.analysis import BRIEF_FACTS, analyze
from wrackline.checkers.engine.spark.session import session

FACTS_PER_OPERATION = 6
MOST_LOOKING = 0.02
"""Of the time, for looking at memory."""
RECORDS_PER_OPERATION = 0.6
"""Sends among the operations of a synthetic history, each of one record."""


@dataclass
class Watch:
    """Peak memory and processor time of this process and all it started."""

    peak_mib: float = 0.0
    parts_mib: dict[str, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _seconds: dict[int, tuple[str, float]] = field(default_factory=dict)
    _before: dict[str, float] = field(default_factory=dict)

    def __enter__(self) -> Watch:
        self._look()
        self._before = self._used()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._look()
        self._stop.set()
        self._thread.join()

    @property
    def seconds(self) -> dict[str, float]:
        """Of processor time, since the watch began, by kind of process."""
        return {kind: used - self._before.get(kind, 0.0) for kind, used in self._used().items()}

    def _used(self) -> dict[str, float]:
        used: dict[str, float] = {}
        for kind, seconds in self._seconds.values():
            used[kind] = used.get(kind, 0.0) + seconds
        return used

    def _watch(self) -> None:
        pause = 0.5
        while not self._stop.wait(pause):
            began = time.monotonic()
            self._look()
            pause = max(0.5, (time.monotonic() - began) / MOST_LOOKING)

    def _look(self) -> None:
        parts: dict[str, float] = {}
        for pid in [os.getpid(), *_descendants(os.getpid())]:
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                memory = _pss_mib(pid)
                used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except (OSError, IndexError):
                continue  # it has ended
            kind = "JVM" if name == "java" else "driver" if pid == os.getpid() else "workers"
            self._seconds[pid] = (kind, (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK"))
            parts[kind] = parts.get(kind, 0.0) + memory
        if sum(parts.values()) > self.peak_mib:
            self.peak_mib, self.parts_mib = sum(parts.values()), parts


def _pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, queue = [], [root]
    while queue:
        some = children.get(queue.pop(), [])
        found += some
        queue += some
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=1_000_000, help="of each run")
    parser.add_argument("--records", type=int, help="sent in each run, instead of --operations")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument(
        "--separately", type=int, default=0, metavar="N", help="judge N of them one by one too"
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--keep", type=Path, help="write the histories here and leave them")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    arguments = parser.parse_args()
    operations = arguments.operations
    if arguments.records:
        operations = int(arguments.records / RECORDS_PER_OPERATION)
    with tempfile.TemporaryDirectory(prefix="wrackline-bench-", dir=os.environ.get("TMPDIR")) as scratch:
        folder = arguments.keep or Path(scratch)
        runs = [folder / f"run-{number}" for number in range(arguments.runs)]
        for number, run in enumerate(runs):
            if not (run / "history.parquet").exists():
                write_history(run, operations, partitions=arguments.partitions, seed=number + 1)
        print(_together(runs, operations, arguments))
        if arguments.separately:
            print(_separately(runs[: arguments.separately], arguments))


def _together(runs: list[Path], operations: int, arguments: argparse.Namespace) -> str:
    size = sum((run / "history.parquet").stat().st_size for run in runs) / 2**20
    brief = FACTS_PER_OPERATION * operations * len(runs) < BRIEF_FACTS
    began = time.monotonic()
    by_spark = arguments.engine == "spark"
    with Watch() as whole, session(arguments.master, brief=brief) if by_spark else nullcontext():
        started = time.monotonic()
        with Watch() as watch:
            found = analyze(
                runs,
                engine=arguments.engine,
                progress=lambda text: print(
                    f"  {time.monotonic() - started:6.1f} s  {text}", file=sys.stderr
                ),
            )
        seconds = time.monotonic() - started
    counts = [one["count"] for verdict in found for one in verdict["anomalies"]]
    figures = {
        "operations": operations * len(runs),
        "runs": len(runs),
        "partitions": arguments.partitions,
        "mib": round(size),
        "cores": os.cpu_count(),
        "start_s": round(started - began, 1),
        "seconds": round(seconds, 1),
        "processor_s": {kind: round(used, 1) for kind, used in watch.seconds.items()},
        "peak_mib": round(whole.peak_mib),
        "peak": {name: round(mib) for name, mib in whole.parts_mib.items()},
        "findings": sum(counts),
    }
    if arguments.json:
        return json.dumps(figures)
    parts = ", ".join(f"{name} {mib}" for name, mib in figures["peak"].items())
    used = ", ".join(f"{name} {seconds}" for name, seconds in figures["processor_s"].items())
    return (
        f"{figures['operations']:,} operations in {len(runs)} run(s) of {arguments.partitions} partitions "
        f"({size:.0f} MiB): "
        f"judged in {seconds:.1f} s on {os.cpu_count()} cores ({sum(watch.seconds.values()):.1f} s of "
        f"processor time: {used}), after "
        f"{figures['start_s']} s to start Spark; peak memory {whole.peak_mib:.0f} MiB ({parts}); "
        f"{figures['findings']} findings"
    )


def _separately(runs: list[Path], arguments: argparse.Namespace) -> str:
    """Each in a process of its own, as from the command line."""
    began = time.monotonic()
    with Watch() as watch:
        for run in runs:
            script = "from pathlib import Path; from wrackline.checkers.analysis import analyze; "
            script += f"analyze([Path({str(run)!r})], engine={arguments.engine!r})"
            subprocess.run([sys.executable, "-c", script], check=True)
    each = (time.monotonic() - began) / len(runs)
    return (
        f"one by one: {each:.1f} s and {sum(watch.seconds.values()) / len(runs):.1f} s of processor time a "
        f"run, so {each * arguments.runs:.0f} s for {arguments.runs} of them"
    )


if __name__ == "__main__":
    main()

"""What judging registers and queues costs: seconds, processor time and peak memory of a whole analysis, for
histories of any size in any number of partitions (markers and final reads come on top of the operations).

    nice -n 10 python benchmarks/checkers/objects.py --workload register --operations 1000000 --partitions 1
    nice -n 10 python benchmarks/checkers/objects.py --workload queue --operations 1000000 --partitions 16

A history is made by wrackline.proving.model.objects and kept where ``--keep`` says, so that two
versions of the checkers can be asked about the same one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from analysis import Watch

from wrackline.checkers.analysis import BRIEF_FACTS, analyze
from wrackline.checkers.engine.spark.session import session


def write(run: Path, workload: str, operations: int, partitions: int) -> None:
    from wrackline.proving.model.object_events import write_objects
    from wrackline.proving.model.objects import ObjectKnobs

    knobs = ObjectKnobs(workload, operations=operations, partitions=partitions, producers=8, consumers=8)
    write_objects(run, 1, knobs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", choices=("register", "queue"), default="register")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="make the history here, or judge the one that is here")
    parser.add_argument("--master", default="local[*]")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-bench-") as scratch:
        run = chosen.keep or Path(scratch) / "run"
        if not (run / "history.parquet").exists():
            write(run, chosen.workload, chosen.operations, chosen.partitions)
        with Watch() as whole, session(chosen.master, brief=4 * chosen.operations < BRIEF_FACTS):
            began = time.monotonic()
            with Watch() as watch:
                [verdict] = analyze([run], progress=lambda line: print(f"  {line}", file=sys.stderr))
            seconds = time.monotonic() - began
    found = {one["anomaly"]: one["count"] for one in verdict["anomalies"] if one["count"]}
    used = ", ".join(f"{name} {seconds:.1f}" for name, seconds in watch.seconds.items())
    print(
        f"{chosen.workload}, {chosen.operations:,} operations in {chosen.partitions} partition(s): "
        f"{seconds:.1f} s on "
        f"{os.cpu_count()} cores (load {os.getloadavg()[0]:.1f}), {sum(watch.seconds.values()):.1f} s of "
        "processor time "
        f"({used}), peak memory {whole.peak_mib:.0f} MiB; findings: {found or 'none'}"
    )


if __name__ == "__main__":
    main()

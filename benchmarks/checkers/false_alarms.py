"""Random correct histories through the judge: every finding is a false alarm. Prints them with their seeds,
and the time.

    nice -n 10 python benchmarks/checkers/false_alarms.py --histories 1000
    nice -n 10 python benchmarks/checkers/false_alarms.py --histories 1000 --objects  # registers and queues

A history is drawn from its seed alone (wrackline.proving): outcomes nobody knows, late appends,
failovers that cut or keep what was not committed, rebalances, retries that append twice, final reads that
fell short. ``--seed 4711 --histories 1 --keep DIR`` makes that one history again, for ``wrackline analyze``.
Without idempotence a retry's second copy is no alarm (``Knobs.may_show``). Exit code 1 when there was any.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wrackline.checkers.analysis import analyze
from wrackline.checkers.engine.spark.session import session
from wrackline.proving.model.knobs import drawn
from wrackline.proving.model.made import Made, make
from wrackline.proving.model.object_events import MadeObjects, make_objects
from wrackline.proving.model.objects import drawn_objects


@dataclass
class Totals:
    histories: int = 0
    events: int = 0
    making_s: float = 0.0
    judging_s: float = 0.0
    alarms: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        return (
            f"{self.histories:,} histories, {self.events:,} events: {len(self.alarms)} false alarms; "
            f"making {self.making_s:.0f} s, judging {self.judging_s:.0f} s"
        )


def alarms_of(made: Made | MadeObjects, verdict: dict[str, Any]) -> list[str]:
    """Anomalies found in a correct history, besides what it may show."""
    return [
        f"seed {made.info.seed}: {one['count']} {one['anomaly']} ({one['why']})"
        for one in verdict["anomalies"]
        if one["count"] and one["anomaly"] not in made.knobs.may_show
    ]


def one_history(seed: int, operations: int, *, objects: bool) -> Made | MadeObjects:
    if objects:
        return make_objects(f"correct-{seed}", seed, drawn_objects(seed, operations))
    return make(f"correct-{seed}", seed, drawn(seed, operations))


def one_batch(seeds: range, options: argparse.Namespace, folder: Path, totals: Totals) -> None:
    began = time.monotonic()
    made = [one_history(seed, options.operations, objects=options.objects) for seed in seeds]
    runs = [one.write(folder / one.info.test_id) for one in made]
    between = time.monotonic()
    verdicts = analyze(runs)
    totals.making_s += between - began
    totals.judging_s += time.monotonic() - between
    totals.histories += len(made)
    totals.events += sum(len(one.table) for one in made)
    for one, verdict in zip(made, verdicts, strict=True):
        totals.alarms += alarms_of(one, verdict)
        totals.outcomes[verdict["verdict"]] += 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--operations", type=int, default=120, help="of one history, about")
    parser.add_argument("--objects", action="store_true", help="registers and queues instead of logs")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    parser.add_argument("--batch", type=int, default=250, help="histories in one Spark job")
    parser.add_argument("--keep", type=Path, help="leave the histories in this directory")
    options = parser.parse_args()
    if min(options.histories, options.operations, options.batch) < 1 or options.seed < 0:
        parser.error("histories, operations and batch must be 1 or more, the seed 0 or more")
    totals, reported = Totals(), 0
    with session():
        for first in range(options.seed, options.seed + options.histories, options.batch):
            seeds = range(first, min(first + options.batch, options.seed + options.histories))
            folder = options.keep or Path(tempfile.mkdtemp(prefix="wrackline-false-alarms-"))
            try:
                one_batch(seeds, options, folder, totals)
            finally:
                if options.keep is None:
                    shutil.rmtree(folder, ignore_errors=True)
            print(totals.line(), flush=True)
            for alarm in totals.alarms[reported:]:
                print(f"  {alarm}", flush=True)
            reported = len(totals.alarms)
    print("verdicts: " + ", ".join(f"{count} {name}" for name, count in sorted(totals.outcomes.items())))
    return 1 if totals.alarms else 0


if __name__ == "__main__":
    sys.exit(main())

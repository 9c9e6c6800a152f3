"""Seconds from nothing to a ready cluster and back: up, deploy, start, ready, down of three hosts.

    python benchmarks/fleet/deploy.py [--rounds N] [--fresh]

Three broker hosts and one controller host in network namespaces (needs root). The goal is 10 s in all. With
``--fresh`` the bundle is packed anew, as after every change of the broker.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.systems.wrackline.system import WracklineSystem

STEPS = ("up", "install", "start", "ready", "down")
GOAL_S = 10.0


class Stopwatch:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timing(self, step: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - begin


def one_round(state_dir: Path, bundle_cache: Path) -> dict[str, float]:
    watch = Stopwatch()
    fleet = NetnsFleet(f"bench{os.getpid() % 100000}", ("n1", "n2", "n3", "c1"), state_dir=state_dir)
    try:
        with watch.timing("up"):
            fleet.up()
        system = WracklineSystem(
            fleet,
            brokers=("n1", "n2", "n3"),
            controllers=("c1",),
            cluster_id="benchmark",
            bundle_cache=bundle_cache,
        )
        with watch.timing("install"):
            system.install()
        with watch.timing("start"):
            system.start_all()
        with watch.timing("ready"):
            system.wait_ready()
        system.close()
    finally:
        with watch.timing("down"):
            fleet.down()
    return watch.seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fresh", action="store_true", help="pack the bundle anew in each round")
    options = parser.parse_args()
    print(
        f"{'round':<6}"
        + "".join(f"{step + ' s':>11}" for step in STEPS)
        + f"{'total s':>11}   goal {GOAL_S:g}"
    )
    with tempfile.TemporaryDirectory(prefix="wrackline-bench-") as scratch:
        cache = Path(scratch) / "bundles"
        for number in range(1, options.rounds + 1):
            if options.fresh:
                shutil.rmtree(cache, ignore_errors=True)
            seconds = one_round(Path(scratch) / "fleets", cache)
            line = "".join(f"{seconds[step]:>11.2f}" for step in STEPS)
            print(f"{number:<6}{line}{sum(seconds.values()):>11.2f}", flush=True)


if __name__ == "__main__":
    main()

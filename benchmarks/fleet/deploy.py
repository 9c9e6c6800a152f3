"""Seconds from nothing to a ready cluster and back: up, deploy, start, ready, down of three hosts.

    python benchmarks/fleet/deploy.py [--rounds N] [--kinds netns,process,qemu,libvirt] [--fresh]

Three hosts (needs root), a broker on each and the controller beside the first. The goal is 10 s in all on
netns. With ``--fresh`` the bundle is packed anew, as after every change of the broker. Before the rounds of a
fleet of virtual machines the image is built and its snapshot taken, where they are not there; those seconds
are not counted. Fleet libvirt wants a libvirtd (``--libvirt URI``).
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

from wrackline.fleets.spec import FleetSpec
from wrackline.plugins.registry import Group, load
from wrackline.systems.wrackline.system import START_S, WracklineSystem

STEPS = ("up", "install", "start", "ready", "down")
GOAL_S = 10.0
HOSTS = ("n1", "n2", "n3")


class Stopwatch:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timing(self, step: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - begin


def one_round(spec: FleetSpec, state_dir: Path, bundle_cache: Path) -> dict[str, float]:
    watch = Stopwatch()
    fleet = spec.build(f"bench{os.getpid() % 100000}", state_dir)
    try:
        with watch.timing("up"):
            fleet.up()
        system = WracklineSystem(
            fleet,
            brokers=HOSTS,
            controllers=HOSTS[:1],
            cluster_id="benchmark",
            bundle_cache=bundle_cache,
            start_s=START_S * spec.slowness,
        )
        with watch.timing("install"):
            system.install()
        with watch.timing("start"):
            system.start_all()
        with watch.timing("ready"):
            system.wait_ready(timeout_s=60 * spec.slowness)
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
    parser.add_argument("--kinds", default="netns,process,qemu", help="kinds of fleets, separated by commas")
    parser.add_argument("--libvirt", metavar="URI", help="of a libvirt of this machine")
    parser.add_argument("--fresh", action="store_true", help="pack the bundle anew in each round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-bench-", dir="/var/tmp") as scratch:
        cache = Path(scratch) / "bundles"
        columns = "".join(f"{step + ' s':>11}" for step in STEPS)
        print(f"{'kind':<7}{'round':<6}{columns}{'total s':>11}{'load':>7}   goal {GOAL_S:g} on netns")
        for kind in options.kinds.split(","):
            where = {"uri": options.libvirt} if kind == "libvirt" and options.libvirt else {}
            spec = load(Group.FLEETS, kind)(kind=kind, brokers=len(HOSTS), combined=True, **where)
            spec.prepare(print)
            if spec.slowness > 1:
                one_round(spec, Path(scratch) / "fleets", cache)
            for number in range(1, options.rounds + 1):
                if options.fresh:
                    shutil.rmtree(cache, ignore_errors=True)
                seconds = one_round(spec, Path(scratch) / "fleets", cache)
                line = "".join(f"{seconds[step]:>11.2f}" for step in STEPS)
                total_s, busy = sum(seconds.values()), os.getloadavg()[0]
                print(f"{kind:<7}{number:<6}{line}{total_s:>11.2f}{busy:>7.1f}", flush=True)


if __name__ == "__main__":
    main()

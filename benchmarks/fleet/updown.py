"""Seconds for a fleet to come up and go down, by number of hosts.

    python benchmarks/fleet/updown.py [--rounds N] [--hosts 1,3,6,9] [--filesystem ext4|xfs]

Up is from nothing until every host answers SSH, down until nothing is left. Needs root. Deployment is
measured by ``deploy.py``; the goal for up + deploy + down of three hosts is 10 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from wrackline.fleets.netns.fleet import NetnsFleet


def one_round(count: int, filesystem: str, state_dir: Path) -> tuple[float, float]:
    """Seconds up and seconds down."""
    hosts = [f"n{number}" for number in range(1, count + 1)]
    disk_mb = 320 if filesystem == "xfs" else 256
    fleet = NetnsFleet(f"bu{os.getpid()}", hosts, state_dir=state_dir, disk_mb=disk_mb, filesystem=filesystem)
    began = time.monotonic()
    try:
        fleet.up()
        up_s = time.monotonic() - began
    finally:
        began = time.monotonic()
        fleet.down()
    return up_s, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hosts", default="1,3,6,9", help="numbers of hosts, separated by commas")
    parser.add_argument("--filesystem", choices=["ext4", "xfs"], default="ext4")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wl-bench-", dir="/var/tmp") as folder:
        print(f"{options.filesystem}, median of {options.rounds} rounds")
        print(f"{'hosts':>5} {'up s':>8} {'down s':>8} {'both s':>8} {'worst s':>8}")
        for count in map(int, options.hosts.split(",")):
            rounds = [
                one_round(count, options.filesystem, Path(folder, "state")) for _ in range(options.rounds)
            ]
            ups, downs = zip(*rounds, strict=True)
            both = [sum(times) for times in rounds]
            print(
                f"{count:5} {statistics.median(ups):8.3f} {statistics.median(downs):8.3f}"
                f" {statistics.median(both):8.3f} {max(both):8.3f}"
            )


if __name__ == "__main__":
    main()

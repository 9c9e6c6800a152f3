"""Milliseconds from the decision to cut a host's power until its unsynced bytes are lost; and the whole cut,
and on.

    python benchmarks/fleet/powercut.py [--rounds N] [--dirty-mb N] [--files N] [--filesystem ext4|xfs]

While the power goes, a program on the host writes and syncs as fast as it can, over that many files, on top
of so many megabytes that nobody synced. Every round checks that bytes were lost. Needs root. The goal is 50
ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from wrackline.fleets.base import Host
from wrackline.fleets.netns.fleet import NetnsFleet

GOAL_MS = 50.0

BUSY = """
import os, sys
files, dirty = int(sys.argv[1]), int(sys.argv[2]) * 2**20
os.makedirs("/data/log", exist_ok=True)
logs = [os.open(f"/data/log/{n}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC) for n in range(files)]
for _ in range(dirty // 2**20):
    os.write(logs[0], os.urandom(2**20))
open("/run/busy", "w").close()
while True:
    for n, log in enumerate(logs):
        os.write(log, os.urandom(1024))
        if n % 10 == 1:
            os.fdatasync(log)
"""


def one_round(fleet: NetnsFleet, host: Host, files: int, dirty_mb: int) -> tuple[float, float, float, int]:
    """Milliseconds decision → lost, → switched off, → on again, and the bytes lost."""
    remote = fleet.remote(host)
    remote.put(BUSY.encode(), "/opt/busy.py")
    remote.run(f"setsid python3 /opt/busy.py {files} {dirty_mb} >/dev/null 2>&1 &")
    remote.run("until test -e /run/busy; do sleep 0.01; done; sleep 0.2")
    began = time.monotonic_ns()
    cut = fleet.power.cut(host)
    off = time.monotonic_ns()
    back = fleet.power.on(host)
    on = time.monotonic_ns()
    if back is None or back.lost_bytes == 0:
        raise SystemExit(f"this power cut lost nothing: {back}")
    return (cut.lost_ns - cut.decided_ns) / 1e6, (off - began) / 1e6, (on - off) / 1e6, back.lost_bytes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--dirty-mb", type=int, default=32)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--filesystem", choices=["ext4", "xfs"], default="ext4")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="wl-bench-", dir="/var/tmp") as folder,
        NetnsFleet(
            f"bp{os.getpid()}",
            ["n1"],
            state_dir=Path(folder, "state"),
            disk_mb=384,
            filesystem=options.filesystem,
        ) as fleet,
    ):
        rounds = [
            one_round(fleet, fleet.hosts[0], options.files, options.dirty_mb) for _ in range(options.rounds)
        ]
    print(f"{options.filesystem}, {options.rounds} cuts, {options.files} files, {options.dirty_mb} MB dirty")
    print(f"{'ms':24} {'median':>8} {'worst':>8}")
    names = ("decision to bytes lost", "decision to all gone", "power on to SSH")
    for column, name in enumerate(names):
        times = [row[column] for row in rounds]
        print(f"{name:24} {statistics.median(times):8.1f} {max(times):8.1f}")
    print(f"bytes lost per cut: {min(row[3] for row in rounds)} to {max(row[3] for row in rounds)}")
    worst = max(row[0] for row in rounds)
    print(f"goal {GOAL_MS:g} ms: {'met' if worst <= GOAL_MS else 'missed'}, worst {worst:.1f} ms")


if __name__ == "__main__":
    main()

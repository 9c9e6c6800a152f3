"""How far back real power cuts reach into a canary's numbers, and cuts behind one sync; how many of them are
proved.

    python benchmarks/fleet/canary.py [--rounds N] [--hosts N] [--filesystem ext4|xfs] [--grow-s S]

On every host a program writes 1 KiB and syncs it, as fast as it can. Every second round is sabotaged: one
``sync -f`` of the data disk, then the cut. Each round cuts all hosts at once. Needs root.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wrackline.fleets.base import Host
from wrackline.fleets.canary import REACH_S, Canaries, CanaryLoss
from wrackline.fleets.netns.fleet import NetnsFleet

SYNCER = """
import os
log = os.open("/data/log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
while True:
    for block in range(16384):
        os.pwrite(log, os.urandom(1024), block * 1024)
        os.fsync(log)
"""


def one_cut(fleet: NetnsFleet, canaries: Canaries, host: Host, *, sabotaged: bool) -> CanaryLoss:
    if sabotaged:
        fleet.remote(host).run("sync -f /data")
    fleet.power.cut(host)
    back = fleet.power.on(host)
    assert back is not None
    loss = canaries.after(host, back.decided_ns)
    canaries.start(host)
    return loss


def one_round(fleet: NetnsFleet, canaries: Canaries, grow_s: float, *, sabotaged: bool) -> list[CanaryLoss]:
    for host in fleet.hosts:
        fleet.remote(host).put(SYNCER.encode(), "/opt/syncer.py")
        fleet.remote(host).run("setsid python3 /opt/syncer.py >/dev/null 2>&1 </dev/null &")
    if problems := canaries.wait():
        raise SystemExit("; ".join(problems))
    time.sleep(grow_s)
    with ThreadPoolExecutor(len(fleet.hosts)) as pool:
        return list(pool.map(lambda host: one_cut(fleet, canaries, host, sabotaged=sabotaged), fleet.hosts))


def tell(what: str, losses: list[CanaryLoss]) -> None:
    reach = [loss.reach_s for loss in losses]
    proved = sum(loss.proved for loss in losses)
    print(
        f"{what:10} {len(losses):4} cuts, {proved:4} proved; reach in s: least {min(reach):.2f},"
        f" median {statistics.median(reach):.2f}, most {max(reach):.2f}; limit {REACH_S:g}"
    )
    for odd in [loss for loss in losses if loss.proved != (what == "real")][:5]:
        print(f"   {odd.host}: {odd}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument(
        "--grow-s", type=float, default=2.0, help="time between the canaries' start and the cut"
    )
    parser.add_argument("--filesystem", choices=["ext4", "xfs"], default="ext4")
    options = parser.parse_args()
    real: list[CanaryLoss] = []
    sabotaged: list[CanaryLoss] = []
    names = [f"n{number}" for number in range(1, options.hosts + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="wl-bench-", dir="/var/tmp") as folder,
        NetnsFleet(
            f"bc{os.getpid()}",
            names,
            state_dir=Path(folder, "state"),
            disk_mb=320,
            filesystem=options.filesystem,
        ) as fleet,
    ):
        canaries = Canaries(fleet, fleet.hosts)
        canaries.start_all()
        for number in range(options.rounds):
            losses = sabotaged if number % 2 else real
            losses += one_round(fleet, canaries, options.grow_s, sabotaged=bool(number % 2))
        canaries.stop()
    tell("real", real)
    if sabotaged:
        tell("sabotaged", sabotaged)


if __name__ == "__main__":
    main()

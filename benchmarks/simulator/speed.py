"""Simulated seconds per second of one core: three brokers and three controllers, from idle to faults.

    python benchmarks/simulator/speed.py [--controllers N] [--seconds S] [--repeat N] [--against DIR]
        [--package DIR]

CPU time of the process is what is divided by, and the best of the repeats counts. On a busy machine CPU
seconds are worth less; ``--against`` (another checkout) runs both states in turns, each run in a process of
its own, and prints how many times faster this one is. ``--package`` (an unpacked wheel) is measured in place
of this checkout. ``checked`` runs have every invariant looked at after every step. The runs of the swarm
have the profile, cluster, length and clients that their seeds draw. In the other loads a producer writes one
or two records at a time, a tenth of a second apart on average, when the last write has ended.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from wrackline.history.model import Type
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.run import run

ROOT = Path(__file__).resolve().parents[2]
IDLE = Setup(seed=2, kinds=(), invariants=False, producers=0, consumers=0, askers=0)
LIGHT = replace(IDLE, producers=1, consumers=1)
SEARCH = replace(IDLE, producers=2, consumers=1, askers=1)
LOADS = {
    "idle": IDLE,
    "1 producer, 1 consumer": LIGHT,
    "1 producer, 1 consumer, checked": replace(LIGHT, invariants=True),
    "2 producers, 1 consumer, 1 asker": SEARCH,
    "the same, checked": replace(SEARCH, invariants=True),
    "4 producers, 2 consumers, 1 asker": replace(IDLE, producers=4, consumers=2, askers=1),
    "2 producers ... and faults": Setup(seed=2, invariants=False),
    "2 producers ... and faults, checked": Setup(seed=2),
}
SWARM = "swarm of 12 seeds, checked"


def setups_of(seconds: float, controllers: int) -> dict[str, tuple[Setup, ...]]:
    """Returns the runs of each load."""
    alone = {
        name: (replace(setup, seconds=seconds, controllers=controllers),) for name, setup in LOADS.items()
    }
    return {**alone, SWARM: tuple(swarm(Setup(seed), any_profile=True) for seed in range(1, 13))}


def measure(setups: tuple[Setup, ...]) -> dict[str, float]:
    """CPU seconds and what was done in them. Raises SystemExit when a run is not clean."""
    began = time.process_time()
    results = [run(setup) for setup in setups]
    took = time.process_time() - began
    for result in results:
        if result.violation is not None:
            raise SystemExit(f"{result.setup.command()}: {result.violation}")
    events = [event for result in results for event in result.events]
    return {
        "cpu_s": took,
        "steps": sum(result.steps for result in results),
        "simulated_s": sum(result.simulated_s for result in results),
        "acked": sum(len(e.records) for e in events if e.f == "send" and e.type is Type.OK),
    }


def in_process_of(checkout: Path, arguments: list[str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr.strip()[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--controllers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="virtual seconds of each run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", help="loads whose names begin so")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout to compare with")
    parser.add_argument("--package", type=Path, metavar="DIR", default=ROOT, help="what is measured")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    said = parser.parse_args()
    setups = {
        name: runs
        for name, runs in setups_of(said.seconds, said.controllers).items()
        if name.startswith(said.only or "")
    }
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)  # as ``wrackline simulate --search`` does it, in both states
    if said.one:
        for setup in setups[said.one]:  # what is imported and compiled on the way is not counted
            run(replace(setup, seconds=1.0, drills=False))
        print(json.dumps(measure(setups[said.one])))
        return
    head = (
        f"{'load':<36} {'simulated s / s':>15} {'records/s':>10} {'steps / simulated s':>20} {'us/step':>8}"
    )
    print(head + (f" {'before':>8} {'times faster':>13}" if said.against else ""))
    for name, runs in setups.items():
        here, there = [], []
        for _ in range(said.repeat):
            if said.against or said.package != ROOT:
                same = ["--one", name, "--seconds", str(said.seconds), "--controllers", str(said.controllers)]
                if said.against:
                    there.append(in_process_of(said.against, same))
                here.append(in_process_of(said.package, same))
            else:
                here.append(measure(runs))
        best = min(here, key=lambda one: one["cpu_s"])
        simulated, took = best["simulated_s"], best["cpu_s"]
        line = (
            f"{name:<36} {simulated / took:>15.0f} {best['acked'] / simulated:>10.1f} "
            f"{best['steps'] / simulated:>20.0f} {took / best['steps'] * 1e6:>8.1f}"
        )
        if there:
            speeds = [
                (now["simulated_s"] / now["cpu_s"]) / (was["simulated_s"] / was["cpu_s"])
                for now, was in zip(here, there, strict=True)
            ]
            before = max(was["simulated_s"] / was["cpu_s"] for was in there)
            line += f" {before:>8.0f} {median(speeds):>13.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()

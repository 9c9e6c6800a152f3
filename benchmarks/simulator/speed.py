"""Simulated seconds per second of one core: three brokers and a controller (or more), from idle to faults.

    python benchmarks/simulator/speed.py [--controllers N] [--seconds S] [--repeat N]

CPU time of this process is what is divided by, so other work on the machine matters little. The best of the
repeats counts. ``checked`` runs have every invariant looked at after every step.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from simulator.run import Result, run
from simulator.setup import Setup

IDLE = Setup(seed=2, kinds=(), invariants=False, producers=0, consumers=0, askers=0)
LOADS = {
    "idle": IDLE,
    "light (1 producer, 1 consumer)": replace(IDLE, producers=1, consumers=1),
    "4 producers, 2 consumers": replace(IDLE, producers=4, consumers=2, askers=1),
    "faults": Setup(seed=2, invariants=False),
    "faults, checked": Setup(seed=2),
}


def measure(setup: Setup, repeat: int) -> tuple[float, Result]:
    """(CPU seconds of the fastest, its result). Raises SystemExit when a run is not clean."""
    best: tuple[float, Result] | None = None
    for _ in range(repeat):
        began = time.process_time()
        result = run(setup)
        took = time.process_time() - began
        if result.violation is not None:
            raise SystemExit(f"{setup.command()}: {result.violation}")
        if best is None or took < best[0]:
            best = took, result
    assert best is not None
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repeat", type=int, default=3)
    said = parser.parse_args()
    print(f"{'load':<32} {'simulated s / s':>15} {'steps / simulated s':>20} {'us / step':>10}")
    for name, setup in LOADS.items():
        took, result = measure(
            replace(setup, seconds=said.seconds, controllers=said.controllers), said.repeat
        )
        steps, simulated = result.steps, result.simulated_s
        print(f"{name:<32} {simulated / took:>15.0f} {steps / simulated:>20.0f} {took / steps * 1e6:>10.1f}")


if __name__ == "__main__":
    main()

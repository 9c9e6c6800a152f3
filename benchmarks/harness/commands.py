"""How long a user waits for help, a check, the verdict of a run and the demo, and what each waits for.

    python benchmarks/harness/commands.py                     help, validate, plan, a laptop run of 12 s
    python benchmarks/harness/commands.py --demo              the demo as well (root, two minutes)
    python benchmarks/harness/commands.py --against CHECKOUT  in turn with another checkout of Wrackline
    python benchmarks/harness/commands.py --rounds 3          the median of each figure

A row per phase, as the command's own lines tell them apart: seconds of the clock, and of the processor, of
all processes that the command began. On a machine that does something else, only the latter say anything.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[2]
HELP, RUN, DEMO = "--help", "run", "demo"
COMMANDS = {
    HELP: ("--help",),
    "validate": ("validate", "suites/laptop.yaml"),
    "plan": ("plan", "suites/laptop.yaml"),
    RUN: ("run", "suites/laptop.yaml", "--set", "workload.duration_s=12"),
    DEMO: ("demo",),
}
"""Name -> arguments; those of runs are given a folder for results."""
PHASES = {
    "setting up": "hosts",
    "installing and starting": "installing and starting nodes",
    "waiting until the cluster": "waiting until the cluster is ready",
    "warming up": "warming up",
    "main phase: 0": "load",
    "healing": "healing, and 3 s (laptop 0.2 s) of load",
    "reading back": "reading back, with 1 s of silence",
    "fetching logs": "fetching logs",
    "removing the hosts": "removing hosts",
    "--- judging": "waiting for Spark",
    "reading 2": "judging, report",
    "--- run": "imports and checks",
    "--- the demo": "end",
    "pass ": "end",
    "violation ": "end",
    "inconclusive ": "end",
}
"""How a line begins -> the phase that it begins."""
BEGINNING = "imports and checks"
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: what a command leaves behind (Spark's JVM) becomes a child of ours."""


@dataclass
class Figures:
    """Of one call, by phase in the order in which they came: [wall, processor] seconds."""

    by_phase: dict[str, list[float]] = field(default_factory=dict)

    def add(self, phase: str, wall: float, processor: float) -> None:
        was = self.by_phase.setdefault(phase, [0.0, 0.0])
        was[0] += wall
        was[1] += max(0.0, processor)

    def total(self) -> tuple[float, float]:
        return sum(one[0] for one in self.by_phase.values()), sum(one[1] for one in self.by_phase.values())


def processor_s() -> float:
    """Of all processes below this one, with those that have ended and were waited for."""
    parents, used, hertz = {}, {}, os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            values = stat.read_text().rsplit(")", 1)[1].split()
            pid = int(stat.parent.name)
            parents[pid] = int(values[1])
            used[pid] = sum(map(int, values[11:15])) / hertz
    return sum(used[pid] for pid in used if pid != os.getpid() and _is_ours(pid, parents)) + _reaped()


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def _reaped() -> float:
    """Of children that we have waited for, and theirs."""
    times = os.times()
    return times.children_user + times.children_system


def timed(checkout: Path, arguments: Sequence[str]) -> Figures:
    figures, phase = Figures(), BEGINNING
    began, processor = time.monotonic(), processor_s()
    with subprocess.Popen(
        [sys.executable, "-m", "wrackline.harness.cli.entry", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as command:
        assert command.stdout is not None
        for line in command.stdout:
            begins = next((name for start, name in PHASES.items() if line.startswith(start)), None)
            if begins is None or begins == phase:
                continue
            now, used = time.monotonic(), processor_s()
            figures.add(phase, now - began, used - processor)
            phase, began, processor = begins, now, used
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    figures.add(phase, time.monotonic() - began, processor_s() - processor)
    if command.returncode:
        print(f"{' '.join(arguments)}: exit code {command.returncode}", file=sys.stderr)
    return figures


def rows(name: str, calls: Sequence[Sequence[Figures]]) -> Iterator[str]:
    """``calls``: of each checkout."""
    phases = list(dict.fromkeys(phase for one in calls for each in one for phase in each.by_phase))
    middle = [[median(each.total()[at] for each in one) for at in (0, 1)] for one in calls]
    yield _row(f"**{name}**", middle)
    for phase in phases if len(phases) > 1 else ():
        yield _row(
            phase,
            [
                [median(each.by_phase.get(phase, (0.0, 0.0))[at] for each in one) for at in (0, 1)]
                for one in calls
            ],
        )


def _row(name: str, figures: Sequence[Sequence[float]]) -> str:
    cells = [f"{wall:.2f} | {processor:.2f}" for wall, processor in figures]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--only", choices=list(COMMANDS), action="append")
    parser.add_argument(
        "--against", type=Path, help="another checkout, which is measured in turn with this one"
    )
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    checkouts = [*([asked.against.resolve()] if asked.against else []), HERE]
    wanted = asked.only or [name for name in COMMANDS if name != DEMO or asked.demo]
    heads = [f"{name}wall s | processor s" for name in (["before: ", "after: "] if asked.against else [""])]
    print(f"| command, and its phases | {' | '.join(heads)} |\n|---|{'---|' * 2 * len(heads)}")
    for name in wanted:
        calls: list[list[Figures]] = [[] for _ in checkouts]
        with tempfile.TemporaryDirectory() as results:
            more = ["--results", results] if name in (RUN, DEMO) else []
            for checkout in checkouts:  # compiles what is new, and fills caches
                timed(checkout, COMMANDS["plan" if name in (RUN, DEMO) else name])
            for _ in range(asked.rounds):
                for checkout, figures in zip(checkouts, calls, strict=True):
                    figures.append(timed(checkout, [*COMMANDS[name], *more]))
        print("\n".join(rows(name, calls)), flush=True)
    print(f"\nload of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()

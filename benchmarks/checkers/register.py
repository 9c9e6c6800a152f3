"""Register check: ours against Knossos and Porcupine, on the same histories, in one run.

    python benchmarks/checkers/register.py                        # up to 1,000,000 operations, searches get 60 s each
    python benchmarks/checkers/register.py --operations 1000 10000 --limit 10

Knossos is asked where a classpath is (WRACKLINE_JVM_CLASSPATH), Porcupine where Go is. A history is a loop per process:
an operation of exponential length (mean 1), a pause (mean 0.3), half writes, values never repeat; ``unknown`` of them
never return and their process is replaced. A search that gave up at a size is not asked at larger ones.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson

from checkers.columns import NEVER, NOTHING, Columns
from checkers.exact_register import check_register
from checkers.jvm.bridge import Answer, Bridge
from checkers.jvm.calls import Model, calls_of
from checkers.jvm.classpath import available

PORCUPINE = Path(__file__).parent / "porcupine"


def history(operations: int, processes: int, unknown: float, *, bad: bool, seed: int = 1) -> Columns:
    """A linearizable history, or one in which a read at 60 % of it returns the first value."""
    rng = np.random.default_rng(seed)
    each = -(-operations // processes)
    lengths, pauses = rng.exponential(1.0, (processes, each)), rng.exponential(0.3, (processes, each))
    ends = np.cumsum(lengths + pauses, axis=1)
    inv, ret = (ends - lengths).ravel()[:operations], ends.ravel()[:operations]
    puts = rng.random(operations) < 0.5
    effect = inv + rng.random(operations) * (ret - inv)
    lost = rng.random(operations) < unknown
    happens = ~lost | (rng.random(operations) < 0.5)
    order = np.argsort(effect)
    value = np.arange(operations, dtype=np.int64)
    written = np.where((puts & happens)[order], np.arange(operations), -1)
    last = np.maximum.accumulate(written)
    held = np.where(last >= 0, order[np.maximum(last, 0)], NOTHING)
    value[order] = np.where(puts[order], value[order], held)
    stamps = np.argsort(np.argsort(np.concatenate([inv, ret])))
    begins, returns = stamps[:operations].astype(np.int64), stamps[operations:].astype(np.int64)
    if bad:
        reads = np.flatnonzero(~puts & ~lost)
        victim = reads[np.argsort(inv[reads])][int(len(reads) * 0.6)]
        value[victim] = value[order[np.flatnonzero(written >= 0)[0]]]
    return Columns(puts, value, begins, np.where(lost, NEVER, returns), np.zeros(operations, dtype=bool))


@dataclass
class Search:
    """A peer that may give up."""

    name: str
    gave_up: set[tuple[int, float, bool]] = field(default_factory=set)

    def ask(self, table: Columns, limit_s: float) -> tuple[str, float]:
        """(verdict, seconds)."""
        raise NotImplementedError


class Ours(Search):
    def ask(self, table: Columns, limit_s: float) -> tuple[str, float]:
        del limit_s
        times, found = [], []
        for _ in range(3):
            began = time.perf_counter()
            found = check_register(table)
            times.append(time.perf_counter() - began)
        return str(Answer.INVALID if found else Answer.VALID), min(times)


@dataclass
class Knossos(Search):
    bridge: Bridge | None = None

    def ask(self, table: Columns, limit_s: float) -> tuple[str, float]:
        assert self.bridge is not None
        self.bridge.load("knossos")
        began = time.perf_counter()
        found = self.bridge.linearizable(calls_of(table, Model.REGISTER), deadline_s=limit_s)
        return str(found.answer), time.perf_counter() - began


@dataclass
class Porcupine(Search):
    program: Path = PORCUPINE

    def ask(self, table: Columns, limit_s: float) -> tuple[str, float]:
        ops = [
            [
                "write" if put else "read",
                value if value != NOTHING else -1,
                inv,
                None if ret == NEVER else ret,
            ]
            for put, value, inv, ret in zip(
                table.puts.tolist(), table.value.tolist(), table.inv.tolist(), table.ret.tolist(), strict=True
            )
            if put or ret != NEVER
        ]
        try:
            said = subprocess.run(
                ["/bin/sh", "-c", f'ulimit -v 9000000; exec "$0" {limit_s}', str(self.program)],
                input=orjson.dumps({"model": "register", "ops": ops}),
                capture_output=True,
                timeout=limit_s * 2 + 30,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return str(Answer.UNKNOWN), limit_s
        if said.returncode != 0:
            return str(Answer.UNKNOWN), limit_s
        answer = orjson.loads(said.stdout)
        return answer["verdict"], answer["seconds"]


def peers(stack: ExitStack, heap: str) -> Iterator[Search]:
    yield Ours("ours")
    if available():
        yield Knossos("knossos", bridge=stack.enter_context(Bridge(heap=heap)))
    if shutil.which("go"):
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        program = Path(scratch, "porcupine")
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=PORCUPINE, check=True)
        yield Porcupine("porcupine", program=program)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--operations", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    arguments.add_argument("--processes", type=int, nargs="+", default=[5, 10, 20])
    arguments.add_argument("--unknown", type=float, nargs="+", default=[0.0, 0.01])
    arguments.add_argument("--limit", type=float, default=60.0, help="seconds for a search")
    arguments.add_argument("--heap", default="4g", help="of Knossos")
    chosen = arguments.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; seconds, and times ours; limit {chosen.limit:g} s"
    )
    with ExitStack() as stack:
        asked = list(peers(stack, chosen.heap))
        print(
            f"{'operations':>10} {'procs':>5} {'unknown':>7} {'history':>7} "
            + " ".join(f"{p.name:>20}" for p in asked)
        )
        for operations in sorted(chosen.operations):
            for processes in chosen.processes:
                for unknown in chosen.unknown:
                    for bad in (False, True):
                        row(asked, operations, processes, unknown, bad, chosen.limit)


def row(
    asked: list[Search], operations: int, processes: int, unknown: float, bad: bool, limit_s: float
) -> None:
    table = history(operations, processes, unknown, bad=bad)
    expected = str(Answer.INVALID if bad else Answer.VALID)
    cells, ours = [], 1.0
    for peer in asked:
        key = (processes, unknown, bad)
        if key in peer.gave_up:
            cells.append(f"{'not asked':>20}")
            continue
        verdict, seconds = peer.ask(table, limit_s)
        if verdict not in (expected, str(Answer.UNKNOWN)):
            raise SystemExit(f"{peer.name} says {verdict} of a history that is {expected}")
        if isinstance(peer, Ours):
            ours = seconds
            cells.append(f"{seconds:>20.4f}")
        elif verdict == str(Answer.UNKNOWN):
            peer.gave_up.add(key)
            cells.append(f"{f'gave up at {seconds:.0f} s':>20}")
        else:
            cells.append(f"{f'{seconds:.3f} ({seconds / ours:,.0f}x)':>20}")
    print(
        f"{operations:>10,} {processes:>5} {unknown:>7.0%} {'bad' if bad else 'good':>7} " + " ".join(cells),
        flush=True,
    )


if __name__ == "__main__":
    main()

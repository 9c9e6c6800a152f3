"""Register check: ours against Knossos and Porcupine, on the same histories, in one run.

    python benchmarks/checkers/register.py          # up to 1,000,000 operations, searches get 30 s each
    python benchmarks/checkers/register.py --operations 1000 10000 --limit 10

Knossos is asked where a classpath is (WRACKLINE_JVM_CLASSPATH), Porcupine where Go is. A history is a loop
per process: an operation of exponential length (mean 1), a pause (mean 0.3), half writes, values never
repeat; ``unknown`` of them never return and their process is replaced. "Invalid" has one read of the first
value at 60 % of the history. A search that gave up at a size is not asked at larger ones.

All times, and the limit of a search, are seconds of processor time (of all its threads), so that other work
on the machine does not count. Memory is bounded: the heap of Knossos, the address space of Porcupine. The
table is Markdown.
"""

from __future__ import annotations

import argparse
import os
import resource
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

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns
from wrackline.checkers.exact.register import check_register
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Model, calls_of
from wrackline.checkers.jvm.classpath import available

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


OUT_OF_MEMORY, DEADLINE = "out of memory", "deadline"
WALL_PER_CPU = 20.0
"""How much longer than its processor time a search may take before it is ended."""


@dataclass(frozen=True)
class Said:
    verdict: str
    cpu_s: float = 0.0
    why: str = ""
    """Where the verdict is unknown."""


@dataclass
class Search:
    """A peer that may give up."""

    name: str
    memory_gb: int = 6
    gave_up: set[tuple[int, float, bool]] = field(default_factory=set)

    def ask(self, table: Columns, limit_s: int) -> Said:
        raise NotImplementedError


class Ours(Search):
    def ask(self, table: Columns, limit_s: int) -> Said:
        del limit_s
        times, found = [], []
        for _ in range(3):
            began = time.process_time()
            found = check_register(table)
            times.append(time.process_time() - began)
        return Said(str(Answer.INVALID if found else Answer.VALID), min(times))


@dataclass
class Knossos(Search):
    bridge: Bridge | None = None

    def ask(self, table: Columns, limit_s: int) -> Said:
        assert self.bridge is not None
        self.bridge.load("knossos")
        pid = self.bridge.pid
        assert pid is not None
        used = cpu_of(pid)
        most = int(used) + limit_s
        resource.prlimit(pid, resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        found = self.bridge.linearizable(calls_of(table, Model.REGISTER), deadline_s=limit_s * WALL_PER_CPU)
        if found.answer is Answer.UNKNOWN:
            self.bridge.close()
            return Said(str(found.answer), why=OUT_OF_MEMORY if OUT_OF_MEMORY in found.why else DEADLINE)
        return Said(str(found.answer), cpu_of(pid) - used)


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Porcupine(Search):
    program: Path = PORCUPINE

    def ask(self, table: Columns, limit_s: int) -> Said:
        columns = (table.puts.tolist(), table.value.tolist(), table.inv.tolist(), table.ret.tolist())
        ops = [
            [
                "write" if put else "read",
                value if value != NOTHING else -1,
                inv,
                None if ret == NEVER else ret,
            ]
            for put, value, inv, ret in zip(*columns, strict=True)
            if put or ret != NEVER
        ]
        # To read the history costs processor time too: some of it on top of the limit, which is judged by
        # what it says.
        bounds = f"ulimit -v {self.memory_gb * 1_000_000}; ulimit -t {limit_s + 5 + len(ops) // 20_000}"
        try:
            said = subprocess.run(
                ["/bin/sh", "-c", f'{bounds}; exec "$0" {limit_s * WALL_PER_CPU}', str(self.program)],
                input=orjson.dumps({"model": "register", "ops": ops}),
                capture_output=True,
                timeout=limit_s * WALL_PER_CPU + 60,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Said(str(Answer.UNKNOWN), why=DEADLINE)
        if said.returncode != 0:
            memory = any(words in said.stderr for words in (b"out of memory", b"cannot allocate"))
            return Said(str(Answer.UNKNOWN), why=OUT_OF_MEMORY if memory else DEADLINE)
        answer = orjson.loads(said.stdout)
        late = answer["verdict"] == str(Answer.UNKNOWN) or answer["cpu_seconds"] > limit_s
        return (
            Said(str(Answer.UNKNOWN), why=DEADLINE)
            if late
            else Said(answer["verdict"], answer["cpu_seconds"])
        )


def peers(stack: ExitStack, memory_gb: int) -> Iterator[Search]:
    yield Ours("ours")
    if available():
        yield Knossos("Knossos", memory_gb, bridge=stack.enter_context(Bridge(heap=f"{memory_gb}g")))
    if shutil.which("go"):
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        program = Path(scratch, "porcupine")
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=PORCUPINE, check=True)
        yield Porcupine("Porcupine", memory_gb, program=program)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--operations", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    arguments.add_argument("--processes", type=int, nargs="+", default=[5, 10, 20])
    arguments.add_argument("--unknown", type=float, nargs="+", default=[0.0, 0.01])
    arguments.add_argument("--limit", type=int, default=30, help="seconds of processor time for a search")
    arguments.add_argument("--memory", type=int, default=6, metavar="GB", help="of a search")
    chosen = arguments.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; seconds of processor time, and times ours; "
        f"a search may use {chosen.limit} s and {chosen.memory} GB\n"
    )
    with ExitStack() as stack:
        asked = list(peers(stack, chosen.memory))
        print("| operations | processes | unknown | | " + " | ".join(peer.name for peer in asked) + " |")
        print("|---" * (4 + len(asked)) + "|", flush=True)
        for operations in sorted(chosen.operations):
            for processes in chosen.processes:
                for unknown in chosen.unknown:
                    for bad in (False, True):
                        row(asked, operations, processes, unknown, bad, chosen.limit)


def row(
    asked: list[Search], operations: int, processes: int, unknown: float, bad: bool, limit_s: int
) -> None:
    table = history(operations, processes, unknown, bad=bad)
    expected = str(Answer.INVALID if bad else Answer.VALID)
    cells, ours = [], 1.0
    for peer in asked:
        key = (processes, unknown, bad)
        if key in peer.gave_up:
            cells.append("not asked")
            continue
        said = peer.ask(table, limit_s)
        if said.verdict not in (expected, str(Answer.UNKNOWN)):
            raise SystemExit(f"{peer.name} says {said.verdict} of a history that is {expected}")
        if isinstance(peer, Ours):
            ours = said.cpu_s
            cells.append(f"{ours:.4f}")
        elif said.verdict == str(Answer.UNKNOWN):
            peer.gave_up.add(key)
            cells.append(said.why)
        else:
            cells.append(f"{said.cpu_s:.2g} ({said.cpu_s / ours:,.0f}x)")
    what = f"| {operations:,} | {processes} | {unknown:.0%} | {expected} | "
    print(what + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

"""Our search for an order against Porcupine's, on the same histories, in one run.

    git clone https://github.com/anishathalye/porcupine /tmp/porcupine
    python benchmarks/checkers/search.py --data /tmp/porcupine/test_data
    python benchmarks/checkers/search.py --operations 1000 10000 --limit 10     # drawn histories alone

Porcupine is asked where Go is. Both get operations in memory and are timed until they have an answer: seconds
of processor time, the least of ``--times``. Porcupine ends at the first key that is not linearizable; we say
it of each key, so there is a line for that too. "Your own" is the same register as a user would write it, in
ten lines.

A drawn history is a register with compare-and-set over five values: ``clients`` do one operation after
another, ``unknown`` of them never return. "invalid" has one read of a value that was not there, at 80 % of
the history. The table is Markdown."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.checkers.exact.recorded import recorded
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import REFUSED, Model, Operation, Outcome, load

PORCUPINE = Path(__file__).parent / "porcupine"
MEMORY_BYTES = 4 << 30


class YourOwn(Model[Any]):
    """A register as a user would write it."""

    def initial(self) -> Any:
        return (None,)

    def step(self, state: Any, operation: Operation) -> Any:
        if operation.f == "read":
            return state if state == (operation.result,) else REFUSED
        if operation.f == "write":
            return (operation.argument,)
        old, new = operation.argument
        return (new,) if state == (old,) else REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"


@dataclass(frozen=True)
class Asked:
    name: str
    model: str
    histories: Sequence[tuple[Operation, ...]]
    ours: Model[Any]
    expected: Answer | None
    """Of a single history that is drawn."""
    yours: Model[Any] | None = None


def drawn(
    operations: int, clients: int, unknown: float, *, bad: bool, seed: int = 1
) -> tuple[Operation, ...]:
    """A history of a register; a client whose operation has an unknown outcome is replaced."""
    rng = random.Random(seed)
    held: Any = None
    open_ones: dict[int, tuple[Operation, bool]] = {}
    done: list[Operation] = []
    begun = clock = 0
    while begun < operations or open_ones:
        clock += 1
        if begun < operations and len(open_ones) < clients and rng.random() < 0.5:
            f = rng.choice(["read", "write", "cas"])
            argument = {"read": None, "write": rng.randrange(5), "cas": rng.sample(range(5), 2)}[f]
            open_ones[begun] = Operation(begun, f, argument, None, clock, None, Outcome.INFO), False
            begun += 1
            continue
        if not open_ones:
            continue
        number = rng.choice(list(open_ones))
        one, happened = open_ones[number]
        if not happened:
            if one.f == "cas" and one.argument[0] != held:
                one = replace(one, outcome=Outcome.FAIL)
            elif one.f == "read":
                one = replace(one, result=held, outcome=Outcome.OK)
            else:
                held = one.argument if one.f == "write" else one.argument[1]
                one = replace(one, outcome=Outcome.OK)
            open_ones[number] = one, True
            continue
        del open_ones[number]
        lost = rng.random() < unknown
        done.append(replace(one, outcome=Outcome.INFO, result=None) if lost else replace(one, ret=clock))
    if bad:
        reads = [n for n, one in enumerate(done) if one.f == "read" and one.outcome is Outcome.OK]
        victim = reads[int(len(reads) * 0.8)]
        done[victim] = replace(done[victim], result=7)
    return tuple(done)


def asked(data: Path | None, sizes: Iterable[int]) -> Iterator[Asked]:
    if data is not None:
        every = list(recorded(data))
        logs = [one.operations for one in every if one.model != "kv"]
        yield Asked(
            f"{len(logs)} logs of etcd", "strict-cas-register", logs, load("strict-cas-register"), None
        )
        for one in every:
            if one.model == "kv":
                yield Asked(one.name, one.model, [one.operations], load("kv", initial=""), None)
    for operations in sizes:
        for clients, unknown in ((5, 0.0), (10, 0.0), (10, 0.001), (20, 0.0)):
            for bad in (False, True):
                history = drawn(operations, clients, unknown, bad=bad)
                expected = Answer.INVALID if bad else Answer.VALID
                name = f"{operations:,} drawn, {clients} clients, {unknown:.1%} unknown, {'in' * bad}valid"
                yield Asked(name, "cas-register", [history], load("cas-register"), expected, YourOwn())


def ours(one: Asked, model: Model[Any], limit_s: float, times: int, *, first: bool = False) -> str:
    spent = []
    answers: list[Answer] = []
    for _ in range(times):
        began = time.process_time()
        found = [
            search(each, model, deadline_s=limit_s, memory_bytes=MEMORY_BYTES, first=first).answer
            for each in one.histories
        ]
        spent.append(time.process_time() - began)
        answers = found
        if spent[-1] > limit_s / 4:
            break
    return cell(answers, one.expected, min(spent))


def cell(answers: Sequence[Answer], expected: Answer | None, seconds: float) -> str:
    if expected is not None and set(answers) - {expected, Answer.UNKNOWN}:
        raise SystemExit(f"{answers} of a history that is {expected}")
    if Answer.UNKNOWN in answers and Answer.INVALID not in answers:
        return "unknown"
    return f"{seconds * 1e3:,.1f} ms"


def as_json(model: str, history: Sequence[Operation]) -> bytes:
    ops = []
    for one in history:
        known = one.outcome is not Outcome.INFO
        f, value = one.f, one.argument
        if one.outcome is Outcome.FAIL:
            if model != "strict-cas-register":
                continue
            f = "failed-cas"
        elif f in ("read", "get"):
            if not known:
                continue
            value = one.result if f == "get" or one.result is not None else -1
        ops.append([f, value, one.inv, one.ret if known else None])
    return orjson.dumps({"model": model, "ops": ops})


def porcupine(program: Path, one: Asked, limit_s: float, times: int) -> str:
    lines = b"\n".join(as_json(one.model, history) for history in one.histories)
    bounds = f'ulimit -v {MEMORY_BYTES >> 9}; exec "$0" {limit_s}'
    spent, answers = [], []
    for _ in range(times):
        said = subprocess.run(
            ["/bin/sh", "-c", bounds, str(program)], input=lines, capture_output=True, check=False
        )
        if said.returncode != 0:
            return "out of memory"
        reported = [orjson.loads(line) for line in said.stdout.splitlines()]
        spent.append(sum(each["cpu_seconds"] for each in reported))
        answers = [Answer(each["verdict"]) for each in reported]
        if spent[-1] > limit_s / 4:
            break
    return cell(answers, one.expected, min(spent))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--data", type=Path, metavar="FOLDER", help="test_data of Porcupine")
    arguments.add_argument("--operations", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--limit", type=float, default=30, help="seconds for a search")
    arguments.add_argument("--times", type=int, default=5)
    chosen = arguments.parse_args()
    search(drawn(20, 3, 0.1, bad=False), YourOwn())  # compiles
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; milliseconds of processor time\n")
    print(
        "| history | ours | ours, up to the first bad key | your own | Porcupine |\n|---|---|---|---|---|",
        flush=True,
    )
    with ExitStack() as stack:
        program = None
        if shutil.which("go"):
            program = Path(stack.enter_context(tempfile.TemporaryDirectory()), "porcupine")
            subprocess.run(["go", "build", "-o", str(program), "."], cwd=PORCUPINE, check=True)
        for one in asked(chosen.data, chosen.operations):
            limits = (chosen.limit, chosen.times)
            row = [
                ours(one, one.ours, *limits),
                ours(one, one.ours, *limits, first=True) if one.model == "kv" else "",
                ours(one, one.yours, *limits) if one.yours else "",
                porcupine(program, one, *limits) if program else "",
            ]
            print(f"| {one.name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()

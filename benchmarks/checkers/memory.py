"""Does `wrackline check` keep to its --memory? For each model a history that no search decides.

    python benchmarks/checkers/memory.py                         # 16m, 64m and 256m
    python benchmarks/checkers/memory.py --memory 1g --models kv register

A figure is the most memory of `wrackline check`, in MB: what its processes have in memory beside files,
pages that they share counted once, looked at a hundred times a second. From it is taken what the same command
takes for a history of one operation: the interpreter, what it imports, and the native code. "kv, 4 keys" is
searched by two processes at once, where there are two cores. Exact checks do not search, so --memory is not
for them; their figure is for each of 100,000 operations. The table is Markdown."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.checkers.exact.search.hard import HARD, LAST, hard
from wrackline.checkers.models import Operation, Outcome

KEYS = "kv, 4 keys"
LOOK_S = 0.01
MANY = 100_000


def written(history: Iterable[Operation]) -> bytes:
    """The history in Jepsen's format, as lines of JSON."""
    lines: list[tuple[int, int, Any]] = []
    for number, one in enumerate(history):
        names = {"process": number, "f": one.f}
        lines.append((one.inv, 0, {**names, "type": "invoke", "value": one.argument}))
        if one.ret is not None and one.outcome is not Outcome.INFO:
            value = one.result if one.outcome is Outcome.OK else one.argument
            lines.append((one.ret, 1, {**names, "type": str(one.outcome), "value": value}))
    return b"\n".join(orjson.dumps(line) for *_, line in sorted(lines, key=lambda line: line[:2]))


def hardest(model: str) -> list[Operation]:
    return [one for key in range(4) for one in hard("kv", key=key)] if model == KEYS else hard(model)


def easy(history: Sequence[Operation]) -> list[Operation]:
    return [one for one in history if one.ret is not None and one.ret < 3 * LAST][:1]


def peak(model: str, history: Sequence[Operation], *options: str) -> tuple[int, int]:
    """(bytes, exit code) of a check."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "history.json")
        file.write_bytes(written(history))
        command = [sys.executable, "-c", "from wrackline.harness.cli.entry import main; main()"]
        command += ["check", "-m", model.partition(",")[0], *options, str(file)]
        most = 0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                most = max(most, sum(map(_shared_fairly, _family(process.pid))))
                time.sleep(LOOK_S)
        return most, process.returncode


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _shared_fairly(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Anon:"))


def in_turn(put: str, get: str) -> list[Operation]:
    """Operations one after another, with values that are written once."""
    found = []
    for n in range(0, MANY, 2):
        found.append(Operation(0, put, n, n, 2 * n, 2 * n + 1))
        found.append(Operation(0, get, None, n, 2 * n + 2, 2 * n + 3))
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--memory", nargs="*", default=["16m", "64m", "256m"])
    arguments.add_argument("--models", nargs="*", default=[*HARD, KEYS])
    arguments.add_argument("--deadline", default="3600", metavar="SECONDS")
    chosen = arguments.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores; MB beyond one operation\n")
    print("| model | one operation | " + " | ".join(f"--memory {size}" for size in chosen.memory) + " |")
    print("|---|" + "---|" * (1 + len(chosen.memory)), flush=True)
    for model in chosen.models:
        history = hardest(model)
        base = max(peak(model, easy(history), "--by", "search")[0] for _ in range(3))
        row = [f"{base / 2**20:.0f}"]
        for size in chosen.memory:
            options = ("--by", "search", "--memory", size, "--deadline", chosen.deadline)
            most, code = peak(model, history, *options)
            row.append(f"{(most - base) / 2**20:.1f}" + ("" if code == 3 else f" (exit code {code})"))
        print(f"| {model} | " + " | ".join(row) + " |", flush=True)
    print("\n| exact | one operation | each operation |\n|---|---|---|")
    for model, put, get in (("register", "write", "read"), ("fifo-queue", "enqueue", "dequeue")):
        history = in_turn(put, get)
        base, _ = peak(model, history[:1])
        most, _ = peak(model, history)
        print(f"| {model} | {base / 2**20:.0f} MB | {(most - base) / MANY:,.0f} bytes |", flush=True)


if __name__ == "__main__":
    main()

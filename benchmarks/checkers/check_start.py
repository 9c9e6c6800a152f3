"""What `wrackline check` costs before it answers: one file, many files, many keys.

    WRACKLINE_JVM_CLASSPATH=... python benchmarks/checkers/check_start.py

Three ways to ask Knossos, in one run on the same small histories: a JVM for each question that loads
Knossos from source ("each"), one JVM for all questions that loads it from source ("one"), and one that loads
it compiled ("compiled"); and our own search, which needs no JVM ("search"). Elle likewise, about one file and
many. A JVM for each of many questions is measured on a few of them and multiplied.

All figures are seconds of processor time of the command and its children, so that other work on the machine
counts little. The table is Markdown.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from wrackline.checkers.jvm.compiled import OFF_VARIABLE

FEW = 3
"""Questions on which a JVM for each is measured."""


def history(keys: int, model: str) -> str:
    """Ten operations, or transactions, on each key, one after another."""
    lines = []
    for key in range(keys):
        for n in range(10):
            f, value = ("cas", f"[{key} [{n or 'nil'} {n + 1}]]")
            if model == "list-append":
                f, value = "txn", f"[[:append {key} {n}]]"
            lines += [f"{{:process 0 :type :{kind} :f :{f} :value {value}}}" for kind in ("invoke", "ok")]
    return "\n".join(lines)


def cpu_s(arguments: Sequence[str], *, compiled: bool) -> float:
    """Raises CalledProcessError where the answer is not "in order"."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, OFF_VARIABLE: "1" if compiled else "0"}
    command = [sys.executable, "-m", "wrackline.harness.cli.main", "check", *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--files", type=int, default=20)
    arguments.add_argument("--keys", type=int, default=100)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        measure(Path(scratch), chosen.files, chosen.keys)


def measure(folder: Path, files: int, keys: int) -> None:
    def made(name: str, model: str, of_keys: int = 1) -> str:
        (folder / name).write_text(history(of_keys, model))
        return str(folder / name)

    objects = [made(f"object-{n}.edn", "cas-register") for n in range(files)]
    many_keys = made("keys.edn", "cas-register", keys)
    txns = [made(f"txns-{n}.edn", "list-append") for n in range(files)]
    knossos = ("--model", "cas-register", "--independent", "--by", "knossos")
    search = ("--model", "cas-register", "--independent")
    elle = ("--model", "list-append")
    cpu_s([*knossos, objects[0]], compiled=True)  # compiles, once
    each = measured_on_few(lambda at: cpu_s([*knossos, objects[at]], compiled=False), files)
    print("| question | each | one | compiled | search | each / compiled |\n|---|---|---|---|---|---|")
    for what, given, count in (
        ("Knossos, 1 file", objects[:1], 1),
        (f"Knossos, {files} files", objects, files),
        (f"Knossos, {keys} keys", [many_keys], keys),
    ):
        one = cpu_s([*knossos, *given], compiled=False)
        compiled = cpu_s([*knossos, *given], compiled=True)
        row(what, each * count, one, compiled, cpu_s([*search, *given], compiled=True))
    each = measured_on_few(lambda at: cpu_s([*elle, txns[at]], compiled=False), files)
    for what, given, count in (("Elle, 1 file", txns[:1], 1), (f"Elle, {files} files", txns, files)):
        one = cpu_s([*elle, *given], compiled=False)
        row(what, each * count, one, cpu_s([*elle, *given], compiled=True), None)


def measured_on_few(ask: Callable[[int], float], most: int) -> float:
    """Seconds of one question."""
    asked = range(min(FEW, most))
    return sum(ask(at) for at in asked) / len(asked)


def row(what: str, each: float, one: float, compiled: float, search: float | None) -> None:
    own = "–" if search is None else f"{search:.1f}"
    print(
        f"| {what} | {each:.0f} | {one:.1f} | {compiled:.1f} | {own} | {each / compiled:.0f}x |", flush=True
    )


if __name__ == "__main__":
    main()

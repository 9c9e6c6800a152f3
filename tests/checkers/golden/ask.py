"""Make the golden histories of objects again and ask Knossos and Porcupine what they are, and Elle about the
transactions of elle.jsonl, which are written by hand.

WRACKLINE_JVM_CLASSPATH=... python tests/checkers/golden/ask.py --porcupine benchmarks/checkers/porcupine
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.checkers.goldens import ELLE, LINEARIZABLE, Golden, calls, histories, load, transactions
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Model

COUNTS = {
    Model.REGISTER: 150,
    Model.FIFO_QUEUE: 200,
    Model.CAS_REGISTER: 60,
    Model.MULTI_REGISTER: 60,
    Model.MUTEX: 40,
    Model.SET: 40,
    Model.UNORDERED_QUEUE: 40,
    Model.LOG: 300,
    Model.SOME_OF_LOG: 200,
}
LIMIT_S = 10.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--porcupine", type=Path, required=True, help="folder of the Go program")
    chosen = arguments.parse_args()
    made = list(histories(chosen.seed, COUNTS))
    with Bridge() as bridge:
        for golden in made:
            golden["knossos"] = str(bridge.linearizable(calls(golden), deadline_s=LIMIT_S).answer)
        for golden, verdict in zip(made, porcupine(made, chosen.porcupine), strict=True):
            golden["porcupine"] = verdict
        write(LINEARIZABLE, made)
        write(ELLE, [elle(bridge, case) for case in load(ELLE)])


def elle(bridge: Bridge, case: Golden) -> Golden:
    found = bridge.serializable(case["model"], transactions(case), deadline_s=LIMIT_S)
    return {**case, "elle": str(found.answer), "anomalies": sorted(found.anomalies)}


def porcupine(made: list[Golden], folder: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "porcupine")
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=folder, check=True)
        text = b"\n".join(orjson.dumps(golden) for golden in made)
        said = subprocess.run([str(program), str(LIMIT_S)], input=text, capture_output=True, check=True)
    return [orjson.loads(line)["verdict"] for line in said.stdout.splitlines()]


def write(path: Path, goldens: Iterable[Golden]) -> None:
    path.write_bytes(b"".join(orjson.dumps(golden) + b"\n" for golden in goldens))


if __name__ == "__main__":
    main()

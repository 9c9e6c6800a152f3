"""Transactions by hand, and what is decided of them: cases.txt, whose first lines say how it is read.
``python -m tests.checkers.exact.transactions.cases`` writes what is decided anew."""

from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.checkers.exact.transactions.drawn import Drawn, columns
from wrackline.checkers.exact.operations import NEVER
from wrackline.checkers.exact.transactions.columns import NIL
from wrackline.checkers.exact.transactions.decide import decide
from wrackline.checkers.exact.transactions.levels import STRICT
from wrackline.checkers.exact.transactions.placement import Limits
from wrackline.checkers.models.protocol import Outcome

FILE = Path(__file__).with_suffix(".txt")
X, Y = 1, 2
ENOUGH = Limits(60.0, 1 << 30)
LEVELS = ("read-uncommitted", "read-committed", "snapshot-isolation", STRICT)
_KEYS = {"x": X, "y": Y}
_OUTCOMES = {None: Outcome.OK, "failed": Outcome.FAIL, "unknown": Outcome.INFO}
_TXN = re.compile(r"    (\d+) (?:(failed|unknown) )?at (\d+)-(\d*): (.+)")
_MOP = re.compile(r"([rw]) ([xy]) (\[.*?\]|\S+?)(?:, |$)")
_SAID = "\n=> "


@dataclass(frozen=True)
class Case:
    asked: str
    name: str
    model: str
    history: list[Drawn]
    said: str


def _case(block: str) -> Case:
    asked, _, said = block.partition(_SAID)
    title, *lines = asked.splitlines()
    name, _, model = title.removesuffix(")").rpartition(" (")
    return Case(asked, name, model, [_drawn(line) for line in lines], said)


def _drawn(line: str) -> Drawn:
    read = _TXN.fullmatch(line)
    assert read is not None, line
    process, outcome, inv, ret, mops = read.groups()
    done = [[f == "w", _KEYS[key], _value(text)] for f, key, text in _MOP.findall(mops)]
    return Drawn(int(process), int(inv), done, int(ret) if ret else NEVER, _OUTCOMES[outcome])


def _value(text: str) -> Any:
    value = None if text == "nil" else literal_eval(text)
    return tuple(value) if isinstance(value, list) else value


def what_is_decided(case: Case) -> str:
    history = columns(case.history, case.model)
    found = decide(case.model, history, ENOUGH)
    said = [", ".join(found.anomalies)] if found.anomalies else []
    said += [f"refutes {', '.join(found.refuted)}"] if found.refuted else []
    if found.repeated is not None:
        key, value, writers = found.repeated
        said.append(f"{'nil' if value == NIL else value} written to {'_xy'[key]} by {list(writers)}")
    answers = [str(decide(case.model, history, ENOUGH, level=level).answer) for level in LEVELS]
    return "; ".join([*said, ", ".join(answers)])


ABOUT, *_BLOCKS = FILE.read_text(encoding="utf-8").strip().split("\n\n")
CASES = [_case(block) for block in _BLOCKS]

if __name__ == "__main__":
    blocks = [case.asked + _SAID + what_is_decided(case) for case in CASES]
    FILE.write_text("\n\n".join([ABOUT, *blocks]) + "\n", encoding="utf-8")

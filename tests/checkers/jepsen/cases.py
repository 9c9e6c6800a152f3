"""Histories by hand for each checker, and what it says of each: cases.txt, whose first lines say how it is
read. ``python -m tests.checkers.jepsen.cases`` writes what is said anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.checkers.jepsen.events import done, history
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import load_decider

Event = tuple[Any, ...]
FILE = Path(__file__).with_suffix(".txt")
UNDECIDED = ["undecided"]
_TITLE = re.compile(r"(?P<checker>[\w-]+)(?: (?P<settings>{.*?}))?: (?P<name>.+)")
_EVENT = re.compile(r"    (?P<process>\d+) (?:(?P<type>invoke|ok|fail|info) )?(?P<f>[\w-]+) (?P<values>.+)")
_SAID = "\n=> "


@dataclass(frozen=True)
class Case:
    asked: str
    """Its lines up to what is said."""
    checker: str
    name: str
    settings: dict[str, Any]
    events: list[Event]
    said: str
    """What the checker must say of it."""

    @property
    def rules(self) -> list[str]:
        """Those that are broken, each once; UNDECIDED where nobody can tell."""
        return sorted({line.strip().partition(":")[0] for line in self.said.splitlines()[:-1]})


def _case(block: str) -> Case:
    asked, _, said = block.partition(_SAID)
    title, *lines = asked.splitlines()
    about = _TITLE.fullmatch(title)
    assert about is not None, title
    events = [event for line in lines for event in _events(line)]
    return Case(asked, about["checker"], about["name"], json.loads(about["settings"] or "{}"), events, said)


def _events(line: str) -> list[Event]:
    read = _EVENT.fullmatch(line)
    assert read is not None, line
    process, values = int(read["process"]), list(_values(read["values"]))
    return (
        [(process, read["type"], read["f"], *values)] if read["type"] else done(process, read["f"], *values)
    )


def _values(text: str) -> Iterator[Any]:
    while text := text.removeprefix("->").strip():
        value, end = json.JSONDecoder().raw_decode(text)
        yield value
        text = text[end:].strip()


def what_is_said(case: Case) -> str:
    """What the checker says of the case now."""
    checker = load_decider(case.checker, **case.settings)
    assert isinstance(checker, Checker)
    found = checker.check(history(*case.events))
    lines = [f"{one.rule}: {one.sentence} {list(one.operations)}" for one in found.problems]
    lines += [f"undecided: {found.undecided}"] if found.undecided else []
    return "\n   ".join([*lines, str(found.figures)])


ABOUT, *_BLOCKS = FILE.read_text(encoding="utf-8").strip().split("\n\n")
CASES = [_case(block) for block in _BLOCKS]

if __name__ == "__main__":
    blocks = [case.asked + _SAID + what_is_said(case) for case in CASES]
    FILE.write_text("\n\n".join([ABOUT, *blocks]) + "\n", encoding="utf-8")

"""Cases in a line (wrackline.checkers.cases.language) beside the pairs: ``cases.txt`` has the forms
of each anomaly, and what looks like one and is none.

A case has a name, its steps, and after ``=>`` how many findings of which anomaly it shows, and ``where`` that
matters: these and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.checkers.histories import write_parquet
from wrackline.checkers.cases.language import parse
from wrackline.history.model import Event, RunInfo
from wrackline.proving.mutations.mutation import closure
from wrackline.proving.pairs import PAIRS, anomaly_of

_WITHOUT_IDEMPOTENCE = " (without idempotence)"


@dataclass(frozen=True)
class Case:
    name: str
    info: RunInfo
    events: list[Event]
    expected: dict[str, int]
    """Anomaly -> how many findings. Nothing else may be found."""
    where: dict[str, str] = field(default_factory=dict)
    """Anomaly -> ``where`` of its findings."""

    def write(self, directory: Path, row_group: int | None = None) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        write_parquet(directory / "history.parquet", self.info, self.events, row_group)
        return directory


@cache
def all_cases() -> tuple[Case, ...]:
    """Those of the file; of an anomaly that has none there, the bad one of its pair."""
    blocks = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n\n")
    found = [_case(block.strip()) for block in blocks if not block.startswith("#")]
    shown = {anomaly for case in found for anomaly in case.expected}
    rest = {anomaly_of(name): texts[0] for name, texts in PAIRS.items() if anomaly_of(name) not in shown}
    for anomaly, text in rest.items():
        history = parse(text, f"case {anomaly}")
        found.append(Case(anomaly, history.info, history.events, dict.fromkeys(closure({anomaly}), 1)))
    return tuple(found)


def _case(block: str) -> Case:
    case, _, found = block.partition("\n=> ")
    name, *steps = case.splitlines()
    each = re.findall(r"(\d+) ([\w-]+)(?: \(([\w ]+)\))?", found)
    expected = {anomaly: int(count) for count, anomaly, _ in each}
    where = {anomaly: place for _, anomaly, place in each if place}
    assert expected or found == "nothing", block
    idempotence = not name.endswith(_WITHOUT_IDEMPOTENCE)
    history = parse("\n".join(steps), f"case {name}", idempotence=idempotence)
    return Case(name, history.info, history.events, expected, where)

"""The walk on every case of the language: of groups each shows its anomaly and nothing else, its nearest
neighbour nothing, and cases of other families nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkers.anomalies.groups.walked import walk_of
from wrackline.checkers.anomalies.groups import GROUPS
from wrackline.checkers.cases.language import parse
from wrackline.checkers.checks.registry import checks
from wrackline.proving.model.made import write_events
from wrackline.proving.pairs import PAIRS, anomaly_of

OURS = {one.name for one in checks() if one.walk is GROUPS}


def found_in(text: str, folder: Path) -> list[str]:
    case = parse(text, "case")
    return [one["anomaly"] for one in walk_of(write_events(folder, case.info, case.events))[0]]


@pytest.mark.parametrize("name", PAIRS)
def test_a_case_shows_what_it_is_named_for(name: str, tmp_path: Path) -> None:
    bad, good = (found_in(text, tmp_path / kind) for kind, text in zip("bg", PAIRS[name], strict=True))
    assert set(bad) == {anomaly_of(name)} & OURS
    assert good == []


def test_each_anomaly_has_a_case() -> None:
    assert {anomaly_of(name) for name in PAIRS} & OURS == OURS

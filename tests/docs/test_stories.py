"""The table of all stories names what there is, misses nothing, and what it says is missing gets less."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import Page
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.guided.catalogue import SCHEDULES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/known-bugs.md"
WITHOUT_SCHEDULE = 1
"""Stories that the simulator cannot tell. This number may only fall."""
NOT_YET_ON_HOSTS = 0
"""Stories that hosts could tell and do not. This number may only fall."""
HEAD = ["code", "story", "simulator", "hosts", "why not on hosts"]


def table() -> list[dict[str, str]]:
    section = (
        PAGE.read_text(encoding="utf-8")
        .partition("\n## Every story, and where it is told\n")[2]
        .partition("\n## ")[0]
    )
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    head, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert head == HEAD
    return [dict(zip(HEAD, cells, strict=True)) for cells in body]


def code_of(row: dict[str, str]) -> str:
    return row["code"].partition("]")[0].strip("[")


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_bug_of_the_catalogue_has_one_row() -> None:
    codes = [code_of(row) for row in table()]
    assert len(set(codes)) == len(codes)
    catalogue = Page((ROOT / "docs/protocol.md").read_text(encoding="utf-8")).ids
    assert {code.upper() for code in catalogue if re.fullmatch(r"b\d\d", code)} <= set(codes)


def test_every_schedule_of_the_simulator_stands_at_the_row_of_its_code() -> None:
    said = {code_of(row): named(row["simulator"]) for row in table()}
    assert [g.name for g in SCHEDULES.values() if g.name not in said.get(g.id, ())] == []
    told = {name for names in said.values() for name in names}
    assert told == SCHEDULES.keys() | {f"eras:{story.name}" for story in STORIES}


def test_every_suite_that_tells_a_story_has_its_row_and_exists() -> None:
    said = {name for row in table() for name in named(row["hosts"])}
    assert [name for name in sorted(said) if not (ROOT / f"suites/{name}.yaml").is_file()] == []
    # A finding about transactions, positions or groups is no story of replication.
    others = re.compile(
        r"findings/(late-end-txn|abort-position|hidden-commit|deposed-answer|share-renew|last-epoch|failed-dir)"
        r"|-control$"
    )
    suites = {
        f"{folder}/{file.stem}"
        for folder in ("defects", "eras", "findings")
        for file in (ROOT / "suites" / folder).glob("*.yaml")
    }
    assert {name for name in suites if not others.search(name)} <= said


def test_who_is_on_no_host_says_why() -> None:
    for row in table():
        assert (row["hosts"] == "none") == bool(row["why not on hosts"]), row
        assert named(row["hosts"]) or row["hosts"] == "none", row
        assert named(row["simulator"]) or row["simulator"] == "none", row


def test_fewer_stories_are_missing_than_ever() -> None:
    rows = table()
    assert sum(row["simulator"] == "none" for row in rows) == WITHOUT_SCHEDULE
    assert sum(row["why not on hosts"] == "not yet" for row in rows) == NOT_YET_ON_HOSTS

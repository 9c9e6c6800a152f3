"""The plan is a line: whatever a stage takes, a stage before it has given, or the work began with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from wrackline.checkers import plan
from wrackline.checkers.cases.language import parse
from wrackline.checkers.engine.executor import LocalExecutor
from wrackline.checkers.inputs.runs import load_run
from wrackline.checkers.plan import FIND, JUDGE, Stage, Work, find, judge
from wrackline.proving.model.made import write_events

EVERYWHERE = {"executor", "runs", "parts", "context", "counts"}
"""What any stage may read: how it is carried out, what was asked, and how many rows have each mark."""
CASES = (
    "p: a+ | q: b@0 | e: end 1 | final b@0 a@1",
    "p: txn 1 a@0 | c: from 0 | c: got a@0 | final",
    "p: a@0 | r: read nothing | final a@0",
)
"""They go through every stage: records without an offset, a transaction that is lost, a register."""


def missing_inputs(stages: tuple[Stage, ...]) -> list[tuple[str, str]]:
    """(stage, input) for each input that no stage before it gives."""
    there = {"source", "context"}
    found = []
    for stage in stages:
        found += [(stage.run.__name__, name) for name in stage.inputs if name not in there]
        there |= set(stage.outputs)
    return found


def test_each_stage_takes_what_stages_before_it_have_given() -> None:
    assert missing_inputs((*JUDGE, *FIND)) == []
    assert missing_inputs((*FIND, *JUDGE))


def test_stages_hand_on_fields_of_the_work_and_leave_none_that_it_lacks_out() -> None:
    names = {one.name for one in fields(Work)}
    given = {name for stage in (*JUDGE, *FIND) for name in stage.outputs}
    assert all({*stage.inputs, *stage.outputs} <= names for stage in (*JUDGE, *FIND))
    assert {one.name for one in fields(Work) if one.default is MISSING and not one.init} <= given


class Watched(Work):
    """A work that keeps which of its fields were read."""

    def __getattribute__(self, name: str) -> object:
        if name != "read" and name in FIELDS:
            self.__dict__.setdefault("read", set()).add(name)
        return object.__getattribute__(self, name)


FIELDS = {one.name for one in fields(Work)}


def reads(stages: tuple[Stage, ...], work: Work) -> Iterator[tuple[Stage, set[str]]]:
    """Carries the stages out; each with the fields that it reads."""
    for stage in stages:
        work.__dict__["read"] = set()
        stage.run(work)
        yield stage, set(work.__dict__["read"])


@pytest.mark.parametrize("text", CASES)
def test_a_stage_reads_what_it_says_that_it_takes(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = parse(text)
    write_events(tmp_path, case.info, case.events)
    monkeypatch.setattr(plan, "Work", Watched)
    monkeypatch.setattr(plan, "JUDGE", ())
    work = judge(LocalExecutor(), [load_run(tmp_path)])
    for stage, read in reads((*JUDGE, *FIND), work):
        more = read - EVERYWHERE - {*stage.inputs, *stage.outputs}
        assert not more, f"{stage.run.__name__} reads {more} too"
    monkeypatch.setattr(plan, "FIND", ())
    assert find(work) is not None

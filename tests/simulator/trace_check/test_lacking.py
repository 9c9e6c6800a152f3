"""A trace that is not there, or not whole, accuses nobody: what rests on its node is not decided, and that is
said."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from tests.simulator.trace_check.simulated import Tracing, watched
from tests.simulator.trace_check.test_verdicts import ERA, ask, run
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.catalogue import SCHEDULES
from wrackline.simulator.guided.schedule import play
from wrackline.simulator.trace_check.verdicts import Judged, judge

GOOD: Final[dict[str, dict[str, Any]]] = {
    "combined": {"seed": 1, "controllers": 3, "combined": True, "partitions": 2},
    "quorum": {"seed": 1, "controllers": 3},
    "power cuts": {"seed": 2, "max_lossy": 3, "unclean": True},
    "kip101": {"seed": 3, "profile": "kip101"},
    "zk08": {"seed": 1, **ERA},
    "zk08-kip101": {"seed": 3, **ERA, "profile": "zk08-kip101"},
}
"""Runs in which nothing is broken."""
OFTEN: Final = tuple(range(0, 100, 4))
PARTS: Final = (0, 10, 25, 50, 75, 90, 99)
"""So many per cent of the lines are left."""
_good = cache(lambda name: run(seconds=8.0, **GOOD[name]))


def asked(tracing: Tracing, name: str, *, without: NodeId, percent: int | None) -> Judged:
    """With the trace of one node cut short; None: not there."""
    traces = []
    for trace in tracing.traces():
        lines = list(trace.text)
        if trace.file == f"n{without}/trace.jsonl":
            if percent is None:
                continue
            lines = lines[: len(lines) * percent // 100]
        trace.text = lines
        traces.append(trace)
    return ask(traces, GOOD[name].get("profile", "kip966"))


@pytest.mark.parametrize(
    "percent", [None, *PARTS, *(pytest.param(p, marks=pytest.mark.nightly) for p in OFTEN)]
)
@pytest.mark.parametrize("name", GOOD)
def test_whichever_trace_is_missing_or_cut_short_nothing_is_broken(name: str, percent: int | None) -> None:
    tracing = _good(name)
    for node in tracing.lines:
        judged = asked(tracing, name, without=node, percent=percent)
        assert judged.broken == (), (node, judged.broken[0])


@pytest.mark.parametrize("name", GOOD)
def test_a_whole_trace_is_not_taken_for_one_that_lacks_lines(name: str) -> None:
    judged = ask(_good(name).traces(), GOOD[name].get("profile", "kip966"))
    assert judged.blind == ()
    assert judged.until_ns is None


def test_what_is_not_decided_is_said_with_the_node() -> None:
    judged = asked(_good("quorum"), "quorum", without=3, percent=None)
    [said] = [line for line in judged.blind if line.startswith("t-0: node 3: ")]
    assert "its trace lacks" in said


def test_a_controller_whose_commits_nobody_tells_ends_what_can_be_said() -> None:
    judged = asked(_good("power cuts"), "power cuts", without=101, percent=50)
    assert any("no trace tells all that was committed up to" in line for line in judged.blind)


def test_what_the_collector_knows_to_be_missing_counts_too() -> None:
    """Whatever the other traces show of it."""
    judged = judge(
        [trace for trace in _good("quorum").traces() if trace.file != "n3/trace.jsonl"],
        profile="kip966",
        flush_mode="on-roll",
        recovery_strategy="balanced",
        missing={3: "the host did not answer"},
    )
    assert judged.broken == ()
    assert "t-0: node 3: the host did not answer" in judged.blind


@pytest.mark.parametrize("name", ["elr_not_cleared", "hw_no_minisr"])
def test_with_whole_traces_of_those_concerned_a_defect_is_found_as_ever(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(monkeypatch) as made:
        play(SCHEDULES[name], broken=True)
    assert made.judged().broken

"""The traces of a cluster say of it what an observer says who saw everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import orjson
import pytest

from tests.simulator.trace_check.simulated import Tracing, watched
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.story import Story, play_on
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.guided import stage
from wrackline.simulator.guided.catalogue import SCHEDULES
from wrackline.simulator.guided.schedule import play
from wrackline.simulator.run.session import Run
from wrackline.simulator.trace_check.coverage import PARTLY
from wrackline.simulator.trace_check.lines import Trace
from wrackline.simulator.trace_check.verdicts import Judged, judge

ROUTINE = (
    "trunc_hw",
    "elr_not_cleared",
    "no_maximal_isr",
    "ignore_unclean",
    "hw_no_minisr",
    "zombie_leader",
    "no_topic_id",
    "whole_isr_loses_power",
    "raft_keep_role",
)


def told(judged: Judged) -> set[tuple[str, str]]:
    return {(one.id, one.tp) for one in judged.broken}


ERA = {"profile": "zk08", "brokers": 4, "fault_every_ms": 700.0}


@pytest.mark.parametrize("broken", [True, False], ids=["defect", "rule"])
@pytest.mark.parametrize(
    "name",
    [
        name if name in ROUTINE else pytest.param(name, marks=pytest.mark.nightly)
        for name, guided in SCHEDULES.items()
        if not guided.setting.upgrade_to  # what comes after ZooKeeper's time is not asked of traces
    ],
)
def test_traces_show_what_an_observer_saw(name: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch) as made:
        play(SCHEDULES[name], broken=broken)
    judged = made.judged()
    in_part = {seen for seen in made.seen() if seen[0] in PARTLY}
    assert told(judged) <= made.seen()
    assert made.seen() - told(judged) <= in_part
    assert not judged.blind
    assert judged.unordered == 0


@pytest.mark.parametrize("profile", ["zk08", "zk08-kip101"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_traces_of_the_era_show_what_an_observer_saw(
    story: Story, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(monkeypatch) as made:
        play_on(stage.Stage(story.setting.but(profile=profile)), story)
    judged = made.judged()
    assert told(judged) == made.seen()
    assert not judged.blind
    assert judged.unordered == 0
    assert judged.steps > 100


def test_what_a_defect_breaks_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch) as made:
        play(SCHEDULES["elr_not_cleared"], broken=True)
    judged = made.judged()
    first = min(judged.broken, key=lambda one: one.at_ns)
    assert (first.id, first.tp) == ("I14", "t-0")
    file, _, number = first.place.rpartition(":")
    [trace] = [each for each in made.tracing.traces() if each.file == file]
    line = orjson.loads(list(trace.text)[int(number) - 1])
    assert line["node"] == first.node
    assert line["time_ns"] == first.at_ns


def run(**setup: Any) -> Tracing:
    session = Run(Setup(**setup))
    tracing = Tracing(session.world)
    session.world.watchers.append(tracing)
    for part in (session.boot, session.main, session.heal, session.drain):
        part()
        assert not session.found
    return tracing


def ask(traces: list[Trace], profile: str = "kip966") -> Judged:
    return judge(traces, profile=profile, flush_mode="on-roll", recovery_strategy="balanced")


@pytest.mark.parametrize(
    "setup",
    [
        {"seed": 1, "controllers": 3, "combined": True, "partitions": 2},
        {"seed": 2, "max_lossy": 3, "unclean": True},
        {"seed": 3, "profile": "kip101"},
        {"seed": 1, **ERA},
        {"seed": 3, **ERA, "profile": "zk08-kip101"},
    ],
    ids=["quorum", "power cuts", "kip101", "zk08", "zk08-kip101"],
)
def test_a_run_without_a_defect_breaks_nothing(setup: dict[str, Any]) -> None:
    judged = ask(run(seconds=8.0, **setup).traces(), setup.get("profile", "kip966"))
    assert judged.broken == ()
    assert (judged.unordered, judged.unread, judged.blind) == (0, 0, ())
    assert judged.steps > 100
    assert "I01" in judged.checked


@pytest.mark.parametrize(
    ("seed", "setup"),
    [
        (0, {"controllers": 3}),
        (9, {"controllers": 3}),
        (1, ERA),
        *(
            pytest.param(seed, setup, marks=pytest.mark.nightly)
            for seed in range(30)
            for setup in ({"controllers": 3}, {"max_lossy": 3, "unclean": True}, {"profile": "kip101"}, ERA)
        ),
    ],
)
def test_clocks_that_are_apart_change_nothing(seed: int, setup: dict[str, Any]) -> None:
    """By as much as a failover takes, and differently at each node: who rests on whom is in the lines."""
    tracing = run(seed=seed, seconds=8.0, **setup)
    random = Random(seed)
    for _ in range(3):
        ahead = {node: random.randint(-80_000_000, 80_000_000) for node in tracing.lines}
        judged = ask(tracing.traces(ahead_ns=ahead), setup.get("profile", "kip966"))
        assert judged.broken == ()
        assert (judged.unordered, judged.blind) == (0, ())


def test_where_a_controller_takes_over_from_zookeeper_the_traces_end() -> None:
    tracing = run(seed=4, seconds=16.0, kinds=(), profile="zk08-kip101", upgrade_to="kip101")
    judged = ask(tracing.traces(), "zk08-kip101")
    fenced = [
        fields["time_ns"]
        for lines in tracing.lines.values()
        for fields in map(orjson.loads, lines)
        if fields["kind"] == "migration"
    ]
    assert judged.until_ns == min(fenced)
    assert judged.broken == ()
    assert (judged.unordered, judged.unread, judged.blind) == (0, 0, ())
    assert judged.steps > 100


def test_lines_cut_short_and_lines_that_are_gone_are_told() -> None:
    tracing = run(seed=5, seconds=4.0)
    appends = [
        (lines, at)
        for lines in tracing.lines.values()
        for at, line in enumerate(lines)
        if b'"kind":"append"' in line
    ]
    lines, at = appends[0]
    lines[at] = lines[at][:30]
    judged = ask(tracing.traces())
    whole = ask(run(seed=5, seconds=4.0).traces())
    assert judged.unread == 1
    assert judged.until_ns is not None
    assert judged.steps < whole.steps
    assert judged.broken == whole.broken == ()


def test_of_records_that_no_trace_tells_of_nothing_is_said() -> None:
    """The end of a life is gone, as after a kill in the middle of a step; the next life finds the records."""
    tracing = run(seed=2, seconds=8.0, kinds=("kill", "power"), fault_every_ms=700.0, produce_every_ms=20.0)
    shorter = 0
    for node, lines in tracing.lines.items():
        kept: list[bytes] = []
        for line in lines:
            tail = kept[-4:] if b'"kind":"start"' in line else []
            appends = [at for at, one in enumerate(tail, -len(tail)) if b'"kind":"append"' in one]
            if appends and not any(b'"kind":"stop"' in one for one in tail):
                del kept[appends[-1] :]
                shorter += 1
            kept.append(line)
        tracing.lines[node] = kept
    judged = ask(tracing.traces())
    assert shorter > 3
    assert judged.broken == ()
    assert judged.until_ns is None
    assert [one.split(":")[0] for one in judged.blind] == ["t-0"]


def _role_of(traces: list[Trace], change: Mapping[str, Any]) -> list[Trace]:
    """The traces, with one more life of the controller that followed last: its first line says this of its
    role."""
    file, line = next(
        (trace, fields)
        for trace in traces
        for fields in map(orjson.loads, reversed(list(trace.text)))
        if fields["kind"] == "raft_role" and fields["role"] == "follower"
    )
    seq = max(fields["seq"] for fields in map(orjson.loads, file.text) if fields["node"] == line["node"])
    end_ns = max(fields["time_ns"] for trace in traces for fields in map(orjson.loads, trace.text))
    spoilt = {**line, **change, "time_ns": end_ns + 1, "seq": seq + 1, "incarnation": str(UUID(int=9))}
    return [
        replace(trace, text=[*trace.text, orjson.dumps(spoilt)]) if trace is file else trace
        for trace in traces
    ]


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, set()),
        ({"role": "leader"}, {"Q01", "Q08"}),
        ({"epoch": -1}, {"Q05"}),
        ({"leader": -1}, {"Q08"}),
        ({"role": "candidate", "leader": -1, "voted_for": -1}, {"Q08"}),
    ],
    ids=["a rule", "Q01", "Q05", "Q08", "Q08 of a candidate"],
)
def test_roles_of_voters_are_asked(change: dict[str, Any], broken: set[str]) -> None:
    traces = run(seed=1, seconds=4.0, controllers=3).traces()
    assert {name for name, _ in told(ask(_role_of(traces, change)))} == broken


def test_a_leader_that_keeps_its_role_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(monkeypatch) as made:
        play(SCHEDULES["raft_keep_role"], broken=True)
    assert ("Q01", "") in told(made.judged())

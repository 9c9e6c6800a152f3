"""What a system wrote down becomes rows of the history, on the run's clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wrackline.checkers.inputs.cluster_history import cluster_of
from wrackline.harness.report.draw.cluster_chart import cluster_chart, span_tip
from wrackline.harness.run.clocks import CLOCKS, Clocks
from wrackline.harness.run.live.cluster_history import events
from wrackline.history.model import CONTROL, Event, Type
from wrackline.pages.frame import PAGE
from wrackline.systems.metadata_changes import Change, Chronicle, UncleanRecovery

S = 1_000_000_000
CLOCK = Clocks(start_ns=1_000 * S, ahead_ns={"c1": 2 * S})
NODES = {"1": "n1", "2": "n2", "3": "n3"}
FIRST = Change(
    at_ns=1_005 * S,
    host="n1",
    place="offset 4",
    topic="log",
    partition=0,
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    replicas=(1, 2, 3),
    isr=(1, 2, 3),
)
FOUND = Chronicle(
    "a log",
    (
        FIRST,
        replace(FIRST, at_ns=1_009 * S, host="c1", isr=(1,), elr=(2,), partition_epoch=1),
        replace(
            FIRST, at_ns=1_008 * S, leader=3, leader_epoch=1, isr=(3,), partition_epoch=2, recovering=True
        ),
    ),
    (UncleanRecovery(1_008 * S, "n1", "log", 0, 3, "best log", "balanced", {"logs": {"3": [4, 20]}}),),
    ("log-0: epoch 9",),
)


def rows() -> list[Event]:
    polled = {"topic": "log", "partition": 0, "leader": 2, "leader_epoch": 7, "isr": [2], "replicas": [2]}
    return [
        Event(CONTROL, Type.INFO, "cluster", time_ns=6 * S, extra={"partitions": [polled]}),
        *events(FOUND, CLOCK, "log"),
    ]


def test_times_are_the_runs_whatever_the_hosts_clock_showed() -> None:
    told = [(one.f, one.partition, one.leader_epoch, (one.extra or {}).get("at_ns")) for one in rows()[1:]]
    assert told == [
        ("partition", 0, 0, 5 * S),
        ("partition", 0, 0, 7 * S),
        ("partition", 0, 1, 8 * S),
        ("unclean-recovery", 0, None, 8 * S),
        ("chronicle", None, None, None),
    ]


def test_what_is_missing_of_any_topic_is_told() -> None:
    other = Chronicle("a log", (replace(FIRST, topic="log-0"),), missing=("log-0-0: epoch 2",))
    both = [*events(FOUND, CLOCK, "log"), *events(other, CLOCK, "log-0")]
    for order in (both, [*both[-2:], *both[:-2]]):
        cluster = cluster_of(order, NODES, 20 * S)
        assert set(cluster.missing) == {"log-0: epoch 9", "log-0-0: epoch 2"}
        assert cluster.source == "a log"
        assert [(label, len(spans)) for label, spans in cluster.spans.items()] == [
            ("log-0", 3),
            ("log-0-0", 1),
        ]


def test_clocks_that_disagree_do_not_turn_the_order_round() -> None:
    later = replace(FIRST, at_ns=1_004 * S, partition_epoch=1)
    first, second, _ = events(Chronicle("a log", (FIRST, later)), CLOCK, "log")
    assert [(one.extra or {})["partition_epoch"] for one in (first, second)] == [0, 1]
    assert [(one.extra or {})["at_ns"] for one in (first, second)] == [5 * S, 5 * S]


def test_the_report_shows_what_was_written_down_and_not_what_was_polled() -> None:
    cluster = cluster_of(rows(), NODES, 20 * S)
    assert cluster.source == "a log"
    assert cluster.missing == ("log-0: epoch 9",)
    spans = cluster.spans["log-0"]
    assert [(one.begin_ns // S, one.end_ns // S, one.leader, one.isr, one.elr) for one in spans] == [
        (5, 7, "n1", ("n1", "n2", "n3"), ()),
        (7, 8, "n1", ("n1",), ("n2",)),
        (8, 20, "n3", ("n3",), ()),
    ]
    assert "leader epoch 1, partition epoch 2" in span_tip(spans[2])
    assert "has not taken over yet" in span_tip(spans[2])
    [recovery] = cluster.recoveries
    assert (recovery.winner, recovery.strategy, recovery.logs) == ("n3", "balanced", "n3: 20 (epoch 4)")
    drawn = cluster_chart(cluster.spans, ("n1", "n2", "n3"), (), 20 * S, cluster.recoveries, (), PAGE)
    assert drawn.count("unclean recovery, n3 leads") == 1


def test_without_a_chronicle_the_answers_are_shown() -> None:
    cluster = cluster_of(rows()[:1], NODES, 20 * S)
    assert cluster.source == ""
    assert [one.leader for one in cluster.spans["log-0"]] == ["n2"]


def test_clocks_are_kept_beside_the_history(tmp_path: Path) -> None:
    CLOCK.write(tmp_path)
    assert Clocks.read(tmp_path) == CLOCK
    (tmp_path / CLOCKS).write_text('{"start_ns": 1}')
    with pytest.raises(ValueError, match="ahead_ns"):
        Clocks.read(tmp_path)

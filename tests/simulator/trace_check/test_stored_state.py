"""Of a cluster that writes no trace: each invariant that is asked is broken by one change of its history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wrackline.broker.model.types import TopicPartition
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.trace_check.coverage import WRITTEN_PARTLY
from wrackline.simulator.trace_check.quorum_logs import OF_QUORUM
from wrackline.simulator.trace_check.stored_state import Cluster, Entry, Log, State, judge_written
from wrackline.simulator.trace_check.verdicts import Judged

T = TopicPartition("log", 0)
KEEPS_ELR = Cluster((1, 2, 3), elr=True, min_isr={"log": 2})


def state(number: int, leader: int, epoch: int, isr: str, elr: str = "") -> State:
    ids = [tuple(int(one) for one in text) for text in (isr, elr)]
    return State(number, f"offset {number}", 1, T, leader, epoch, number, (1, 2, 3), *ids)


STATES = (
    state(0, 1, 0, "123"),
    state(1, 1, 0, "13"),
    state(2, 3, 1, "3", elr="1"),
    state(3, -1, 2, "", elr="13"),
    state(4, 3, 3, "3", elr="1"),
    state(5, 3, 3, "13"),
    state(6, 3, 3, "123"),
)
"""1 leads, 2 leaves, 1 is fenced, 3 too; 3 comes back, then the others."""
RECORDS = tuple(
    Entry(offset, epoch, 100 + offset) for offset, epoch in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 3)]
)
EPOCHS = ((0, 0), (1, 2), (3, 4), (4, 5))
"""The last is of a leader that has written nothing."""
LOGS = (
    Log(9, 1, T, True, 0, 5, 5, RECORDS, EPOCHS),
    Log(9, 2, T, True, 2, 5, 4, RECORDS[2:], ((1, 2), (3, 4))),
    Log(9, 3, T, True, 0, 5, 5, RECORDS, EPOCHS),
)


def ask(states: tuple[State, ...] = STATES, logs: tuple[Log, ...] = LOGS, **more: Cluster) -> Judged:
    return judge_written(states, logs, more.get("cluster", KEEPS_ELR), source="a log", missing=())


def with_state(number: int, **changes: object) -> tuple[State, ...]:
    return tuple(replace(one, **changes) if one.at_ns == number else one for one in STATES)  # type: ignore[arg-type]


def with_log(node: int, **changes: object) -> tuple[Log, ...]:
    return tuple(replace(one, **changes) if one.node == node else one for one in LOGS)  # type: ignore[arg-type]


def test_what_is_whole_breaks_nothing() -> None:
    found = ask()
    assert found.broken == ()
    assert (found.steps, found.lines) == (10, 7 + 13)
    assert set(found.checked) == set(WRITTEN_PARTLY)
    assert {*found.checked, *found.undecided} == {*(kind.id for kind in INVARIANTS), *OF_QUORUM}


OTHERS = (*RECORDS[:3], Entry(3, 1, 999), RECORDS[4])
LATER = (*RECORDS[:3], Entry(3, 2, 103), RECORDS[4])


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("I12", ask(with_state(5, leader_epoch=2))),
        ("I12", ask(with_state(6, partition_epoch=5))),
        ("I12", ask(with_state(6, partition_epoch=8))),
        ("I13", ask(with_state(5, leader=1))),
        ("I14", ask(with_state(6, isr=(1, 2, 3, 4)))),
        ("I14", ask(with_state(4, elr=(1, 3)))),
        ("I14", ask(with_state(5, elr=(2,)))),
        ("I14", ask(with_state(4, elr=(7,)))),
        ("I14", ask(with_state(4, isr=(1,), elr=()))),
        ("I14", ask(with_state(3, isr=()), cluster=replace(KEEPS_ELR, elr=False))),
        ("I02", ask(logs=with_log(1, leo=4, high_watermark=4, entries=RECORDS[:4], epochs=EPOCHS[:2]))),
        ("I03", ask(logs=with_log(3, entries=LATER, epochs=None))),
        ("I10", ask(logs=with_log(2, high_watermark=1))),
        ("I15", ask(logs=with_log(1, epochs=((0, 0), (3, 4))))),
        ("I15", ask(logs=with_log(1, epochs=((0, 0), (1, 2), (1, 4))))),
        ("I15", ask(logs=with_log(1, epochs=()))),
    ],
)
def test_one_change_breaks_one_invariant(wanted: str, told: Judged) -> None:
    assert {one.id for one in told.broken} == {wanted}, told.broken


def test_two_records_of_one_epoch_at_one_offset_are_two_leaders_and_logs_that_differ() -> None:
    """Above the high watermarks the logs may differ, and one epoch still has one leader."""
    assert {one.id for one in ask(logs=with_log(3, entries=OTHERS)).broken} == {"I03", "I13"}
    low = tuple(replace(one, high_watermark=3) for one in with_log(3, entries=OTHERS))
    [broken] = ask(logs=low).broken
    assert (broken.id, broken.tp, broken.node) == ("I13", "log-0", 3)


def test_what_may_not_be_there_excuses_what_rests_on_it() -> None:
    """A log that lacks lines skips epochs. Without MinISR nobody knows when an ELR must be empty."""
    gap = tuple(one for one in STATES if one.at_ns != 5)
    assert {one.id for one in ask(gap).broken} == {"I12"}
    found = judge_written(gap, LOGS, KEEPS_ELR, source="a log", missing=("offset 5",))
    assert found.broken == ()
    assert found.blind == ("what is not in a log: offset 5",)
    large = with_state(5, elr=(2,))
    assert ask(large, cluster=replace(KEEPS_ELR, min_isr={})).broken == ()
    assert {
        one.id for one in ask(with_state(4, elr=(3,)), cluster=replace(KEEPS_ELR, min_isr={})).broken
    } == {"I14"}

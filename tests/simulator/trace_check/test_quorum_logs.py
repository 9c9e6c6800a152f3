"""Of a quorum's own history each rule is broken by one change of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wrackline.simulator.trace_check.quorum_logs import OF_QUORUM, QuorumChange, QuorumLog, judge_quorum
from wrackline.simulator.trace_check.stored_state import Cluster, judge_written

A, B, C, D, OTHER_B = (1, "a"), (2, "b"), (3, "c"), (4, "d"), (2, "z")
CHANGES = (
    QuorumChange(-1, 0, 1, voters=(A, B, C)),
    QuorumChange(0, 1, 2, leader=1),
    QuorumChange(1, 1, 3, voters=(A, B, C)),
    QuorumChange(20, 1, 4, voters=(A, B, C, D)),
    QuorumChange(30, 1, 5, voters=(B, C, D)),
    QuorumChange(31, 2, 6, leader=4),
    QuorumChange(40, 2, 7, voters=(C, D)),
    QuorumChange(50, 2, 8, voters=(OTHER_B, C, D)),
)
"""D joins, A, which leads, leaves, and B comes back with another disk."""
EPOCHS = ((1, 0), (2, 31))
LOGS = (
    QuorumLog(2, 0, 60, EPOCHS, CHANGES),
    QuorumLog(3, 0, 58, EPOCHS, CHANGES),
    QuorumLog(4, 25, 60, ((1, 25), (2, 31)), CHANGES[4:]),
    QuorumLog(1, 0, 33, ((1, 0),), (*CHANGES[:4], QuorumChange(31, 1, 6, voters=(A, B, D)))),
)
"""The log of 1, which was removed and stopped, has an end that nobody committed."""


def broken(*logs: QuorumLog) -> list[tuple[str, str]]:
    return [(one.id, one.message) for one in judge_quorum(logs)]


def with_change(offset: int, changed: QuorumChange | None, log: QuorumLog = LOGS[0]) -> QuorumLog:
    changes = (changed if one.offset == offset else one for one in log.changes)
    return replace(log, changes=tuple(one for one in changes if one is not None))


def test_what_is_whole_breaks_nothing() -> None:
    assert broken(*LOGS) == []
    judged = judge_written((), (), Cluster((), elr=True, min_isr={}), quorum=LOGS, source="", missing=())
    assert set(OF_QUORUM) <= set(judged.checked)
    assert not set(OF_QUORUM) & set(judged.undecided)
    without = judge_written((), (), Cluster((), elr=True, min_isr={}), source="", missing=())
    assert not set(OF_QUORUM) & set(without.checked)
    assert set(OF_QUORUM) <= set(without.undecided), "nobody wrote a quorum down"


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (
            with_change(31, QuorumChange(31, 2, 6, leader=3)),
            ("Q01", "4 and 3 both lead in epoch 2"),
        ),
        (replace(LOGS[0], epochs=((1, 0), (2, 31), (1, 55))), ("Q05", "epoch 1 follows epoch 2")),
        (
            with_change(30, QuorumChange(30, 1, 5, voters=(B, D))),
            ("Q12", "voters 1-a, 2-b, 3-c, 4-d are followed by 2-b, 4-d"),
        ),
        (
            with_change(40, None),
            ("Q12", "voters 2-b, 3-c, 4-d are followed by 2-z, 3-c, 4-d"),
        ),
        (
            with_change(40, QuorumChange(40, 2, 7, voters=(B, C, D))),
            ("Q13", "4 has 3-c, 4-d, 2 has 2-b, 3-c, 4-d"),
        ),
        (
            with_change(31, QuorumChange(31, 2, 6, leader=1)),
            ("Q14", "1 leads in epoch 2 and is none of 2-b, 3-c, 4-d"),
        ),
    ],
    ids=["Q01", "Q05", "Q12", "Q12 of a disk", "Q13", "Q14"],
)
def test_one_change_breaks_it(log: QuorumLog, found: tuple[str, str]) -> None:
    alone = found[0] in ("Q05", "Q12", "Q14")
    assert found in broken(*(() if alone else LOGS[1:3]), log)


def test_a_set_that_one_lacks_breaks_it_but_not_beyond_its_end() -> None:
    lacking = with_change(50, None, LOGS[1])
    assert ("Q13", "2 has 2-z, 3-c, 4-d, 3 has none") in broken(LOGS[0], lacking)
    assert broken(LOGS[0], replace(lacking, end=45)) == []

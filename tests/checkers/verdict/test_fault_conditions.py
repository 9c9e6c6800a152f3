"""A run passes only where every fault was proved, was undone by its own undo, and hit who had its role."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checkers.good_runs import PLACE, SECOND, decided, good_run, missing, unmet
from wrackline.checkers.inputs.runs import Fault, Run, Sample
from wrackline.history.model import PlanInfo

RESTORED = "every fault was undone by its own undo"
AIMED = "every fault hit the node of its role"


def with_fault(**changes: Any) -> Run:
    run = good_run()
    run.faults = [replace(run.faults[0], **changes)]
    return run


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"restored": False, "restoration": "process 5 on n1 is stopped"},
            "not restored: process 5 on n1 is stopped",
        ),
        (
            {"restored": None, "restoration": "n1 had no power to be looked at"},
            "nobody could tell: n1 had no power to be looked at",
        ),
        ({"restored": None}, "not on record"),
        ({"error": "n1: the host did not answer (tried 4 times)"}, "n1: the host did not answer"),
    ],
)
def test_a_fault_that_was_not_undone_is_no_pass(changes: dict[str, Any], why: str) -> None:
    run = with_fault(**changes)
    [condition] = unmet(run)
    assert condition.name == RESTORED
    assert condition.detail.startswith(f"f1 (kill of n1): {why}")
    assert decided(run)["exit_code"] == 3


def test_what_healing_repairs_is_no_pass_and_a_run_that_never_healed_is_none() -> None:
    run = good_run()
    run.course.repairs = ("n3: process 5359 woken up",)
    [condition] = unmet(run)
    assert (condition.name, condition.detail) == (
        RESTORED,
        "healing had to repair: n3: process 5359 woken up",
    )
    run.course.repairs = None
    [condition] = unmet(run)
    assert (condition.name, condition.detail) == (RESTORED, "the run ended before it was healed")


def test_a_fault_that_never_came_into_force_has_nothing_to_restore() -> None:
    run = with_fault(undo_ns=None, restored=None, proved=False, error="n1 has no leader now")
    assert missing(run) == ["every fault proved"]


def seen(run: Run, *samples: tuple[float, int, int, tuple[int, ...]]) -> Run:
    """What metadata said: at so many seconds, the leader, its epoch, the ISR."""
    run.cluster[PLACE] = [
        Sample(round(at_s * SECOND), leader, epoch, isr, (1, 2, 3)) for at_s, leader, epoch, isr in samples
    ]
    return run


ALL = (1, 2, 3)


@pytest.mark.parametrize(
    ("role", "samples", "wrong"),
    [
        # The fault of n1 begins at 20 s.
        ("leader(log-0)", [(19.5, 1, 4, ALL), (20.5, 2, 5, (2, 3))], False),
        ("leader(log-0)", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], True),
        ("leader(log-0)", [(2.0, 2, 4, ALL), (55.0, 2, 4, ALL)], True),
        ("leader(log-0)", [(19.5, 2, 4, ALL), (20.5, 3, 5, ALL)], True),
        ("leader(log-0)", [(19.5, 2, 4, ALL), (20.5, 1, 5, ALL)], False),
        ("leader(log-0)", [(19.5, 2, 4, ALL), (20.5, 3, 6, ALL)], False),
        ("leader(log-0)", [(19.5, 2, 4, ALL)], False),
        ("leader", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], True),
        ("clients of leader(log-0)", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], True),
        ("follower(log-0)", [(19.5, 1, 4, ALL), (20.5, 1, 4, ALL)], True),
        ("follower(log-0)", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], False),
        ("follower(log-0)", [(19.5, 2, 4, (2, 3)), (20.5, 2, 4, (2, 3))], True),
        ("follower(log-0)", [(10.0, 2, 4, (2, 3)), (20.5, 2, 4, (2, 3))], False),
        ("isr-last(log-0)", [(19.5, 2, 4, (1, 2)), (20.5, 2, 4, (1, 2))], True),
        ("isr-last(log-0)", [(19.5, 2, 4, (2, 1)), (20.5, 2, 4, (2, 1))], False),
        ("elr(log-0)", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], True),
        ("1 of replicas(log-0)", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], False),
        ("n1", [], False),
        ("n2", [], True),
        ("1 of n2,n3", [], True),
        ("one", [(19.5, 2, 4, ALL), (20.5, 2, 4, ALL)], False),
    ],
)
def test_a_role_is_held_against_what_the_cluster_said(
    role: str, samples: list[tuple[float, int, int, tuple[int, ...]]], wrong: bool
) -> None:
    run = seen(with_fault(role=role), *samples)
    assert missing(run) == ([AIMED] if wrong else []), unmet(run)


@pytest.mark.parametrize(
    ("role", "leader", "wrong"),
    [
        ("leader(__consumer_offsets-3)", 1, False),
        ("leader(__consumer_offsets-3)", 3, True),
        ("leader", 1, True),  # a bare role is of the run's topics
    ],
)
def test_a_partition_of_an_internal_topic_counts_where_it_is_named(
    role: str, leader: int, wrong: bool
) -> None:
    run = seen(with_fault(role=role), (19.5, 2, 4, ALL), (20.5, 2, 4, ALL))
    run.cluster["__consumer_offsets", 3] = [
        Sample(round(at_s * SECOND), leader, 7, ALL, ALL) for at_s in (19.5, 20.5)
    ]
    assert missing(run) == ([AIMED] if wrong else [])


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ([(19, 2), (21, 2)], True),
        ([(19, 1), (21, 2)], False),
        ([(19, 2), (21, 1)], False),
        ([(19, 2)], False),
    ],
)
def test_the_active_controller_is_held_against_it_too(said: list[tuple[int, int]], wrong: bool) -> None:
    run = with_fault(role="controller")
    run.controllers = [(at_s * SECOND, node) for at_s, node in said]
    assert missing(run) == ([AIMED] if wrong else [])


def test_faults_of_a_guided_schedule_are_aimed_by_the_schedule() -> None:
    """It says whom each step hits when the schedule begins; the words beside it are for readers."""
    run = seen(good_run(plan=PlanInfo(60.0, {}, "trunc-hw")), (19.5, 2, 4, ALL), (20.5, 2, 4, ALL))
    run.course.guided = {"f1": "kill"}
    run.faults = [Fault("f1", "kill", ("n1",), "leader(log-0)", *([20 * SECOND] * 4), True, restored=True)]
    assert missing(run) == []

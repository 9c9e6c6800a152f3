"""Faults that are begun and ended by hand, on a fleet in memory: recorded and undone as those of a plan
are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded
from tests.nemesis.test_injection import ALL_PHASES
from wrackline.nemesis.faults.processes.processes import KillSpec, PauseSpec
from wrackline.nemesis.heal import NemesisError
from wrackline.nemesis.interactive import NemesisByHand
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load

LEADER = KillSpec(fault="kill", target="leader(log-0)")


@pytest.fixture
def nemesis(fleet: FakeFleet, system: FakeSystem, recorded: Recorded) -> Iterator[NemesisByHand]:
    planned = plan(
        load({"schedule": [{"at_s": 0, "duration_s": 0.1, "fault": "kill", "target": "n3"}]}), 1, 1
    )
    nemesis = NemesisByHand(planned, fleet, system, recorded, topics=("log",))
    nemesis.start()
    assert nemesis.wait(10)
    yield nemesis
    nemesis.stop_and_heal(timeout_s=10)


def test_a_fault_is_in_force_inside_and_recorded_with_its_proof(
    nemesis: NemesisByHand, system: FakeSystem, recorded: Recorded
) -> None:
    assert recorded.phases("f1") == ALL_PHASES, "the plan goes on by itself"
    with nemesis.injected(LEADER) as fault:
        assert fault.id == "h1"
        assert recorded.phases("h1") == ALL_PHASES[:2]
        assert ("start", 2) not in system.calls
    assert recorded.phases("h1") == ALL_PHASES
    assert recorded.ended("h1")["targets"] == ["n2"]
    recorded.assert_proved("h1")
    assert ("start", 2) in system.calls


def test_a_test_that_fails_inside_leaves_no_fault(nemesis: NemesisByHand, recorded: Recorded) -> None:
    with pytest.raises(ZeroDivisionError), nemesis.injected(LEADER):
        _ = 1 / 0
    assert recorded.phases("h1") == ALL_PHASES


def test_two_overlap(nemesis: NemesisByHand, recorded: Recorded) -> None:
    with nemesis.injected(LEADER), nemesis.injected(PauseSpec(fault="pause", target="n1")):
        assert recorded.phases("h1") == recorded.phases("h2") == ALL_PHASES[:2]
    assert recorded.phases("h1") == recorded.phases("h2") == ALL_PHASES


def test_stopping_the_run_ends_what_was_begun_by_hand(nemesis: NemesisByHand, recorded: Recorded) -> None:
    with nemesis.injected(LEADER):
        nemesis.stop_and_heal(timeout_s=10)
        assert recorded.phases("h1") == ALL_PHASES


def test_one_that_cannot_be_done_or_comes_too_late_is_refused(
    nemesis: NemesisByHand, system: FakeSystem
) -> None:
    system.pids.pop(1)
    pause = nemesis.injected(PauseSpec(fault="pause", target="n1"))
    with pytest.raises(NemesisError, match=r"^pause of n1: .*not run"), pause:
        raise AssertionError("it is not in force")
    nemesis.stop_and_heal(timeout_s=10)
    late = nemesis.injected(LEADER)
    with pytest.raises(NemesisError, match="kill: the main phase of the run is over"), late:
        raise AssertionError("there is no run any more")

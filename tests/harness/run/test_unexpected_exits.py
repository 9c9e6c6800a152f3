"""The harness tells a node that died unasked from one that was taken by a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.doubles import PaperFleet, PaperSystem
from wrackline.harness.run.live.unexpected_exits import SILENT_LOOKS, Deaths
from wrackline.history.model import DIED, LIVENESS, NEMESIS, Event, Type
from wrackline.nemesis.stage import Hold


class Paper:
    """The rows of a recorder, and what faults hold."""

    def __init__(self, system: type[PaperSystem] = PaperSystem) -> None:
        self.fleet = PaperFleet([])
        self.system = system(self.fleet, "")
        self.holds: dict[str, Hold] = {}
        self.events: list[Event] = []
        self.listeners: list[Callable[[Event], None]] = []
        self.deaths = Deaths(self.fleet, self.system, self, self.hold_of)  # type: ignore[arg-type]
        self.deaths.look()

    def hold_of(self, host: str) -> Hold:
        return self.holds.get(host, Hold())

    def record(self, event: Event) -> Event:
        self.events.append(event)
        for listener in self.listeners:
            listener(event)
        return event

    def fault(self, phase: str, **extra: Any) -> None:
        self.record(Event(NEMESIS, Type.INFO, "kill", extra={"phase": phase, "targets": ["n2"], **extra}))

    def died(self) -> list[tuple[str, str, list[str], list[str], str]]:
        """(id, phase, targets, unsure, proof)."""
        extras = [event.extra or {} for event in self.events if event.f == DIED]
        return [(one["id"], one["phase"], one["targets"], one["unsure"], one["proof"]) for one in extras]


@pytest.fixture
def paper() -> Paper:
    return Paper()


def test_a_node_that_runs_is_not_reported_as_dead(paper: Paper) -> None:
    paper.deaths.look()
    paper.deaths.close()
    assert paper.died() == []


def test_a_process_that_is_gone(paper: Paper) -> None:
    paper.system.pids["n2"] = None
    paper.deaths.look()
    paper.deaths.look()
    proof = "process 2 of node 2 was gone; its last words: the log of n2 ends here"
    assert paper.died() == [("d1", "begin", ["n2"], [], proof), ("d1", "active", ["n2"], [], proof)]
    paper.system.pids["n2"] = 77
    paper.deaths.look()
    assert paper.died()[2:] == [("d1", "ended", ["n2"], [], f"{proof}; runs again as 77")]
    paper.system.pids["n2"] = None
    paper.deaths.close()
    assert [one[:2] for one in paper.died()[3:]] == [("d2", "begin"), ("d2", "active"), ("d2", "ended")]
    assert paper.died()[-1][-1].endswith("it was not seen to run again")


def test_a_crash_is_a_row_of_its_own(paper: Paper) -> None:
    paper.system.crashes[2] = "exit code 70"
    paper.system.pids |= {"n2": 77, "n3": None}
    paper.deaths.look()
    [row] = [event.extra or {} for event in paper.events if event.f == LIVENESS]
    assert (row["promise"], row["subject"], row["bound_s"]) == ("crash", "node 2 on n2", 0.0)
    assert row["state"] == "process 2 of node 2 was gone (exit code 70)"


def test_a_process_that_was_started_again_before_anybody_looked(paper: Paper) -> None:
    paper.system.pids["n3"] = 78
    paper.deaths.look()
    assert [one[1] for one in paper.died()] == ["begin", "active", "ended"]
    assert paper.died()[-1][-1] == "process 3 of node 3 was gone; runs again as 78"


def test_a_node_killed_by_a_fault_did_not_die_unasked(paper: Paper) -> None:
    paper.fault("begin")
    paper.holds["n2"] = Hold(1, "f1")
    paper.system.pids["n2"] = None
    paper.deaths.look()
    paper.system.pids["n2"] = 79
    paper.deaths.look()
    paper.holds["n2"] = Hold(1, None)
    paper.fault("ended")
    paper.deaths.look()
    assert paper.died() == []
    paper.system.pids["n2"] = None
    paper.deaths.look()
    assert [one[:2] for one in paper.died()] == [("d1", "begin"), ("d1", "active")]


def test_a_fault_that_begins_and_ends_during_one_look_is_no_unasked_death(
    paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(node: Any) -> None:
        paper.holds[node.host.name] = Hold(1, None)  # taken, killed, started again and let go meanwhile

    monkeypatch.setattr(paper.system, "pid", slow)
    paper.deaths.look()
    assert paper.died() == []


def test_a_node_that_dies_right_after_its_fault(paper: Paper) -> None:
    """Nobody has seen it run since; whoever ended the fault had started it."""
    paper.fault("begin")
    paper.holds["n2"] = Hold(1, None)
    paper.fault("ended")
    paper.system.pids["n2"] = None
    paper.deaths.look()
    assert [one[:2] for one in paper.died()] == [("d1", "begin"), ("d1", "active")]


def test_a_node_that_its_fault_failed_to_start_again_did_not_die_unasked(paper: Paper) -> None:
    paper.fault("begin")
    paper.holds["n2"] = Hold(1, None)
    paper.fault("ended", error="n2: start: No space left on device")
    paper.system.pids["n2"] = None
    paper.deaths.look()
    assert paper.died() == []


def test_a_host_without_power_may_have_lost_what_it_had_not_synced(paper: Paper) -> None:
    paper.fleet.off.add("n1")
    paper.deaths.look()
    assert paper.died()[0][3:] == (["n1"], "process 1 of node 1 is gone with n1: its host has no power")


def test_a_host_that_does_not_answer_again_and_again(paper: Paper) -> None:
    """One late answer of a busy machine is nothing."""
    paper.system.silent.add("n1")
    for _ in range(SILENT_LOOKS - 1):
        paper.deaths.look()
    assert paper.died() == []
    paper.deaths.look()
    assert paper.died()[0][3:] == (["n1"], "process 1 of node 1 is gone with n1: n1: no answer within 30 s")
    paper.system.silent.clear()
    paper.deaths.look()
    assert paper.died()[-1][1] == "ended"


class PaperOfOthers(PaperSystem):
    """A system that runs already: it has the methods that make it one, and nobody calls them here."""

    def order(self, *_: Any) -> None: ...

    probe = remove_topics = remove_groups = order


def test_an_external_broker_that_is_silent_during_any_fault_did_not_die_unasked() -> None:
    """All that is seen of it is whether it answers: a partition, which takes no node, may cut us off too."""
    paper = Paper(PaperOfOthers)
    paper.fault("begin")
    paper.system.silent.add("n2")
    for _ in range(SILENT_LOOKS):
        paper.deaths.look()
    assert paper.died() == []
    paper.fault("ended")
    for _ in range(SILENT_LOOKS):
        paper.deaths.look()
    assert [one[:2] for one in paper.died()] == [("d1", "begin"), ("d1", "active")]

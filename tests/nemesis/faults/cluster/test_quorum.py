"""Faults of the controller quorum: who votes is asked of the quorum, and never believed of a step."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.nemesis.doubles import NODES, context
from tests.nemesis.doubles import node as made
from wrackline.nemesis.faults.admin_steps import DescribeQuorum, JoinQuorum, LeaveQuorum, RenewDisk
from wrackline.nemesis.faults.cluster import quorum_executor
from wrackline.nemesis.faults.cluster.quorum import (
    AddController,
    RemoveController,
    ReplaceController,
)
from wrackline.nemesis.faults.cluster.quorum_executor import QuorumExecutor
from wrackline.nemesis.faults.cluster.quorum_state import read_quorum, say_quorum, say_transition
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Fault, FaultError, ProbeLog, Restorable, StepResult
from wrackline.nemesis.spec import FAULT
from wrackline.systems.base import DeployError, Node, Quorum, System, Voter

C1, C2, OTHER_C1 = Voter(101, "a"), Voter(102, "b"), Voter(101, "z")
ALONE, BOTH = Quorum(102, 3, (C2,), (C1,)), Quorum(101, 2, (C1, C2), ())
REPLACED = Quorum(102, 4, (OTHER_C1, C2), ())


def probe_log(
    fault: Fault,
    step: type[Step],
    change: tuple[Quorum, Quorum],
    *,
    active: Quorum,
    final: Quorum,
    control: Quorum,
) -> ProbeLog:
    """What the steps of a fault on c1 came to."""
    done = fault.commands(context("c1", pid=None if isinstance(fault, AddController) else 41)).do
    said = say_transition(*change)

    def look(quorum: Quorum) -> list[StepResult]:
        return [StepResult(DescribeQuorum("c1"), say_quorum(quorum))]

    return ProbeLog(
        do=[StepResult(one, said if isinstance(one, step) else "101-z") for one in done],
        active=look(active),
        final=look(final),
        undo=[StepResult(DescribeQuorum("c1"))],
        control=look(control),
    )


CASES: Sequence[tuple[Fault, type[Step], tuple[Quorum, Quorum], Quorum, str]] = (
    (AddController(), JoinQuorum, (ALONE, BOTH), BOTH, "101-a on c1 became a voter"),
    (RemoveController(), LeaveQuorum, (BOTH, ALONE), ALONE, "which led in epoch 2, left the quorum"),
    (ReplaceController(), JoinQuorum, (BOTH, REPLACED), REPLACED, "101-a on c1 was replaced by 101-z"),
)


@pytest.mark.parametrize(("fault", "step", "change", "then", "text"), CASES, ids=lambda one: str(one)[:20])
def test_it_is_proved_by_the_quorum_at_both_ends(
    fault: Fault, step: type[Step], change: tuple[Quorum, Quorum], then: Quorum, text: str
) -> None:
    aimed = context("c1")
    good = probe_log(fault, step, change, active=then, final=then, control=BOTH)
    proof = fault.prove(aimed, good)
    assert proof.proved, proof.text
    assert text in proof.text
    before = change[0]
    for early, late in ((before, then), (then, before)):
        flaw = fault.prove(aimed, probe_log(fault, step, change, active=early, final=late, control=BOTH))
        assert not flaw.proved
        assert "the voters were" in flaw.text
    unchanged = probe_log(fault, step, (change[1], change[1]), active=then, final=then, control=BOTH)
    assert not fault.prove(aimed, unchanged).proved
    assert not fault.prove(aimed, ProbeLog()).proved


@pytest.mark.parametrize("fault", [RemoveController(), ReplaceController()], ids=lambda one: one.name)
def test_a_voter_that_is_none_afterwards_is_residue(fault: Fault) -> None:
    step = LeaveQuorum if isinstance(fault, RemoveController) else JoinQuorum
    assert isinstance(fault, Restorable)
    for control, residue in ((ALONE, "node 101 is no voter after the undo: 102-b"), (BOTH, "")):
        seen = probe_log(fault, step, (BOTH, REPLACED), active=BOTH, final=BOTH, control=control)
        assert fault.residue(context("c1"), seen) == residue
    assert "nobody described the quorum" in fault.residue(context("c1"), ProbeLog())


def test_brokers_and_several_controllers_are_refused() -> None:
    for fault in (AddController(), RemoveController(), ReplaceController()):
        with pytest.raises(FaultError, match="node 2 on n2 is no controller"):
            fault.commands(context("n2"))
        with pytest.raises(FaultError, match="one controller at a time"):
            fault.commands(context("c1", "n1"))
    with pytest.raises(FaultError, match="runs already"):
        AddController().commands(context("c1", pid=41))


# --- the executor -------------------------------------------------------------------------------------------


@dataclass
class Voters:
    """A quorum in memory: of several changes it takes the first, and of each id one voter."""

    voters: dict[int, str]
    disks: dict[int, str]
    joins_by_itself: bool = False
    refusals: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    running: bool = False
    name: str = "double"
    nodes: tuple[Node, ...] = (*NODES, made("c2", 102, 22, controller=True))

    def quorum(self, *, timeout_s: float) -> Quorum:  # noqa: ARG002
        if self.joins_by_itself and self.asked:
            self.voters[101] = self.disks[101]
        self.asked.append("quorum")
        return Quorum(102, 1, tuple(Voter(*one) for one in sorted(self.voters.items())), ())

    def voter_on(self, node: Node) -> Voter:
        return Voter(node.node_id, self.disks[node.node_id])

    def add_voter(self, node: Node, *, timeout_s: float) -> None:  # noqa: ARG002
        self._ask(f"add {node.node_id}")
        assert node.node_id not in self.voters, "the quorum would refuse it: DUPLICATE_VOTER"
        self.voters[node.node_id] = self.disks[node.node_id]

    def remove_voter(self, voter: Voter, *, timeout_s: float) -> None:  # noqa: ARG002
        self._ask(f"remove {voter}")
        assert self.voters.pop(voter.node_id) == voter.directory

    def renew_disk(self, node: Node) -> None:
        self.disks[node.node_id] = "renewed"

    def is_running(self, node: Node) -> bool:  # noqa: ARG002
        return self.running

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.refusals:
            raise DeployError(self.refusals.pop(0))


def carry_out(system: Voters, step: JoinQuorum | LeaveQuorum | RenewDisk | DescribeQuorum) -> str:
    as_system: Callable[[Voters], System] = lambda one: one  # type: ignore[assignment, return-value]  # noqa: E731
    return QuorumExecutor(as_system(system)).carry_out(step)


def test_a_voter_with_another_disk_goes_before_the_new_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum_executor, "POLL_S", 0.0)
    system = Voters({101: "a", 102: "b"}, {101: "z", 102: "b"}, refusals=["not now", "not now"])
    said = carry_out(system, JoinQuorum("c1", 101, 5.0))
    assert system.voters == {101: "z", 102: "b"}
    assert [one for one in system.asked if one != "quorum"] == [*["remove 101-a"] * 3, "add 101"]
    assert json.loads(said)[0]["voters"][0] == [101, "a"]


def test_who_joins_by_itself_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum_executor, "POLL_S", 0.0)
    system = Voters({102: "b"}, {101: "a", 102: "b"}, joins_by_itself=True)
    carry_out(system, JoinQuorum("c1", 101, 5.0))
    assert set(system.asked) == {"quorum"}


def test_what_the_quorum_refuses_to_the_end_is_said() -> None:
    system = Voters({101: "a", 102: "b"}, {101: "a", 102: "b"}, refusals=["the reason"] * 9)
    with pytest.raises(DeployError, match="did not change within 0 s; last seen: the reason"):
        carry_out(system, LeaveQuorum("c1", 101, 0.0))


def test_who_was_no_voter_does_not_leave() -> None:
    said = carry_out(Voters({102: "b"}, {}), LeaveQuorum("c1", 101, 0.0))
    done = ProbeLog(do=[StepResult(LeaveQuorum("c1", 101, 0.0), said)])
    proof = RemoveController().prove(context("c1"), done)
    assert not proof.proved
    assert proof.text == "node 101 on c1 was no voter before"


def test_the_disk_of_a_node_that_runs_stays() -> None:
    with pytest.raises(FaultError, match="its disk stays as it is"):
        carry_out(Voters({}, {101: "a"}, running=True), RenewDisk("c1", 101))
    assert carry_out(Voters({}, {101: "a"}), RenewDisk("c1", 101)) == "101-renewed"


def test_a_description_is_read_as_it_was_written() -> None:
    said = carry_out(Voters({101: "a"}, {}), DescribeQuorum("c1"))
    assert read_quorum([StepResult(DescribeQuorum("c1"), said)]) == Quorum(102, 1, (C1,), ())


def test_the_settings_say_whom_they_hit() -> None:
    targets = {
        name: FAULT.validate_python({"fault": name}).target
        for name in ("add-controller", "remove-controller", "replace-controller")
    }
    assert targets == {
        "add-controller": "spare-controller",
        "remove-controller": "controller",
        "replace-controller": "follower-controller",
    }

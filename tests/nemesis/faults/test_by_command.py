"""A user's own commands make these faults, and their probes prove them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.nemesis.doubles import context
from wrackline.nemesis.faults.by_command import ByCommand, beyond_commands, doubtful, here
from wrackline.nemesis.faults.cluster.growth import AddBroker
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill, Pause, Restart
from wrackline.nemesis.faults.shapes import Shape
from wrackline.nemesis.faults.steps import Ask, Carry, Fault, FaultError, ProbeLog, StepResult
from wrackline.systems.base import System
from wrackline.systems.external.commands.operations import BrokerCommand
from wrackline.systems.external.system import ExternalSystem

SCENE = context("n2", "n3")
THEIRS = cast(System, ExternalSystem(cast(Any, None), bootstrap=["a:1"]))


def asked(order: BrokerCommand, *answers: str) -> list[StepResult]:
    return [
        StepResult(Ask(one.host, one.node_id, order), f"{answer}: `probe`: exit code")
        for one, answer in zip(SCENE.targets, answers, strict=True)
    ]


def probe_log(order: BrokerCommand, active: str, final: str, control: str) -> ProbeLog:
    do = [
        StepResult(Carry(one.host, one.node_id, order), f"{order}: `x`: exit code 0") for one in SCENE.targets
    ]
    return ProbeLog(
        do,
        asked(order, "in force", active),
        asked(order, "in force", final),
        undo=do,
        control=asked(order, "not in force", control),
    )


@pytest.mark.parametrize(
    ("fault", "does", "undoes"),
    [
        (Kill(), "kill", "start"),
        (Restart(), "stop", "start"),
        (Pause(), "pause", "resume"),
        (PowerCut(), "power-off", "power-on"),
        (Partition(), "partition", "heal"),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_a_fault_becomes_the_order_of_its_kind(fault: Fault, does: str, undoes: str) -> None:
    made = here(THEIRS, fault)
    assert (made.name, made.holds_node) == (fault.name, fault.holds_node)
    commands = made.commands(SCENE)
    for steps, order in ((commands.do, does), (commands.undo, undoes)):
        assert [(step.host, step.order) for step in steps if isinstance(step, Carry)] == [
            ("n2", order),
            ("n3", order),
        ]
    assert (
        commands.probe
        == commands.control
        == tuple(Ask(one.host, one.node_id, BrokerCommand(does)) for one in SCENE.targets)
    )


@pytest.mark.parametrize("fault", [Partition(Shape.CLIENTS), Partition(controllers=False), AddBroker()])
def test_what_no_command_does_is_refused(fault: Fault) -> None:
    assert beyond_commands(fault)
    with pytest.raises(FaultError):
        here(THEIRS, fault)


def test_faults_on_our_own_systems_are_not_replaced_by_commands() -> None:
    kill = Kill()
    assert here(cast(System, object()), kill) is kill


@pytest.mark.parametrize(
    ("active", "final", "control", "flaw"),
    [
        ("in force", "in force", "not in force", None),
        ("not in force", "in force", "not in force", "n3 was not seen in force at its beginning"),
        ("in force", "not in force", "not in force", "n3 was not seen in force at its end"),
        ("in force", "in force", "in force", "n3 was not seen not in force after the undo"),
    ],
)
def test_a_fault_is_proved_when_its_probe_says_in_force_and_then_not_in_force(
    active: str, final: str, control: str, flaw: str | None
) -> None:
    proof = ByCommand("kill", True, BrokerCommand.KILL).prove(
        SCENE, probe_log(BrokerCommand.KILL, active, final, control)
    )
    assert proof.proved == (flaw is None)
    assert proof.text.startswith(flaw or "n2: kill: `x`: exit code 0; n3: kill: `x`: exit code 0; its probe")
    assert proof.lost == {}


def test_a_probe_that_failed_proves_nothing() -> None:
    whole = probe_log(BrokerCommand.KILL, "in force", "in force", "not in force")
    silent = [StepResult(one.step, error="the probe did not end") for one in whole.control]
    broken = ProbeLog(whole.do, whole.active, whole.final, whole.undo, silent)
    assert not ByCommand("kill", True, BrokerCommand.KILL).prove(SCENE, broken).proved


def test_a_power_cut_by_command_may_have_lost_bytes_of_any_file() -> None:
    """Every file may have lost bytes, also on a host whose command failed half-way."""
    cut = ByCommand("power-cut", True, BrokerCommand.POWER_OFF)
    whole = probe_log(BrokerCommand.POWER_OFF, "in force", "in force", "not in force")
    assert cut.prove(SCENE, whole).lost == {"n2": {}, "n3": {}}
    failed = ProbeLog([StepResult(one.step, error="no route to host") for one in whole.do])
    assert doubtful(cut, failed) == {"n2": {}, "n3": {}}
    assert doubtful(ByCommand("kill", True, BrokerCommand.KILL), failed) == {}

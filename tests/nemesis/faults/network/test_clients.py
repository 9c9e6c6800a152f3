"""The clients' machine as the target: who refuses it and why, what proves it, and what is replayed of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded, combined_scene, context
from tests.nemesis.test_proofs import look, tcp_probes
from wrackline.fleets.libvirt.spec import LibvirtSpec
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.fleets.process.spec import ProcessSpec
from wrackline.fleets.qemu.spec import QemuSpec
from wrackline.fleets.spec import FleetSpec
from wrackline.harness.extend.faults import known_faults
from wrackline.harness.specification.spec import SpecError, validated
from wrackline.history.faults import Happened
from wrackline.nemesis.faults.network.packets import Packets
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.network.shaping import Shaping
from wrackline.nemesis.faults.shapes import Direction
from wrackline.nemesis.faults.spec import TrafficSpec
from wrackline.nemesis.faults.steps import FaultError, ProbeLog, Proof, Shell, StepResult, TcpProbeFrom
from wrackline.nemesis.inject import injected, settings_of
from wrackline.nemesis.replay import Stage as Elsewhere
from wrackline.nemesis.replay import carried_over
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import FAULT, FAULTS, load
from wrackline.nemesis.stage import Stage
from wrackline.simulator.faults.replayed import replayed
from wrackline.systems.wrackline.spec import WracklineSpec

CLIENTS = Partition(at_clients=True)
OF_TRAFFIC = {name for name, model in FAULTS.models().items() if issubclass(model, TrafficSpec)}


def test_the_network_is_all_that_clients_have_of_their_own() -> None:
    assert {"packets", "partition"} == OF_TRAFFIC


@pytest.mark.parametrize("name", sorted({*FAULTS.models()} - OF_TRAFFIC))
def test_every_other_fault_refuses_clients(name: str) -> None:
    example = getattr(FAULTS.models()[name], "example", {})
    for target in ("clients", "clients of n1"):
        with pytest.raises(ValidationError, match="of clients the network alone can be hit, by packets and"):
            FAULT.validate_python({"fault": name, **example, "target": target})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"links": ["client-broker"]}, "leave `links` out"),
        ({"ports": [9092]}, "leave `ports` out"),
        ({"shape": "clients"}, "leave `shape` out"),
        ({"shape": "halves"}, "leave `shape` out"),
        ({"controllers": False}, "leave `controllers` out"),
        ({"fault": "packets", "loss": 0.1, "links": ["broker-broker"]}, "leave `links` out"),
        ({"fault": "packets", "loss": 0.1, "ports": [9092]}, "leave `ports` out"),
        ({"target": "clients of spare"}, "is no role"),
        ({"target": "clients of clients"}, "is no role"),
        ({"target": "2 of clients"}, "is no role"),
        ({"target": "clients of"}, "is no role"),
        ({"target": "clients n1"}, "is no role"),
    ],
)
def test_what_means_nothing_of_clients_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        FAULT.validate_python({"fault": "partition", "target": "clients of n1", **settings})


def refusal(fleet: FleetSpec, target: str = "clients") -> str:
    spec = FAULT.validate_python({"fault": "packets", "loss": 0.1, "target": target})
    return spec.refusal(fleet, WracklineSpec()) or ""


def test_fleets_say_whether_their_clients_have_a_network_of_their_own() -> None:
    assert {refusal(one) for one in (NetnsSpec(), QemuSpec(), LibvirtSpec())} == {""}
    [inventory] = [one for one in known_faults() if one.name == "packets"]
    assert list(inventory.clients_refused) == ["inventory"]
    assert "clients run on this machine, in the network" in inventory.clients_refused["inventory"]
    assert "hosts of the fleet process are folders" in refusal(ProcessSpec())
    assert "does not say how" in refusal(FleetSpec(kind="somebody's"))
    assert refusal(FleetSpec(kind="somebody's"), "all") == ""


def test_clients_of_controllers_are_nobody_where_these_have_hosts_of_their_own() -> None:
    for target in ("clients of controller", "clients of c1", "clients of 1 of follower-controllers"):
        assert "clients ask brokers and no controller" in refusal(NetnsSpec(), target)
        assert refusal(NetnsSpec(combined=True, controllers=3), target) == ""
    assert refusal(NetnsSpec(), "clients of c1,n1") == ""
    with pytest.raises(FaultError, match="clients ask brokers, and c1 is none"):
        CLIENTS.commands(context("c1"))


def test_a_specification_is_refused_in_a_line_that_says_where() -> None:
    def mistakes(fleet: dict[str, Any], *faults: dict[str, Any]) -> tuple[str, ...]:
        schedule = [{"at_s": 1, "duration_s": 2, **fault} for fault in faults]
        with pytest.raises(SpecError) as refused:
            validated({"name": "x", "fleet": fleet, "nemesis": {"schedule": schedule}}, "x")
        return tuple(refused.value.mistakes)

    [line] = mistakes({"kind": "netns"}, {"fault": "power-cut", "target": "clients"})
    assert line.startswith("x: nemesis.schedule[0].target: target 'clients': ")
    assert "of clients the network alone can be hit" in line
    [line] = mistakes({"kind": "netns"}, {"fault": "partition", "target": "clients of n7"})
    assert (
        line == "x: nemesis.schedule[0].target clients of n7: there is no host n7; there are n1, n2, n3, c1"
    )
    [line] = mistakes({"kind": "process"}, {"fault": "partition", "target": "clients"})
    assert line.startswith("x: nemesis.schedule[0]: partition needs hosts with a network of their own")


def test_where_a_fleet_has_no_such_machine_the_fault_is_not_in_force_and_says_so() -> None:
    fleet, recorded = FakeFleet(), Recorded()
    stage = Stage(fleet, FakeSystem(fleet), recorded)

    async def hold() -> None:
        async with injected(stage, CLIENTS, fault_id="f1", hosts=("n1",), role="clients of n1"):
            pass

    asyncio.run(hold())
    stage.close()
    ended = recorded.ended("f1")
    assert ended["proved"] is False
    assert "this fleet gives nobody the network that the clients are in" in str(ended["error"])
    assert not [command for _, command in fleet.commands if "iptables" in command]


def test_nothing_is_done_to_hosts_and_to_no_port_but_the_brokers() -> None:
    for aimed in (context("n1", "n2"), combined_scene("n1")):
        steps = CLIENTS.commands(context(*(one.host for one in aimed.targets)))
        assert {step.host for step in (*steps.do, *steps.undo, *steps.probe, *steps.control)} == {"clients"}
        [do] = steps.do
        assert isinstance(do, Shell)
        rules = [line for line in do.command.splitlines() if line.startswith("-A")]
        assert rules
        assert all("port 9092 " in rule for rule in rules)
    packets = Packets(Shaping(loss=0.5), at_clients=True)
    assert {step.host for step in packets.commands(context("n1")).do} == {"clients", "n1"}


def probe(packets: int, said: str = "silence", *, ahead: str = "") -> list[StepResult]:
    """Packets dropped until it, then a knock."""
    return [
        look("clients", (packets, "clients>n1")),
        tcp_probes("clients", n1=said),
        look("clients", (packets + 1, "clients>n1"), again=True, ahead=ahead),
    ]


def test_clients_that_are_cut_off_are_proved_by_their_own_knocks() -> None:
    aimed, control = context("n1"), [tcp_probes("clients", n1="connected")]

    def proved(active: list[StepResult], final: list[StepResult], fault: Partition = CLIENTS) -> Proof:
        return fault.prove(aimed, ProbeLog(active=active, final=final, control=control))

    assert proved(probe(0), probe(7)) == Proof(
        True,
        "6 packets dropped, and a probe on each of 1 way (clients>n1 7); "
        "no TCP knock on 1 port was answered, each was after the undo",
    )
    leak = proved(probe(0), probe(7, "connected"))
    assert leak == Proof(False, "the cut leaks: clients>n1:9092 answered at the end (connected)")
    ahead = proved(probe(0), probe(7, ahead="-A OUTPUT -p tcp -j ACCEPT"))
    assert ahead == Proof(False, "clients at the end: `-A OUTPUT -p tcp -j ACCEPT` stands before its rules")
    idle = [
        look("clients", (0, "clients>n1")),
        *probe(0)[1:2],
        look("clients", (0, "clients>n1"), again=True),
    ]
    assert proved(idle, idle) == Proof(False, "no packet was dropped on the way clients>n1")
    one_way = Partition(at_clients=True, direction=Direction.IN)
    assert proved(probe(0), probe(7), one_way) == Proof(False, "no packet was dropped on the way n1>clients")


def test_the_clients_of_hosts_that_were_hit_are_hit_again_and_the_world_has_none() -> None:
    cut = Partition(at_clients=True, direction=Direction.IN)
    slow = Packets(Shaping(delay_s=0.1, loss=0.2), at_clients=True)
    faults = [
        Happened("f1", "partition", ("n1", "n2"), 1.0, 2.0, settings_of(cut)),
        Happened("f2", "packets", ("n3",), 4.0, 2.0, settings_of(slow)),
        Happened("f3", "partition", ("n1",), 8.0, 2.0, settings_of(Partition())),
    ]
    given, left_out = carried_over(faults, Elsewhere(("n1", "n2", "n3"), ("c1",)))
    assert [one["target"] for one in given] == ["clients of n1,n2", "clients of n3", "n1"]
    assert left_out == []
    again = [one.spec.build() for one in plan(load({"schedule": given}), 1, 30.0).faults]
    assert again == [cut, slow, Partition()]
    made, unknown = replayed(faults, brokers=3, controllers=1)
    assert [one.kind for one in made] == ["cut"], "of n1 itself"
    assert unknown == [
        "f1 partition at 1 s: there is no such fault in virtual time",
        "f2 packets at 4 s: there is no such fault in virtual time",
    ]


def test_knocks_of_clients_go_where_the_cut_is() -> None:
    found = [step for step in CLIENTS.commands(context("n1", "n3")).probe if isinstance(step, TcpProbeFrom)]
    assert [[way.name for way in step.ways] for step in found] == [["clients>n1:9092", "clients>n3:9092"]]


@pytest.mark.parametrize(
    ("fleet", "refused"),
    [
        ({"kind": "netns", "controllers": 3, "combined": True}, True),
        ({"kind": "netns", "controllers": 1}, False),
    ],
)
def test_halves_of_all_have_another_side_or_are_refused(fleet: dict[str, Any], *, refused: bool) -> None:
    fault = {"at_s": 1, "duration_s": 2, "fault": "partition", "shape": "halves", "target": "all"}
    spec = {"name": "a", "fleet": fleet, "nemesis": {"schedule": [fault]}}
    if not refused:
        validated(spec, "a.yaml")
        return
    with pytest.raises(SpecError, match="nobody is left on the other side"):
        validated(spec, "a.yaml")

"""Who is cut off from whom: every shape, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nemesis.doubles import combined_scene, context
from wrackline.nemesis.faults.network.partitions import Partition, PartitionSpec
from wrackline.nemesis.faults.shapes import Flow, Link, Shape, Traffic, asked_ports, cut_flows, ports_of
from wrackline.nemesis.faults.steps import FaultContext, FaultError, Shell, Target, TcpProbeFrom
from wrackline.nemesis.spec import FAULT


def hosts(count: int) -> list[Target]:
    return [
        Target(f"n{number}", f"198.18.0.{number}", number, 9092, "/data") for number in range(1, count + 1)
    ]


def aimed(count: int, *targets: int) -> FaultContext:
    every = hosts(count)
    return FaultContext(
        "f1",
        tuple(one for one in every if one.node_id in targets),
        tuple(one for one in every if one.node_id not in targets),
    )


def cut(flows: Sequence[Flow]) -> set[str]:
    return {flow.way for flow in flows}


@given(st.integers(min_value=4, max_value=12), st.data())
def test_on_a_ring_everybody_sees_a_majority_and_no_two_the_same(count: int, data: st.DataObject) -> None:
    targets = data.draw(st.sets(st.integers(1, count), min_size=1))
    flows = cut_flows(aimed(count, *targets), Shape.MAJORITIES_RING, Traffic())
    seen = {
        one.host: frozenset(
            other.host for other in hosts(count) if f"{other.host}>{one.host}" not in cut(flows)
        )
        for one in hosts(count)
    }
    assert all(host in hosts_seen for host, hosts_seen in seen.items())
    assert all(len(one) > count // 2 for one in seen.values()), "a majority"
    assert len(set(seen.values())) == count, "no two the same"
    assert all((one in seen[other]) == (other in seen[one]) for one, other in combinations(seen, 2))


def test_the_half_that_is_drawn_settles_the_ring() -> None:
    def opposite(*targets: int) -> set[str]:
        return cut(cut_flows(aimed(4, *targets), Shape.MAJORITIES_RING, Traffic()))

    assert opposite(1, 2) == {"n1>n2", "n2>n1", "n3>n4", "n4>n3"}
    assert opposite(1, 3) == {"n1>n3", "n3>n1", "n2>n4", "n4>n2"}
    assert opposite(2, 3) == {"n2>n3", "n3>n2", "n1>n4", "n4>n1"}


def test_three_hosts_have_no_ring_and_one_has_no_bridge() -> None:
    with pytest.raises(FaultError, match="needs 4 hosts or more, not 3"):
        Partition(Shape.MAJORITIES_RING).commands(aimed(3, 1))
    with pytest.raises(FaultError, match="1 other hosts have no two halves"):
        Partition(Shape.BRIDGE).commands(aimed(2, 1))


def test_the_bridge_sees_both_halves_which_do_not_see_each_other() -> None:
    flows = cut_flows(aimed(5, 4), Shape.BRIDGE, Traffic())
    halves = [("n5", "n2"), ("n5", "n3"), ("n1", "n2"), ("n1", "n3")]
    assert cut(flows) == {f"{one}>{other}" for pair in halves for one, other in (pair, pair[::-1])}


def test_a_kind_of_link_is_known_by_its_port_and_by_who_asks() -> None:
    [n1], (n2, *_) = combined_scene("n1").targets, combined_scene("n1").others
    alone, controller = context("n1").targets[0], context("c1").targets[0]
    for link, ports in {
        Link.BROKER_BROKER: (9092,),
        Link.BROKER_CONTROLLER: (9093,),
        Link.CONTROLLER_CONTROLLER: (9093,),
        Link.CLIENT_BROKER: (),
    }.items():
        assert asked_ports(n1, n2, [link]) == ports, "combined nodes"
    assert asked_ports(alone, controller, list(Link)) == (9093,)
    assert asked_ports(controller, alone, list(Link)) == (), "controllers ask no broker"
    assert asked_ports(alone, controller, [Link.CONTROLLER_CONTROLLER]) == ()


def apart(found: FaultContext) -> FaultContext:
    """The same cluster, its brokers with a port of their own for other nodes."""

    def both(one: Target) -> Target:
        return replace(one, replication_port=9094) if one.is_broker else one

    return replace(found, targets=tuple(map(both, found.targets)), others=tuple(map(both, found.others)))


def test_brokers_with_a_port_for_nodes_are_cut_off_from_each_other_there() -> None:
    [n1], (n2, *_) = apart(combined_scene("n1")).targets, apart(combined_scene("n1")).others
    assert ports_of(n1) == (9092, 9094, 9093)
    assert asked_ports(n1, n2, [Link.BROKER_BROKER]) == (9094,)
    assert asked_ports(n1, n2, [Link.BROKER_CONTROLLER]) == (9093,)
    rules = [
        line
        for step in Partition(links=(Link.BROKER_BROKER,)).commands(apart(context("n1"))).do
        for line in _rules(step)
    ]
    assert {rule.split(" -m comment")[0].split("/32 ")[1] for rule in rules} == {
        "-p tcp --dport 9094",
        "-p tcp --sport 9094",
    }


def test_clients_are_cut_off_where_clients_ask() -> None:
    """Nodes that share a machine with them, as the port for nodes, are not meant."""
    [step] = Partition(Shape.CLIENTS).commands(apart(context("n1"))).do
    assert {word for rule in _rules(step) for word in rule.split() if word.isdigit()} == {"9092"}


def test_a_cut_is_knocked_at_on_every_port() -> None:
    for controllers in (True, False):
        probe = Partition(controllers=controllers).commands(apart(combined_scene("n1"))).probe
        ways = {way.port for step in probe if isinstance(step, TcpProbeFrom) for way in step.ways}
        assert ways == {9092, 9094} | ({9093} if controllers else set())


def _rules(step: object) -> list[str]:
    assert isinstance(step, Shell)
    return [line for line in step.command.split("\n") if line.startswith("-A")]


def test_what_shares_a_host_is_cut_by_port() -> None:
    """Combined nodes: what goes to controllers is dropped, both questions and answers, and nothing else."""
    do = Partition(links=(Link.BROKER_CONTROLLER,)).commands(combined_scene("n2")).do
    rules = [line for step in do for line in getattr(step, "command").split("\n") if line[:2] == "-A"]  # noqa: B009
    assert len(rules) == 16
    assert {rule.split(" -m comment")[0].split("/32 ")[1] for rule in rules} == {
        "-p tcp --dport 9093",
        "-p tcp --sport 9093",
    }


def test_links_that_nothing_goes_along_are_refused_when_the_fault_begins() -> None:
    with pytest.raises(FaultError, match="nothing of controller-controller is between the sides"):
        Partition(links=(Link.CONTROLLER_CONTROLLER,)).commands(context("n1"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"shape": "bridge", "direction": "in"}, "has no direction in"),
        ({"links": ["broker-broker"], "ports": [9092]}, "give one of them"),
        ({"shape": "clients", "ports": [9092]}, "leave `ports` out"),
        ({"links": ["broker-broker"], "controllers": False}, "leave `controllers: false` out"),
        ({"shape": "bridge", "links": ["client-broker"]}, "no side for clients"),
        ({"links": ["leader-follower"]}, "client-broker"),
        ({"ports": [0]}, "greater than or equal to 1"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FAULT.validate_python({"fault": "partition", **settings})


def test_a_ring_is_drawn_as_a_half_is() -> None:
    spec = FAULT.validate_python({"fault": "partition", "shape": "majorities-ring"})
    assert isinstance(spec, PartitionSpec)
    assert spec.target == "half"


def test_links_with_zookeeper_and_among_its_servers() -> None:
    broker = hosts(1)[0]
    one, other = (
        Target(f"z{n}", f"198.18.0.3{n}", 200 + n, 2181, "/data", is_broker=False, is_zookeeper=True)
        for n in (1, 2)
    )
    assert asked_ports(broker, one, [Link.BROKER_ZOOKEEPER]) == (2181,)
    assert asked_ports(one, broker, list(Link)) == ()
    assert asked_ports(one, other, [Link.ZOOKEEPER_ZOOKEEPER]) == (2888, 3888)
    assert asked_ports(broker, one, [Link.BROKER_CONTROLLER, Link.BROKER_BROKER]) == ()
    assert asked_ports(one, other, [Link.CONTROLLER_CONTROLLER, Link.BROKER_ZOOKEEPER]) == ()

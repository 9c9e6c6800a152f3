"""ZooKeeper servers are targets by name, by number, and by what they are among the others."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import NODES, cluster, partition
from wrackline.fleets.base import Host
from wrackline.nemesis.targets.roles import Situation, TargetError, resolve
from wrackline.nemesis.targets.words import Cast, CastTopic, check_role, needs_ensemble, never
from wrackline.systems.base import Node

SERVERS = tuple(
    Node(200 + number, Host(f"z{number}", f"198.18.0.3{number}"), frozenset({"zookeeper"}), 2181)
    for number in (1, 2, 3)
)
ALL = (*NODES, *SERVERS)


def aim(role: str, pick: int = 1, held: tuple[str, ...] = (), **ensemble: str) -> tuple[str, ...]:
    asked = {200 + int(name[1:]): mode for name, mode in ensemble.items()}
    state = cluster(partition(0))
    return resolve(check_role(role), Situation(ALL, state, held=held, topics=("log",), ensemble=asked), pick)


@pytest.mark.parametrize(
    ("role", "hosts"),
    [
        ("leader(zookeeper)", {("z2",)}),
        ("follower(zookeeper)", {("z1",), ("z3",)}),
        ("zookeepers", {("z1", "z2", "z3")}),
        ("2 of zookeepers", {("z1", "z2"), ("z1", "z3"), ("z2", "z3")}),
        ("z1", {("z1",)}),
        ("all", {("n1", "n2", "n3")}),
    ],
)
def test_a_role_names_these_hosts_over_all_picks(role: str, hosts: set[tuple[str, ...]]) -> None:
    assert {aim(role, pick, z1="follower", z2="leader", z3="follower") for pick in range(60)} == hosts


def test_a_server_that_is_alone_is_what_a_leader_is() -> None:
    assert aim("leader(zookeeper)", z1="standalone") == ("z1",)


def test_an_ensemble_without_a_majority_has_no_leader() -> None:
    with pytest.raises(TargetError, match="no ZooKeeper server is a leader now: none answers"):
        aim("leader(zookeeper)")
    with pytest.raises(TargetError, match="z2, which is under another fault"):
        aim("leader(zookeeper)", held=("z2",), z2="leader")


def test_the_servers_are_asked_for_these_roles_alone() -> None:
    asked = [one for one in ("leader(zookeeper)", "leader(log-0)", "zookeepers") if needs_ensemble(one)]
    assert asked == ["leader(zookeeper)"]


@pytest.mark.parametrize(
    ("role", "servers", "why"),
    [
        ("leader(zookeeper)", 0, "no ZooKeeper server: fleet.zookeeper is 0"),
        ("1 of zookeepers", 0, "no ZooKeeper server"),
        ("follower(zookeeper)", 1, "one ZooKeeper server only"),
        ("4 of zookeepers", 3, "there are 3 of them at most"),
    ],
)
def test_a_role_that_can_name_nobody_in_a_run_says_why(role: str, servers: int, why: str) -> None:
    hosts = ("n1", "n2", "n3", *(f"z{number}" for number in range(1, servers + 1)))
    cast = Cast(hosts, 3, 0, {"log": CastTopic(2, 3)}, controllers=0, zookeepers=servers)
    assert why in str(never(role, cast))
    assert (
        never("leader(zookeeper)", Cast(("n1", "z1"), 1, 0, {"log": CastTopic(1, 1)}, zookeepers=1)) is None
    )

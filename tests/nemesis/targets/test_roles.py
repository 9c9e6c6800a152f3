"""Roles become hosts from the cluster's own metadata at injection time, in the same way for the same pick."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.nemesis.doubles import NODES, cluster, partition
from wrackline.fleets.base import Host
from wrackline.nemesis.targets.memory import Leaders
from wrackline.nemesis.targets.roles import Situation, TargetError, resolve
from wrackline.nemesis.targets.words import Cast, CastTopic, check_role, internal_topic_of, never, retold
from wrackline.systems.base import ClusterState

STATE = cluster(
    partition(0, leader=2, isr=(2, 3), elr=(1,)),
    partition(1, leader=-1, isr=(), elr=(3,)),
    partition(0, leader=3, topic="with-dash-7"),
)


def aim(
    role: str, *, pick: int = 1, held: tuple[str, ...] = (), state: ClusterState | None = STATE, **more: Any
) -> tuple[str, ...]:
    return resolve(role, Situation(NODES, state, held=held, topics=("log",), **more), pick)


@pytest.mark.parametrize(
    ("role", "hosts"),
    [
        ("leader(log-0)", {("n2",)}),
        ("leader(with-dash-7-0)", {("n3",)}),
        ("follower(log-0)", {("n3",)}),
        ("follower(with-dash-7-0)", {("n1",), ("n2",)}),
        ("isr-last(log-0)", {("n3",)}),
        ("elr(log-0)", {("n1",)}),
        ("elr(log-1)", {("n3",)}),
        ("controller", {("c1",)}),
        ("one", {("n1",), ("n2",), ("n3",)}),
        ("minority", {("n1",), ("n2",), ("n3",)}),
        ("majority", {("n1", "n2"), ("n1", "n3"), ("n2", "n3")}),
        ("all", {("n1", "n2", "n3")}),
        ("n3,n1", {("n3", "n1")}),
        ("primaries", {("n2",)}),
        ("replicas(log-0)", {("n1", "n2", "n3")}),
        ("2 of all", {("n1", "n2"), ("n1", "n3"), ("n2", "n3")}),
        ("1 of primaries", {("n2",)}),
        ("1 of n1,c1", {("n1",), ("c1",)}),
        ("2 of replicas(log-0)", {("n1", "n2"), ("n1", "n3"), ("n2", "n3")}),
        ("c1", {("c1",)}),
        ("clients", {("n1", "n2", "n3")}),
        ("clients of n3", {("n3",)}),
        ("clients of leader(log-0)", {("n2",)}),
        ("clients of 2 of all", {("n1", "n2"), ("n1", "n3"), ("n2", "n3")}),
    ],
)
def test_a_role_names_these_hosts_over_all_picks(role: str, hosts: set[tuple[str, ...]]) -> None:
    assert {aim(role, pick=pick) for pick in range(60)} == hosts
    assert all(aim(role, pick=pick) == aim(role, pick=pick) for pick in range(5))


def test_half_takes_any_two_of_the_four_nodes() -> None:
    halves = {aim("half", pick=pick) for pick in range(200)}
    assert len(halves) == 6
    assert all(len(half) == 2 for half in halves)


def test_a_bare_leader_is_of_some_partition_of_the_runs_topics() -> None:
    assert {
        aim("leader", pick=pick, state=cluster(partition(0, 1), partition(1, 3))) for pick in range(40)
    } == {
        ("n1",),
        ("n3",),
    }


def test_hosts_under_another_fault_are_passed_over() -> None:
    assert {aim("one", pick=pick, held=("n1", "n3")) for pick in range(20)} == {("n2",)}
    assert aim("all", held=("n2",)) == ("n1", "n3")


@pytest.mark.parametrize(
    ("role", "held", "why"),
    [
        ("leader(log-0)", ("n2",), "leader.log-0. is n2, which is under another fault"),
        ("leader(log-1)", (), "log-1 has no leader now"),
        ("follower(log-1)", (), "log-1 has no follower now \\(ISR \\[\\], ELR \\[3\\]\\)"),
        ("leader(log-7)", (), "knows no partition log-7"),
        ("majority", ("n1", "n2"), "2 hosts wanted, free are n3"),
        ("all", ("n1", "n2", "n3"), "free are none"),
        ("n2", ("n2",), "n2 is under another fault"),
        ("n7", (), "no host 'n7': there are n1, n2, n3, c1"),
    ],
)
def test_a_vacant_role_says_why(role: str, held: tuple[str, ...], why: str) -> None:
    with pytest.raises(TargetError, match=why):
        aim(role, held=held)


def test_without_an_answer_from_the_cluster_roles_of_partitions_are_vacant() -> None:
    with pytest.raises(TargetError, match="no broker answers"):
        aim("leader(log-0)", state=None)
    assert aim("all", state=None) == ("n1", "n2", "n3")


@pytest.mark.parametrize(
    "role",
    [
        "0 of all",
        "2 of one",
        "2 of",
        "coordinator(log)",
        "leadr(log-0)",
        "leader(log)",
        "everybody",
        "",
        "n1;reboot",
        "leader(log-x)",
        "n1\n",
    ],
)
def test_what_is_no_role_is_refused_with_the_list_of_roles(role: str) -> None:
    with pytest.raises(ValueError, match="is no role: use one, minority"):
        check_role(role)


def test_a_spare_is_hit_by_nobody_until_it_has_joined() -> None:
    def roles(role: str, *, spares: tuple[str, ...] = (), idle: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        return {
            resolve(role, Situation(NODES, STATE, topics=("log",), spares=spares, idle=idle), pick)
            for pick in range(60)
        }

    assert roles("one", idle=("n3",)) == {("n1",), ("n2",)}
    assert roles("all", idle=("n3",)) == {("n1", "n2")}
    assert roles("half", idle=("n3",)) == {("c1",), ("n1",), ("n2",)}
    assert roles("spare", spares=("n2", "n3"), idle=("n2", "n3")) == {("n2",)}
    assert roles("n3", idle=("n3",)) == {("n3",)}
    with pytest.raises(TargetError, match="no spare host is left"):
        roles("spare", idle=("n3",))
    assert roles("spare-controller", spares=("n2", "c1"), idle=("n2", "c1")) == {("c1",)}
    with pytest.raises(TargetError, match="no spare controller host is left"):
        roles("spare-controller", spares=("n2",))


def test_a_spare_controller_follows_nobody_until_it_has_joined() -> None:
    more = (*NODES, replace(NODES[-1], node_id=102, host=Host("c2", "198.18.0.22")))
    with pytest.raises(TargetError, match="one controller only"):
        resolve("follower-controllers", Situation(more, STATE, idle=("c2",)), 1)
    assert resolve("follower-controllers", Situation(more, STATE), 1) == ("c2",)


def test_the_last_target_is_hit_again() -> None:
    assert aim("last", last=("n1", "n3")) == ("n1", "n3")
    with pytest.raises(TargetError, match="n3 is under another fault"):
        aim("last", last=("n3",), held=("n3",))
    with pytest.raises(TargetError, match="before this one"):
        aim("last")


def test_the_previous_leader_is_who_led_before_the_present_one() -> None:
    seen = Leaders()
    for leader in (2, 2, -1, 2, 3, -1, 3):
        seen.see(cluster(partition(0, leader=leader)))
    assert seen.former == {("log", 0): 2}
    assert aim("previous-leader(log-0)", former=seen.former) == ("n2",)
    with pytest.raises(TargetError, match="log-1 has had one leader only"):
        aim("previous-leader(log-1)", former=seen.former)


def test_a_partition_of_an_internal_topic_is_no_bare_role_and_can_be_named() -> None:
    state = cluster(partition(0, 1), partition(3, 2, topic="__consumer_offsets"))
    assert aim("leader(__consumer_offsets-3)", state=state) == ("n2",)
    assert {aim("leader", pick=pick, state=state) for pick in range(20)} == {("n1",)}
    assert internal_topic_of("clients of leader(__consumer_offsets-3)") == "__consumer_offsets"
    assert internal_topic_of("2 of replicas(__transaction_state-0)") == "__transaction_state"
    assert internal_topic_of("previous-leader(__share_group_state-0)") == "__share_group_state"
    assert not any(map(internal_topic_of, ("leader(log-0)", "leader", "coordinator(group)", "n1")))


def test_coordinators_are_those_of_the_runs_groups_and_transactions() -> None:
    known = {"group": [1, 3], "transaction": [2], "share": [3]}
    assert {aim("coordinator(group)", pick=pick, coordinators=known) for pick in range(20)} == {
        ("n1",),
        ("n3",),
    }
    assert aim("coordinator(transaction)", coordinators=known) == ("n2",)
    assert aim("coordinator(share)", coordinators=known) == ("n3",)
    with pytest.raises(TargetError, match="nobody says who coordinates the run's groups"):
        aim("coordinator(group)")
    with pytest.raises(TargetError, match="nobody says who coordinates the run's share groups"):
        aim("coordinator(share)")


def test_controllers_that_follow() -> None:
    quorum = tuple(replace(one, roles=frozenset({"broker", "controller"})) for one in NODES[:3])
    now = Situation(quorum, cluster(partition(0), controller=2))
    assert resolve("follower-controllers", now, 1) == ("n1", "n3")
    assert {resolve("follower-controller", now, pick) for pick in range(20)} == {("n1",), ("n3",)}
    assert {resolve("1 of follower-controllers", now, pick) for pick in range(20)} == {("n1",), ("n3",)}
    with pytest.raises(TargetError, match="one controller only"):
        aim("follower-controller")


CAST = Cast(("n1", "n2", "n3", "c1"), 3, 0, {"log": CastTopic(2, 3)}, controllers=1, coordinated=("group",))


@pytest.mark.parametrize(
    ("role", "why"),
    [
        ("4 of all", "there are 3 of them at most"),
        ("3 of n1,n2", "there are 2 of them at most"),
        ("1 of n1,n9", "there is no host n9"),
        ("follower-controller", "there is one controller only"),
        ("coordinator(transaction)", "the workload has no transaction"),
        (
            "leader(__transaction_state-1)",
            "the workload has no transaction, so there is no __transaction_state",
        ),
        ("coordinator(share)", "the workload has no share group that could have a coordinator"),
        (
            "leader(__share_group_state-0)",
            "the workload has no share group, so there is no __share_group_state",
        ),
        ("previous-leader(log-2)", "log has no partition 2"),
        ("replicas(logs-0)", "there is no topic 'logs'"),
        ("clients of n9", "there is no host n9"),
        ("clients of 4 of all", "there are 3 of them at most"),
    ],
)
def test_a_role_that_can_name_nobody_in_a_run_says_why(role: str, why: str) -> None:
    said = never(role, CAST)
    assert said is not None
    assert why in said


SEVERAL = Cast(("n1", "n2", "n3"), 3, 0, {"log": CastTopic(2, 3), "log-1": CastTopic(1, 1)})


@pytest.mark.parametrize(
    ("role", "why"),
    [
        ("leader(log-1)", None),
        ("leader(log-1-0)", None),
        ("leader", None),
        ("3 of replicas(log-0)", None),
        ("follower(log-1)", None),
        ("leader(log-2)", "log has no partition 2: topic.partitions is 2"),
        ("clients of leader(log-1-1)", "log-1 has no partition 1"),
        ("leader(log-1-0-0)", "there is no topic 'log-1-0': the run's are 'log' and 'log-1'"),
        ("follower(log-1-0)", "a partition with one replica has no follower"),
        ("2 of replicas(log-1-0)", "there are 1 of them at most"),
    ],
)
def test_topics_whose_names_look_like_partitions_are_kept_apart(role: str, why: str | None) -> None:
    said = never(role, SEVERAL)
    assert said is None if why is None else why in str(said)


def test_a_bare_role_means_any_topic_of_the_run() -> None:
    names = ("log", "log-1", "other")
    state = cluster(*(replace(partition(0, leader=n), topic=name) for n, name in enumerate(names, 1)))
    now = Situation(NODES, state, topics=("log", "log-1"))
    assert {resolve("leader", now, pick) for pick in range(30)} == {("n1",), ("n2",)}
    assert resolve("primaries", now, 1) == ("n1", "n2")
    assert resolve("leader(log-1-0)", now, 1) == ("n2",)


def test_a_target_is_told_with_the_names_in_the_cluster() -> None:
    names = {"log": "x-log", "log-1": "x-log-1"}
    told = {role: retold(role, names) for role in ("leader(log-1-0)", "leader(log-1)", "leader", "n1,n2")}
    assert list(told.values()) == ["leader(x-log-1-0)", "leader(x-log-1)", "leader", "n1,n2"]
    assert retold("clients of 2 of replicas(log-0)", names) == "clients of 2 of replicas(x-log-0)"
    assert retold("coordinator(group)", names) == "coordinator(group)"


@pytest.mark.parametrize(
    "role",
    [
        "3 of all",
        "coordinator(group)",
        "1 of replicas",
        "last",
        "primaries",
        "clients",
        "clients of n1",
        "leader(__consumer_offsets-49)",
    ],
)
def test_a_role_that_can_name_somebody(role: str) -> None:
    assert never(role, CAST) is None

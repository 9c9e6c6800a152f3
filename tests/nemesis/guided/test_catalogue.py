"""Guided schedules are values that say whom they hit and when they refuse."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import COMBINED, NODES, cast, cluster, node, partition, target
from wrackline.fleets.base import Disk
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.kafka_apis import Api
from wrackline.nemesis.faults.network.messages import Act, Messages, What
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.steps import FaultContext, Target
from wrackline.nemesis.guided.catalogue import NEEDS, SCHEDULES
from wrackline.nemesis.guided.eras import SCHEDULES as OF_STORIES
from wrackline.nemesis.guided.steps import (
    Aim,
    AskEnd,
    Await,
    AwaitBroker,
    AwaitGrowth,
    ElectUncleanly,
    Flush,
    GuidedError,
    Heal,
    Inject,
    KeepDisk,
    Sleep,
)
from wrackline.systems.base import ClusterState, Node

BY_ID = {one.node_id: one for one in NODES}


def aim(state: ClusterState, number: int = 0) -> Aim:
    return Aim(state, BY_ID, "log", number)


THREE = cluster(
    partition(0, leader=2, replicas=(1, 2, 3)),
    partition(1, leader=3, replicas=(2, 3, 1)),
    partition(2, leader=2, replicas=(2, 1, 3)),
    partition(3, leader=2, replicas=(2, 3, 1)),
    partition(4, leader=2, replicas=(2, 1, 3), topic="other"),
    partition(0, leader=3, replicas=(3, 1, 2), topic="__consumer_offsets"),
)

LED_BY_FIRST = cluster(
    partition(0, leader=1, replicas=(1, 2, 3)),
    partition(0, leader=1, replicas=(1, 2, 3), topic="__consumer_offsets"),
)
ZOOKEEPER = Target("z1", "198.18.0.31", 201, 2181, "/data", is_broker=False, is_zookeeper=True)


def hits(name: str, state: ClusterState, number: int = 0) -> str:
    """Its faults in their order, each with the hosts that it is done to."""
    steps = SCHEDULES[name](Aim(state, cast(NEEDS[name]), "log", number))
    return ", ".join(" ".join((one.fault.name, *one.hosts)) for one in steps if isinstance(one, Inject))


def test_b01_makes_the_last_replica_deaf_and_kills_the_leaders_before_it() -> None:
    assert hits("b01-truncate-to-hw", THREE) == "partition n3, kill n2, kill n1"
    assert hits("b01-truncate-to-hw", THREE, 1) == "partition n1, kill n3, kill n2"


def test_b01_brings_a_killed_controller_back_before_the_majority_is_gone() -> None:
    steps = SCHEDULES["b01-truncate-to-hw"](Aim(THREE, {one.node_id: one for one in COMBINED}, "log", 0))
    down: set[str] = set()
    apart: set[str] = set()
    for step in steps:
        match step:
            case Inject(id=fault_id, fault=fault, hosts=(host,)) if fault.name == "kill":
                down.add(fault_id)
                assert len(down) == 1, f"{host} would leave one of three controllers"
            case Inject(hosts=(host,), role=role) if role.startswith("former leader"):
                apart.add(host)
            case Heal(ids=ids):
                assert "g2" not in ids or apart == {"n2"}, "it must not fetch what the next leader has"
                down -= set(ids)
    assert not down


def test_b01_waits_for_all_partitions_that_fare_alike() -> None:
    waits = [step for step in SCHEDULES["b01-truncate-to-hw"](aim(THREE)) if isinstance(step, Await)]
    assert {wait.partitions for wait in waits} == {(0, 2)}
    first, second, healed = waits
    elected = cluster(*(partition(number, leader=1, isr=(1, 3)) for number in (0, 2)))
    assert not first.holds(THREE)
    assert first.holds(elected)
    assert not second.holds(elected)
    assert healed.holds(THREE)
    assert not healed.holds(elected)
    assert not healed.holds(cluster(partition(0)))


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        *((name, tuple(cast(NEEDS[name]).values())) for name in sorted(SCHEDULES)),
        *((name, COMBINED) for name in sorted(SCHEDULES) if not NEEDS[name].apart),
    ],
)
def test_every_fault_of_a_schedule_is_healed_by_it(name: str, nodes: tuple[Node, ...]) -> None:
    steps = SCHEDULES[name](Aim(LED_BY_FIRST, {one.node_id: one for one in nodes}, "log", 0))
    ids = [step.id for step in steps if isinstance(step, Inject)]
    injected = set(ids)
    assert len(ids) == len(injected), "each has an id of its own"
    healed = {fault_id for step in steps if isinstance(step, Heal) for fault_id in step.ids}
    assert injected == healed


def test_the_other_schedules_hit_leader_and_follower() -> None:
    assert hits("acks1-leader-power-cut", THREE) == "partition n2, power-cut n2"
    assert hits("power-cut-lossy", THREE) == "power-cut n3"


def test_late_end_txn_stalls_every_broker_in_its_turn() -> None:
    once = "stall-connections n1, stall-connections n2, stall-connections n3"
    assert hits("late-end-txn", THREE) == ", ".join([once] * 3)


def test_a_coordinator_is_cut_off_and_the_next_one_from_its_follower_before_it_is_elected() -> None:
    assert hits("deposed-coordinator", THREE) == "partition n3"
    assert hits("new-coordinator", THREE) == "partition n3, partition n1 n2"
    steps = SCHEDULES["new-coordinator"](Aim(THREE, cast(NEEDS["new-coordinator"]), "log", 0))
    [elected, _] = [step for step in steps if isinstance(step, Await)]
    assert not elected.met(partition(0, leader=3, topic="__consumer_offsets"))
    assert not elected.met(partition(0, leader=-1, epoch=9, topic="__consumer_offsets"))
    assert elected.met(partition(0, leader=1, epoch=9, topic="__consumer_offsets"))
    assert [step.ids for step in steps if isinstance(step, Heal)] == [("g2",), ("g1",)]


def test_whose_coordinator_is_meant_is_known_where_the_internal_topic_has_one_partition() -> None:
    several = cluster(
        *THREE.partitions, partition(1, leader=1, replicas=(1, 2, 3), topic="__consumer_offsets")
    )
    for name in ("deposed-coordinator", "new-coordinator"):
        with pytest.raises(GuidedError, match=r"has 2 partitions: .* offsets\.topic\.num\.partitions: 1"):
            SCHEDULES[name](aim(several))


REPLICATED = sorted(name for name, needs in NEEDS.items() if needs.replicas > 1)


@pytest.mark.parametrize("name", REPLICATED)
@pytest.mark.parametrize(
    ("state", "why"),
    [
        (cluster(partition(0, leader=1, isr=(1, 2))), "all in the ISR; it has leader 1, ISR .1, 2. of"),
        (cluster(partition(0, leader=-1)), "leader -1"),
        (cluster(partition(0, leader=1, replicas=(1,))), "needs . replicas"),
        (cluster(partition(7)), "knows no partition log-0"),
    ],
)
def test_a_cluster_that_is_not_ready_is_refused(name: str, state: ClusterState, why: str) -> None:
    with pytest.raises(GuidedError, match=why):
        SCHEDULES[name](aim(state))


L, F1, F2 = "n2", "n1", "n3"
"""Of log-0 in THREE."""


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("elr-outsider", "partition n3, kill n2 n1"),
        ("unclean-candidate", "kill n1, partition n3, power-cut n3, kill n2"),
        ("below-min-isr", "kill n1, partition n3, kill n2"),
        ("shrink-unheard", "partition n2 c1, partition n3, kill n2 n1"),
        ("joined-unheard", "partition n3, partition n2 c1, partition n3, kill n2 n1"),
        ("unknown-follower", "partition n3, kill n2, kill n1"),
        ("registered-at-once", "partition n1, power-cut n1, kill n2"),
        ("last-standing", "partition n2, power-cut n2"),
        ("last-leader", "partition n3, kill n1, power-cut n2"),
        ("unchecked-tail", "partition n1, kill n2"),
        ("anothers-record", "partition n2"),
        ("forgotten-producer", "partition n3, kill n2"),
        ("proposed-member", "partition n3, partition n1, messages c1, kill n2"),
        ("stale-end", "partition n1 n3, partition n1 n3, kill n2"),
        ("behind-in-isr", "partition n3, messages n2, kill n2 n1"),
        ("former-life", "kill n3, messages c1, partition n3, power-cut n3, kill n2 n1"),
        ("fenced-member", "kill n3, messages c1, kill n3"),
        ("outdated-proposal", "messages c1, partition n2 n1, partition n3, power-cut n3, kill n2"),
        ("overtaken-answer", "messages c1, partition n3"),
        (
            "led-meanwhile",
            "partition n2 n1, messages c1, transfer-leadership n2, messages n2, kill n1, kill n2",
        ),
        ("empty-answer", "partition n1, partition n2, kill n2"),
        ("longer-than-leader", "mtu-black-hole n3 n1, partition n1, partition n1, kill n2, kill n1"),
        ("led-in-silence", "partition n1, kill n2, partition n1"),
        ("begun-batch", "partition n2, kill n2"),
        ("before-leso", "partition n3, partition n1 n2, kill n2, messages n1, kill n1"),
        ("touched", "partition n1 n4, partition n3, reassign n1, power-cut n2"),
        ("slow-to-join", "kill n3, messages n2"),
        ("far-behind", "partition n3, partition n1, packets n3"),
        ("wiped-disk", "kill n1, partition n3, power-cut n3, kill n2"),
        ("restored-disk", "restart n3, kill n1, partition n3, power-cut n3, kill n2"),
        ("clean-example", "partition n1, partition n3, power-cut n2"),
        ("smaller-min-isr", "partition n1, partition n3, change-config n2, kill n2"),
        ("moved-alone", "partition n1 n3, reassign n2, power-cut n4"),
        ("moved", "reassign n3"),
        ("dead-leader", "partition n3, kill n1, power-cut n2"),
        ("fenced-together", "kill n2 n1, pause c1"),
        ("shrunk-in-silence", "partition n3"),
        ("fenced-follower", "partition n3"),
        ("failing-write", "disk-errors n2"),
        ("slow-goodbye", "pause n3, restart n2"),
        ("outage", "power-cut n2, power-cut n1, power-cut n3"),
        ("outage-manual", "power-cut n2, power-cut n1, power-cut n3"),
    ],
)
def test_the_schedules_of_defects_hit_leader_and_followers(name: str, faults: str) -> None:
    assert hits(name, THREE) == faults


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("proposed-member", [("c1", Api.ALTER_PARTITION, What.REQUEST, L)]),
        ("behind-in-isr", [(L, Api.FETCH, What.ANSWER, F2)]),
        ("before-leso", [(F1, Api.FETCH, What.ANSWER, F2)]),
        ("former-life", [("c1", Api.ALTER_PARTITION, What.REQUEST, L)]),
        ("fenced-member", [("c1", Api.ALTER_PARTITION, What.REQUEST, L)]),
        ("outdated-proposal", [("c1", Api.ALTER_PARTITION, What.REQUEST, L)]),
        ("overtaken-answer", [("c1", Api.ALTER_PARTITION, What.ANSWER, L)]),
        ("led-meanwhile", [("c1", Api.FETCH, What.ANSWER, L), (L, Api.FETCH, What.REQUEST, F2)]),
    ],
)
def test_races_hold_the_messages_of_one_node_where_they_are_answered(
    name: str, held: list[tuple[str, Api, What, str]]
) -> None:
    faults = [(step.hosts[0], step.fault) for step in SCHEDULES[name](aim(THREE)) if isinstance(step, Inject)]
    found = [(host, fault) for host, fault in faults if isinstance(fault, Messages)]
    assert [(host, *one.apis, one.what, *one.peers) for host, one in found] == held
    assert all(one.act is Act.HOLD and not one.delay_s for _, one in found), "until the fault is undone"


def test_an_outage_ends_the_replicas_one_by_one_and_syncs_the_last_when_it_is_alone() -> None:
    steps = SCHEDULES["outage"](aim(THREE))
    alone = cluster(*(partition(number, leader=3, isr=(3,)) for number in (0, 2)))
    flushed = next(at for at, step in enumerate(steps) if isinstance(step, Flush))
    before, pause, after = steps[flushed - 1], steps[flushed + 1], steps[flushed + 2]
    assert isinstance(before, Await)
    assert before.holds(alone)
    assert not before.holds(cluster(*(partition(number, isr=(1, 3)) for number in (0, 2))))
    assert isinstance(pause, Sleep), "else nothing unsynced proves the power cut"
    assert isinstance(after, Inject)
    assert after.hosts == (F2,)
    assert steps[flushed] == Flush((F2,))
    assert isinstance(steps[-1], Await)


def test_the_disk_that_comes_back_was_copied_while_its_broker_was_stopped_cleanly() -> None:
    steps = SCHEDULES["restored-disk"](aim(THREE))
    copied = steps.index(KeepDisk((F2,)))
    before, after = steps[copied - 1], steps[copied + 1]
    assert isinstance(before, Inject)
    assert (before.fault.name, before.hosts) == ("restart", (F2,))
    assert after == Heal((before.id,))
    [cut] = [step.fault for step in steps if isinstance(step, Inject) and isinstance(step.fault, PowerCut)]
    assert cut == PowerCut(Disk.STALE, age_s=None)


def test_without_an_election_by_a_person_an_outage_under_manual_has_nobody_who_leads() -> None:
    steps = SCHEDULES["outage-manual"](aim(THREE))
    asked = steps.index(ElectUncleanly("log", (0, 2)))
    waited = steps[asked - 1]
    assert isinstance(waited, Await)
    assert waited.holds(cluster(*(partition(number, leader=-1, isr=()) for number in (0, 2))))
    assert not waited.holds(THREE)


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("fast-fail-over", "kill n1, partition n1 n2, elect-preferred n1, kill n1, elect-preferred n1"),
        ("short-log-leads", "kill n1, power-cut n3, elect-preferred n1"),
        (
            "joined-too-early",
            "kill n1, partition n2, partition n3 n2, mtu-black-hole n3 n1, "
            "partition n1 n2, elect-preferred n1, kill n1 n2",
        ),
        ("alone-and-killed", "partition n1, kill n1"),
    ],
)
def test_the_schedules_of_the_zookeeper_era(name: str, faults: str) -> None:
    state = cluster(partition(0, leader=1, replicas=(1, 2, 3)))
    assert hits(name, state) == faults
    assert hits(name, THREE).split(", ")[0] != faults.split(", ")[0], (
        "where another leads already nobody is killed to make it so"
    )


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("restart-then-failover", "partition n2 n1, kill n2, kill n1"),
        ("double-power-loss", "restart n2, power-cut n2, power-cut n1"),
        ("failover-twice", "partition n3, partition n3, restart n1, kill n2"),
        ("split", "partition n1 n2, partition n1 n2, power-cut n3"),
        ("power-back-early", "power-cut n1"),
        ("zombie-leader", "pause n1, partition n1"),
    ],
)
def test_the_schedules_of_the_stories(name: str, faults: str) -> None:
    assert hits(name, LED_BY_FIRST) == faults
    assert set(OF_STORIES) <= set(SCHEDULES)


@pytest.mark.parametrize("name", ["restart-then-failover", "double-power-loss", "power-back-early"])
def test_where_the_first_replica_must_lead_it_is_waited_for(name: str) -> None:
    """In profile zk08 any other leader gives the leadership up in the middle of the story."""
    with pytest.raises(GuidedError, match="led by its first replica; node 2 leads it"):
        SCHEDULES[name](aim(THREE))


def test_whoever_keeps_the_sessions_is_cut_off_and_nobody_else() -> None:
    """The same schedule cuts ZooKeeper off where there is one, and else the controller."""
    [cut] = [
        step.fault
        for step in SCHEDULES["failover-twice"](aim(LED_BY_FIRST))
        if isinstance(step, Inject) and step.id == "g2" and isinstance(step.fault, Partition)
    ]
    with_zookeeper = FaultContext("f1", (target("n1"),), (target("n2"), ZOOKEEPER))
    with_controller = FaultContext("f1", (target("n1"),), (target("n2"), target("c1")))
    for context, coordinator in ((with_zookeeper, "z1"), (with_controller, "c1")):
        assert {flow.way for flow in cut.flows(context)} == {f"n1>{coordinator}", f"{coordinator}>n1"}


def test_the_client_that_asks_a_paused_leader_knows_of_its_successor() -> None:
    steps = SCHEDULES["zombie-leader"](aim(LED_BY_FIRST))
    assert AskEnd("n1", "n2", "log", 0) in steps
    kinds = [type(step) for step in steps if not isinstance(step, Sleep)]
    assert kinds == [Inject, Await, AwaitGrowth, Inject, AskEnd, Heal, Heal, Await]
    assert [step.ids for step in steps if isinstance(step, Heal)] == [("g1",), ("g2",)], "it goes on first"


@pytest.mark.parametrize("name", sorted(name for name in NEEDS if NEEDS[name].apart))
def test_schedules_that_need_the_controllers_apart_refuse_controllers_beside_brokers(name: str) -> None:
    with pytest.raises(GuidedError, match=r"n1, n2, n3 are both: fleet\.combined must be false"):
        SCHEDULES[name](Aim(THREE, {one.node_id: one for one in COMBINED}, "log", 0))


def test_a_cut_from_the_controller_needs_a_sole_one() -> None:
    many = {**BY_ID, 102: node("c2", 102, 22, controller=True)}
    with pytest.raises(GuidedError, match="exactly one, there are c1, c2"):
        SCHEDULES["shrink-unheard"](Aim(THREE, many, "log", 0))


def test_a_wait_for_a_broker_looks_at_who_is_alive() -> None:
    back, gone = AwaitBroker("3 is back", 3, alive=True), AwaitBroker("3 is fenced", 3, alive=False)
    assert back.holds(THREE)
    assert not gone.holds(THREE)
    without = ClusterState(101, (1, 2), THREE.partitions)
    assert gone.holds(without)
    assert back.seen(without) == "brokers [1, 2]"


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_schedule_refuses_to_run_without_what_it_is_declared_to_need(name: str) -> None:
    needs = NEEDS[name]
    two = cluster(partition(0, leader=1, replicas=(1, 2), isr=(1, 2)))
    many = {**cast(NEEDS[name]), 102: node("c2", 102, 22, controller=True)}
    beside = {one.node_id: one for one in COMBINED}
    lacking = {
        "replicas": (Aim(two, cast(needs), "log", 0), needs.replicas > 2),
        "brokers": (
            Aim(LED_BY_FIRST, {number: one for number, one in cast(needs).items() if number != 4}, "log", 0),
            needs.brokers > 3,
        ),
        "apart": (Aim(LED_BY_FIRST, beside, "log", 0), needs.apart),
        "one controller": (Aim(LED_BY_FIRST, many, "log", 0), needs.one_controller),
    }
    for what, (context, needed) in lacking.items():
        refused = False
        try:
            SCHEDULES[name](context)
        except GuidedError:
            refused = True
        assert refused == needed, what

"""Real brokers and a real controller in virtual time: failovers, restarts, and what they may cost."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import CLUSTER_ID, CONTROLLER, Cluster, T, Writer
from wrackline.broker.core.lifecycle import State
from wrackline.broker.defects import REGISTRY, UnknownDefect, apply
from wrackline.broker.model.messages.controller import BrokerRegistrationRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    MetadataRequest,
    NewTopic,
)
from wrackline.broker.model.messages.requests import (
    LATEST,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from wrackline.broker.model.types import FlushMode, TopicPartition
from wrackline.broker.rules.profile import profile


def cluster(**changes: object) -> Cluster:
    made = Cluster(**changes)  # type: ignore[arg-type]
    made.create_topic()
    return made


# --- B01 (H16) -------------------------------------------------------------------------------------------


def hw_truncation_schedule(defects: tuple[str, ...]) -> list[bytes]:
    """B01 step by step; what the last leader holds."""
    c = cluster(defects=defects, replica_lag_time_max_ms=60_000)
    assert c.produced(1, b"m1").error is ErrorCode.none
    c.until(lambda: all(c.replica(node).high_watermark == 1 for node in (1, 2, 3)))
    c.hold(lambda m: isinstance(m.body, FetchResponse) and _tells_hw(m.body, 2))
    assert c.produced(1, b"m2").error is ErrorCode.none, "acknowledged by acks=all"
    assert [c.replica(node).log.leo for node in (1, 2, 3)] == [2, 2, 2]
    assert [c.replica(node).high_watermark for node in (2, 3)] == [1, 1]
    c.drop_held()
    c.cut(1, 2)
    c.cut(1, 3)
    c.hold(lambda m: isinstance(m.body, FetchRequest) and (m.source, m.destination) == (3, 2))
    c.fence(1)
    c.until(lambda: c.leader() == 2)
    c.until(lambda: c.replica(3).leader_id == 2)
    c.kill(2)
    c.drop_held()
    c.until(lambda: c.leader() == 3)
    c.until(lambda: c.replica(3).leader is not None)
    return c.values(3)


def _tells_hw(response: FetchResponse, high_watermark: int) -> bool:
    return any(part.tp == T and part.high_watermark >= high_watermark for part in response.partitions)


def test_b01_no_acknowledged_record_is_lost() -> None:
    assert hw_truncation_schedule(()) == [b"m1", b"m2"]


def test_b01_with_the_defect_the_acknowledged_record_is_lost() -> None:
    assert hw_truncation_schedule(("trunc_hw",)) == [b"m1"]


# --- life ---------------------------------------------------------------------------------------------------


def test_a_killed_leader_is_replaced_and_comes_back_as_a_follower() -> None:
    c = cluster()
    for number in range(5):
        assert c.produced(1, b"m%d" % number).error is ErrorCode.none
    c.kill(1)
    c.until(lambda: c.leader() not in (1, -1))
    heir = c.leader()
    c.until(lambda: c.replica(heir).leader is not None)
    assert c.produced(heir, b"m5").base_offset == 5
    c.boot(1)
    c.until(lambda: c.isr() == {1, 2, 3})
    assert c.values(1) == c.values(heir)
    assert c.leader() == heir


def test_a_killed_broker_that_is_back_before_its_session_ends_waits_for_it() -> None:
    c = cluster()
    c.produced(1, b"m0")
    c.kill(1)
    c.boot(1)
    c.run(300)
    assert c.broker(1).state is State.STARTING
    c.until(lambda: c.leader() in (2, 3))
    c.until(lambda: c.isr() == {1, 2, 3})


@pytest.mark.parametrize("end", [Cluster.kill, Cluster.power])
def test_a_controller_that_restarts_fences_nobody_who_is_alive(end: Callable[[Cluster, int], None]) -> None:
    c = cluster()
    end(c, CONTROLLER)
    c.run(400)
    c.boot(CONTROLLER)
    c.run(3_000)
    assert (c.leader(), c.replica(1).leader_epoch) == (1, 0)
    c.kill(1)
    c.until(lambda: c.leader() in (2, 3))


def test_controlled_shutdown_moves_leadership_first_and_is_clean() -> None:
    c = cluster()
    c.produced(1, b"m0")
    epoch = c.broker(1).broker_epoch
    c.stop(1)
    c.until(lambda: bool(c.nodes[1].exits))
    assert c.nodes[1].exits[0].code == 0
    assert c.nodes[1].disk.clean_epoch == epoch
    assert c.leader() in (2, 3)
    assert c.now < 1_500, "no session had to end"
    c.boot(1)
    c.until(lambda: c.isr() == {1, 2, 3})
    assert c.broker(1).broker_epoch > epoch


def test_controlled_shutdown_without_a_controller_ends_by_its_deadline() -> None:
    c = cluster()
    c.kill(CONTROLLER)
    c.stop(2)
    c.until(lambda: bool(c.nodes[2].exits), within_ms=6_000)
    assert c.nodes[2].exits[0].code == 0


def test_a_restart_goes_on_from_the_local_metadata() -> None:
    """K03: nothing is fetched twice, and no role is taken from an old image (K06)."""
    c = cluster()
    c.produced(1, b"m0")
    c.run(200)
    known = c.broker(2).image.metadata_offset
    c.kill(2)
    c.cut(2, CONTROLLER)
    c.boot(2)
    c.run(500)
    assert c.broker(2).image.metadata_offset == known
    assert c.broker(2).state is State.STARTING
    assert c.replica(2).leader_epoch == -1
    c.heal()
    c.until(lambda: c.broker(2).state is State.RUNNING)
    first = next(m for m in c.traced("md_apply", 2) if m["offset"] > known)
    assert first["tp"] == "t-0"


def test_a_broker_whose_id_was_registered_anew_ends() -> None:
    """docs/protocol.md 2.7.7: the controller knows its epoch no more."""
    c = cluster()
    c.fence(3)
    old = c.broker(3)
    c.heal()
    usurper = BrokerRegistrationRequest(3, CLUSTER_ID, UUID(int=999), "elsewhere", 9092)
    assert c.answer(CONTROLLER, usurper).broker_epoch > old.broker_epoch
    c.until(lambda: bool(c.nodes[3].exits))
    assert c.nodes[3].exits[0].code == 1
    assert f"epoch {old.broker_epoch}" in c.nodes[3].exits[0].reason


def test_a_wrong_cluster_id_is_final() -> None:
    c = Cluster(start=False)
    c.controller_config = type(c.controller_config)(101, "other", "c", 9093, c.controller_config.controllers)
    c.boot(CONTROLLER)
    c.boot(1)
    c.until(lambda: bool(c.nodes[1].exits))
    assert "cluster id" in c.nodes[1].exits[0].reason


def test_everything_down_and_up_again_loses_nothing_flushed() -> None:
    """I23: in mode every-write all hosts may lose power."""
    c = cluster(flush_mode=FlushMode.EVERY_WRITE)
    for number in range(10):
        assert c.produced(1, b"m%d" % number).error is ErrorCode.none
    for node in (1, 2, 3):
        c.power(node)
    assert sorted(len(c.values(node)) for node in (1, 2, 3)) == [10, 10, 10]


def test_an_isolated_leader_acknowledges_nothing_and_cuts_what_it_wrote() -> None:
    """B05: the zombie still counts its followers; after the heal its tail is gone everywhere."""
    c = cluster(replica_lag_time_max_ms=300)
    c.produced(1, b"m0")
    for other in (2, 3, CONTROLLER):
        c.cut(1, other)
    stuck = c.produce(1, b"zombie", timeout_ms=3_000)
    loose = c.produced(1, b"loose", acks=1)
    assert loose.error is ErrorCode.none
    c.until(lambda: c.leader() not in (1, -1))
    heir = c.leader()
    c.until(lambda: c.replica(heir).leader is not None)
    assert c.produced(heir, b"m1").error is ErrorCode.none
    assert c.replica(1).leading.maximal == {1, 2, 3}
    c.until(lambda: stuck.done)
    assert stuck.response.partitions[0].error is ErrorCode.request_timed_out
    c.heal()
    c.until(lambda: c.isr() == {1, 2, 3})
    assert [c.values(node) for node in (1, 2, 3)] == [[b"m0", b"m1"]] * 3


def test_the_end_offset_is_not_shown_until_it_is_known() -> None:
    """B14 as a client sees it."""
    c = cluster(replica_lag_time_max_ms=60_000)
    c.hold(lambda m: isinstance(m.body, FetchResponse) and _tells_hw(m.body, 1))
    assert c.produced(1, b"m0").error is ErrorCode.none
    c.drop_held()
    c.hold(lambda m: isinstance(m.body, FetchRequest) and m.destination in (2, 3))
    c.kill(1)
    c.until(lambda: c.leader() not in (1, -1))
    heir = c.leader()
    c.until(lambda: c.replica(heir).leader is not None)
    latest = ListOffsetsRequest((ListOffsetsPartition(T, LATEST),))
    assert c.answer(heir, latest).partitions[0].error is ErrorCode.offset_not_available
    c.release()
    c.until(lambda: c.answer(heir, latest).partitions[0].offset == 1)


# --- metadata and administration ----------------------------------------------------------------------------


def test_topics_come_and_go() -> None:
    c = Cluster()
    made = c.answer(2, CreateTopicsRequest((NewTopic("t", 2, 3),), 5_000)).topics[0]
    assert made.error is ErrorCode.none
    told = c.answer(2, MetadataRequest(("t", "no"))).topics
    assert [topic.error for topic in told] == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    assert len(told[0].partitions) == 2, "whoever was told of the topic finds it there"
    again = c.answer(1, CreateTopicsRequest((NewTopic("t", 1, 1),), 5_000)).topics[0]
    assert again.error is ErrorCode.topic_already_exists
    parked = c.ask(
        told[0].partitions[0].leader_id,
        FetchRequest(10_000, 1, 1 << 20, (FetchPartition(T, 0, 1 << 20),)),
    )
    assert c.answer(3, DeleteTopicsRequest(("t",), 5_000)).topics[0].error is ErrorCode.none
    c.until(lambda: parked.done, within_ms=500)
    assert parked.response.partitions[0].error is ErrorCode.unknown_topic_or_partition
    c.until(lambda: all(T not in c.nodes[node].disk.logs for node in (1, 2, 3)))


def test_a_topic_made_anew_under_its_name_has_nothing_of_the_old_one() -> None:
    """B56, also for a broker that was away meanwhile."""
    c = cluster()
    c.produced(1, b"old")
    c.kill(3)
    c.answer(1, DeleteTopicsRequest(("t",), 5_000))
    c.until(lambda: 3 not in c.unfenced())
    c.answer(1, CreateTopicsRequest((NewTopic("t", assignments={0: (1, 2, 3)}),), 5_000))
    c.until(lambda: c.broker(1).replica(T) is not None)
    assert c.produced(1, b"new").base_offset == 0
    c.boot(3)
    c.until(lambda: c.isr() == {1, 2, 3})
    assert c.values(3) == [b"new"]


def test_forwarded_requests_end_in_time_when_the_controller_is_gone() -> None:
    c = Cluster()
    c.kill(CONTROLLER)
    call = c.ask(1, CreateTopicsRequest((NewTopic("t", 1, 1),), 700))
    ids = c.ask(1, InitProducerIdRequest())
    c.until(lambda: call.done and ids.done)
    assert call.response.error is ErrorCode.request_timed_out
    assert ids.response.error is ErrorCode.coordinator_load_in_progress


def test_producer_ids_are_never_given_twice() -> None:
    c = Cluster()
    calls = [c.ask(node, InitProducerIdRequest()) for node in (1, 2, 3, 1, 2, 3)]
    c.until(lambda: all(call.done for call in calls))
    c.kill(1)
    c.boot(1)
    c.until(lambda: c.broker(1).state is State.RUNNING)
    calls.append(c.ask(1, InitProducerIdRequest()))
    c.until(lambda: calls[-1].done)
    ids = [call.response.producer_id for call in calls]
    assert len(set(ids)) == len(ids)
    assert min(ids) >= 0
    refused = c.answer(1, InitProducerIdRequest("transactional"))
    assert refused.error is ErrorCode.transactional_id_authorization_failed


def test_fenced_brokers_are_not_listed() -> None:
    c = cluster()
    c.fence(3)
    c.until(lambda: len(c.answer(1, DescribeClusterRequest()).brokers) == 2)
    assert c.answer(1, DescribeClusterRequest()).controller_id == 1
    c.until(lambda: c.isr() == {1, 2})


def test_partitions_of_one_fetcher_do_not_wait_for_each_others_polls() -> None:
    """A partition that joins a fetcher is fetched at once, not when the parked request comes back."""
    c = Cluster(replica_fetch_wait_max_ms=5_000)
    c.create_topic("a", (1, 2, 3))
    c.run(1_000)
    c.create_topic("b", (1, 2, 3))
    begin = c.now
    assert c.produced(1, b"x", tp=TopicPartition("b", 0)).error is ErrorCode.none
    assert c.now - begin < 100
    assert c.produced(1, b"y", tp=TopicPartition("a", 0)).error is ErrorCode.none
    assert c.now - begin < 100


# --- profiles and defects -----------------------------------------------------------------------------------


def test_defects_replace_rules_and_combine() -> None:
    rules = apply(profile("kip966"), ["trunc_hw", "no_divergence_check", "isr_no_leso"])
    assert rules.truncation.on_become_follower(5, 3) == 3
    assert not rules.switches.fetch_names_epoch
    assert rules.isr.maximal(frozenset({1}), frozenset({2})) == {1, 2}
    assert profile("kip966").truncation.on_become_follower(5, 3) == 5
    with pytest.raises(UnknownDefect, match="no defect 'no_such'; the documents list all"):
        apply(profile("kip966"), ["no_such"])
    with pytest.raises(ValueError, match="kip966"):
        profile("kip9")
    for name, defect in REGISTRY.items():
        assert f"``{name}``" in (defect.__doc__ or ""), "a defect says its name and reference"


# --- anything may happen ------------------------------------------------------------------------------------


def survive(seed: int, defects: tuple[str, ...] = ()) -> None:
    """acks=all, MinISR 2: any number of kills and cuts at once, also of the controller, but only one broker
    ever loses records (R37). When every candidate was killed their logs are compared (R33)."""
    chance = random.Random(seed)
    c = cluster(replica_lag_time_max_ms=1_000, session_timeout_ms=1_000, defects=defects)
    c.latency = lambda: chance.uniform(0.2, 3.0)
    writer = Writer(c, pause_ms=20)
    lossy = chance.choice((1, 2, 3))
    for _ in range(40):
        c.run(chance.uniform(10, 600))
        victim = chance.choice((1, 2, 3, CONTROLLER))
        match chance.choice(("kill", "power", "stop", "isolate", "cut", "heal", "heal", "start", "start")):
            case "heal":
                c.heal()
            case "start":
                c.start_all()
            case "cut":
                c.cut(*chance.sample((1, 2, 3, CONTROLLER), 2))
            case "isolate":
                c.isolate(victim)
            case "power":
                log = c.nodes[lossy].disk.logs[T]
                c.power(lossy, {T: chance.randint(min(log.flushed, log.leo), log.leo)})
            case "stop" if victim != CONTROLLER:
                c.stop(victim)
            case _:
                c.kill(victim)
    writer.stopped = True
    c.heal()
    for _ in range(10):
        c.run(1_000)
        c.start_all()
    c.until(lambda: c.isr() == {1, 2, 3}, within_ms=60_000)
    writer.finish()
    c.run(1_000)
    assert len({c.replica(node).high_watermark for node in (1, 2, 3)}) == 1


@pytest.mark.parametrize("seed", range(12))
def test_acknowledged_records_survive_kills_and_cuts(seed: int) -> None:
    survive(seed)


@pytest.mark.parametrize("defect", ["no_divergence_check", "elr_not_cleared", "ignore_unclean"])
def test_the_same_clusters_find_a_wrong_rule(defect: str) -> None:
    """Otherwise the silence of the test above would say nothing."""

    def survive_all() -> None:
        for seed in range(24):
            survive(seed, (defect,))

    with pytest.raises(AssertionError, match=r"logs differ|acknowledged, and not there"):
        survive_all()

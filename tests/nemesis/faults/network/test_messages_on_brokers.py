"""Faults of messages on real brokers: ours and, in the nightly run, Apache Kafka's. What they do shows in the
cluster's own metadata, and to a client of librdkafka."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.nemesis.doubles import Recorded
from tests.nemesis.load import CONFIG, started, wait_until
from tests.systems.kafka.conftest import cluster as kafka_cluster
from wrackline.fleets.folders import folders_of
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import PartitionState, System, TopicSpec
from wrackline.systems.kafka.system import KafkaSystem
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]
HELD_S = 2.0


@contextmanager
def in_force(system: WracklineSystem | KafkaSystem, fault: dict[str, Any]) -> Iterator[Recorded]:
    """Until the body is done; proved afterwards, and nothing beyond its own undo is left to heal."""
    recorded = Recorded()
    spec = load({"schedule": [{"at_s": 0.0, "duration_s": 300.0, "fault": "messages", **fault}]})
    nemesis = Nemesis(plan(spec, seed=1, duration_s=301.0), system.fleet, system, recorded, topics=("log",))
    nemesis.start()
    try:
        recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=30)
        yield recorded
    finally:
        repairs = nemesis.stop_and_heal()
    assert repairs == []
    recorded.assert_proved("f1")


def partition(system: System) -> PartitionState:
    found = system.describe().partition("log", 0)
    assert found is not None
    return found


def host_of(system: System, node_id: int) -> str:
    return next(node.host.name for node in system.nodes if node.node_id == node_id)


def sent(producer: Producer) -> None:
    failed: list[object] = []
    producer.produce("log", b"x", partition=0, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(20) == 0
    assert failed == [None]


def the_follower_falls_behind(system: WracklineSystem | KafkaSystem) -> None:
    """Its fetches are held at the leader: it leaves the ISR, the others and the clients notice nothing."""
    wait_until(lambda: len(partition(system).isr) == 2, "both replicas in the ISR")
    leader = partition(system).leader
    [follower] = [one for one in partition(system).replicas if one != leader]
    with system.fleet.entered():
        producer = Producer({"bootstrap.servers": system.bootstrap(), "acks": "all"})
    sent(producer)
    fault = {"target": host_of(system, leader), "apis": ["Fetch"], "peers": [host_of(system, follower)]}
    with in_force(system, fault) as recorded:
        sent(producer)  # a follower that has all there is stays in the ISR
        wait_until(lambda: partition(system).isr == (leader,), "the follower out of the ISR")
    assert "Fetch requests held for up to" in str(recorded.ended("f1")["proof"])
    assert f"of {host_of(system, follower)} (" in str(recorded.ended("f1")["proof"])
    wait_until(lambda: len(partition(system).isr) == 2, "both replicas in the ISR again")


def a_repeated_fetch_counts_as_the_followers(system: WracklineSystem, producer: Producer) -> None:
    """It comes on a connection of its own, where the proxy says again by what the follower proved its id."""
    leader = partition(system).leader
    [follower] = [one for one in partition(system).replicas if one != leader]
    at = next(node.host for node in system.nodes if node.node_id == leader)
    fault = {"target": at.name, "apis": ["Fetch"], "do": "repeat", "peers": [host_of(system, follower)]}
    with in_force(system, fault) as recorded:
        sent(producer)
    assert "Fetch requests repeated" in str(recorded.ended("f1")["proof"])
    log = system.fleet.remote(at).run(f"cat {folders_of(at).log}").stdout
    assert "listening on" in log
    assert "is for nodes of the cluster" not in log


def the_answer_is_late(system: WracklineSystem | KafkaSystem, api: str, act: Callable[[], None]) -> None:
    """Once, and by as much as was asked for."""
    brokers = ",".join(node.host.name for node in system.nodes if node.is_broker)
    slow = {"target": brokers, "apis": [api], "what": "answer", "delay_s": HELD_S, "times": 1}
    with in_force(system, {**slow, "peers": ["client"]}):
        took_s = []
        for _ in range(2):
            began = time.monotonic()
            act()
            took_s.append(time.monotonic() - began)
    assert took_s[0] >= HELD_S > took_s[1]


def test_messages_of_our_broker(bundle_cache: Path, tmp_path: Path) -> None:
    config = {**CONFIG, "replica_lag_time_max_ms": 1_500}
    topic = TopicSpec("log", 1, 2, {"min.insync.replicas": "1"})
    settings = {"brokers": ("n1", "n2"), "controllers": ("c1",), "config": config}
    with (
        NetnsFleet(f"held-{os.getpid()}", ("n1", "n2", "c1"), state_dir=tmp_path, disk_mb=64) as fleet,
        started(fleet, bundle_cache, topic, **settings) as system,
    ):
        the_follower_falls_behind(system)
        with fleet.entered():
            producer = Producer({"bootstrap.servers": system.bootstrap()})
        sent(producer)
        the_answer_is_late(system, "Produce", lambda: sent(producer))
        a_repeated_fetch_counts_as_the_followers(system, producer)
        fenced = {"target": "c1", "apis": ["BrokerHeartbeat"], "do": "drop", "peers": ["n2"]}
        with in_force(system, fenced):
            wait_until(lambda: system.describe().brokers == (1,), "a broker without heartbeats is fenced")
        wait_until(lambda: set(system.describe().brokers) == {1, 2}, "it is back")


@pytest.mark.nightly
def test_messages_of_apache_kafka() -> None:
    config = {"replica.lag.time.max.ms": 3_000, "transaction.state.log.replication.factor": 1}
    with kafka_cluster(("n1", "n2"), ("c1",), config=config) as system:
        system.create_topic(TopicSpec("log", 1, 2, {"min.insync.replicas": "1"}))
        the_follower_falls_behind(system)
        with system.fleet.entered():
            producer = Producer({"bootstrap.servers": system.bootstrap(), "transactional.id": "t"})
            producer.init_transactions(60)

        def transaction() -> None:
            producer.begin_transaction()
            producer.produce("log", b"y", partition=0)
            producer.commit_transaction(30)

        transaction()
        the_answer_is_late(system, "EndTxn", transaction)

"""A broker is removed and another replaced in a cluster of our own; librdkafka looks from outside."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.nemesis.doubles import Recorded
from tests.nemesis.load import started
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.admin_steps import DescribeBroker, Unregister
from wrackline.nemesis.faults.cluster.growth import Move, say_moves
from wrackline.nemesis.faults.cluster.removal import RemoveBroker, ReplaceBroker
from wrackline.nemesis.faults.steps import (
    AwaitReassignment,
    Evacuate,
    FaultContext,
    FaultError,
    ProbeLog,
    StepResult,
    Target,
)
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import TopicSpec

BROKERS = ("n1", "n2", "n3")


def replicas(client: AdminClient) -> list[set[int]]:
    topic = client.list_topics("log", timeout=10).topics["log"]
    return [set(topic.partitions[number].replicas) for number in sorted(topic.partitions)]


@pytest.mark.fleet
def test_one_is_replaced_by_a_spare_and_one_removed(bundle_cache: Path, tmp_path: Path) -> None:
    hosts = (*BROKERS, "n4", "c1")
    settings = {"brokers": BROKERS, "controllers": ("c1",), "spares": ("n4",)}
    with (
        NetnsFleet(f"gone-{os.getpid()}", hosts, state_dir=tmp_path, disk_mb=64) as fleet,
        started(fleet, bundle_cache, TopicSpec("log", 2, 2, {}), **settings) as system,
    ):
        with fleet.entered():
            client = AdminClient({"bootstrap.servers": system.bootstrap()})
            client.list_topics(timeout=10)
        faults = [
            {"at_s": 0.0, "duration_s": 60.0, "fault": "replace-broker", "target": "n1"},
            {"at_s": 0.0, "duration_s": 60.0, "fault": "remove-broker", "target": "n3"},
        ]
        for number, fault in enumerate(faults, 1):
            recorded = Recorded()
            nemesis = Nemesis(
                plan(load({"schedule": [fault]}), number, 90.0), fleet, system, recorded, topics=("log",)
            )
            nemesis.start()
            recorded.wait_for(lambda seen=recorded: "active" in seen.phases("f1"), timeout_s=60)
            gone = {1: 1, 2: 3}[number]
            assert gone not in set().union(*replicas(client))
            deadline = time.monotonic() + 10
            while gone in client.list_topics(timeout=10).brokers and time.monotonic() < deadline:
                time.sleep(0.2)
            assert gone not in client.list_topics(timeout=10).brokers
            assert nemesis.stop_and_heal() == []
            recorded.assert_proved("f1")
            assert f"node {gone} on n{gone} is gone from the cluster" in recorded.ended("f1")["proof"]
            if number == 1:
                assert {4} < set().union(*replicas(client))
        system.wait_ready()
        assert set(client.list_topics(timeout=10).brokers) >= {1, 2, 3}, "they are back, without replicas"


ONE = Target("n1", "198.18.0.11", 1, 9092, "/data", pid=7)
SPARE = Target("n4", "198.18.0.14", 4, 9092, "/data", spare=True)


def test_without_a_spare_nobody_is_replaced() -> None:
    with pytest.raises(FaultError, match="no spare broker is left"):
        ReplaceBroker().commands(FaultContext("f1", (ONE,), ()))
    assert ReplaceBroker().commands(FaultContext("f1", (ONE,), (SPARE,))).do[0].by_node == 4  # type: ignore[union-attr]


def test_a_broker_that_the_cluster_still_knows_is_not_removed() -> None:
    context = FaultContext("f1", (ONE,), (SPARE,))
    done = RemoveBroker().commands(context).do
    said = {Evacuate: say_moves([Move("log", 0, (1, 2), (3, 2))]), AwaitReassignment: "{}"}
    probe_log = ProbeLog(
        do=[StepResult(step, said.get(type(step), "")) for step in done],
        active=[StepResult(DescribeBroker("n1", 1), "not there")],
        final=[StepResult(DescribeBroker("n1", 1), "there")],
    )
    assert RemoveBroker().prove(context, probe_log).text == "at the end the cluster said of node 1: there"
    kept = [one for one in probe_log.do if not isinstance(one.step, Unregister)]
    assert RemoveBroker().prove(context, ProbeLog(do=kept)).text == "node 1 was not forgotten"

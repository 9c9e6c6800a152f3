"""An operator's unclean election with real processes: all complete replicas are away, and one that lags is
there (R27, R29). The strategy proactive is in test_recovery_strategy.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, TopicPartition

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = [pytest.mark.real, pytest.mark.slow]
BEFORE = [b"a%d" % n for n in range(5)]


def test_a_lagging_replica_is_elected_by_an_operator(tmp_path: Path) -> None:
    keys = {"unclean_recovery_strategy": "manual", "unclean_recovery_window_ms": 500}
    with Cluster(tmp_path, controller_keys=keys) as cluster:
        cluster.create_topic("log")
        leader = cluster.leader("log")
        lags, other = (node for node in cluster.brokers if node != leader)
        produce(cluster.bootstrap, "log", BEFORE)
        cluster.brokers[lags].kill()
        cluster.wait_isr("log", size=2)
        produce(cluster.bootstrap, "log", [b"only the others have it"])
        cluster.brokers[other].kill()
        cluster.wait_isr("log", size=1)
        cluster.brokers[leader].kill()
        cluster.brokers[lags].start()
        cluster.wait_registered()
        wait_for("no leader", lambda: cluster.describe("log")[0].leader == -1)
        wanted = [TopicPartition("log", 0)]
        told = cluster.admin().elect_leaders(ElectionType.UNCLEAN, wanted).result(30)
        assert list(told.values()) == [None], told
        wait_for("the one that lags to lead", lambda: cluster.describe("log")[0].leader == lags)
        cluster.brokers[other].start()
        cluster.wait_isr("log", size=2)
        assert consume(cluster.bootstrap, "log", len(BEFORE)) == list(enumerate(BEFORE))
        assert "possible data loss" in cluster.controller.log.read_text()
        lines = [json.loads(line) for line in cluster.controller.trace.read_text().splitlines()]
        (loud,) = [line for line in lines if line["kind"] == "recovery" and line.get("winner") == lags]
        assert sorted(loud["unheard"]) == sorted((leader, other))
        assert loud["logs"] == {str(lags): [0, len(BEFORE)]}

"""These tests show what real clients see when brokers die, stop, freeze and come back.

Each test has a cluster of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.broker.clients.logs import consume, end_offset, produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = pytest.mark.real


class Writer(threading.Thread):
    """Sends numbered values until told to stop; remembers what was acknowledged, and at which offset."""

    def __init__(self, bootstrap: str, topic: str, **settings: object) -> None:
        super().__init__(daemon=True)
        self.acked: dict[bytes, int] = {}
        self.sent = 0
        self._topic = topic
        self._over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "linger.ms": 1,
                "enable.idempotence": True,
                "delivery.timeout.ms": 30_000,
                "request.timeout.ms": 2_000,
                "socket.timeout.ms": 3_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
                **settings,
            }
        )

    def run(self) -> None:
        while not self._over.is_set():
            value = b"%08d" % self.sent
            self.sent += 1
            self._producer.produce(self._topic, value, partition=0, on_delivery=self._delivered)
            self._producer.poll(0)
            time.sleep(0.001)
        self._producer.flush(35)

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acked[message.value()] = message.offset()  # type: ignore[attr-defined]

    def finish(self) -> dict[bytes, int]:
        self._over.set()
        self.join(40)
        assert not self.is_alive()
        return self.acked

    def wait_for_more(self, count: int = 100) -> None:
        now = len(self.acked)
        wait_for(f"{count} more acknowledged records", lambda: len(self.acked) >= now + count, 25)


def check_everything_acked_is_there(cluster: Cluster, topic: str, acked: dict[bytes, int]) -> None:
    count = end_offset(cluster.bootstrap, topic)
    log = consume(cluster.bootstrap, topic, count)
    at = dict(log)
    assert sorted(at) == list(range(count)), "every offset is readable"
    lost = {value: offset for value, offset in acked.items() if at.get(offset) != value}
    assert lost == {}
    values = [value for _, value in log]
    assert len(values) == len(set(values)), "an idempotent producer writes nothing twice"
    assert values == sorted(values), "nor out of order"


@contextmanager
def under_load(folder: Path, **settings: Any) -> Iterator[tuple[Cluster, Writer]]:
    """A cluster that is written to; at the end everything that was acknowledged is there."""
    with Cluster(folder, **settings) as cluster:
        cluster.create_topic("log")
        writer = Writer(cluster.bootstrap, "log")
        writer.start()
        writer.wait_for_more()
        yield cluster, writer
        check_everything_acked_is_there(cluster, "log", writer.finish())


def test_kill_minus_9_of_leaders_loses_nothing_acknowledged(tmp_path: Path) -> None:
    with under_load(tmp_path) as (cluster, writer):
        for _ in range(2):
            leader = cluster.leader("log")
            cluster.brokers[leader].kill()
            wait_for("another leader", lambda old=leader: cluster.leader("log") != old)
            writer.wait_for_more()
            cluster.brokers[leader].start()
            cluster.wait_isr("log")
        acked = writer.finish()
        assert len(acked) == writer.sent, "with retries on, everything is acknowledged in the end"


def test_a_rolling_restart_is_clean(tmp_path: Path) -> None:
    with under_load(tmp_path) as (cluster, writer):
        for node in cluster.brokers.values():
            assert node.stop() == 0, node.log.read_text()[-2_000:]
            clean = json.loads((node.data_dir / ".kafka_cleanshutdown").read_text())
            assert clean["version"] == 0
            assert clean["brokerEpoch"] > 0
            assert cluster.describe("log")[0].leader != node.node_id
            node.start()
            cluster.wait_isr("log")
            assert not (node.data_dir / ".kafka_cleanshutdown").exists()
            assert f"previous broker epoch {clean['brokerEpoch']}" in node.log.read_text()
            writer.wait_for_more()


def test_the_whole_cluster_goes_and_comes_back(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.create_topic("log")
        acked = produce(cluster.bootstrap, "log", [b"%08d" % i for i in range(500)])
        brokers = list(cluster.brokers.values())
        for node in brokers:
            node.signal(signal.SIGTERM)
        assert [node.wait() for node in brokers] == [0, 0, 0], cluster.tails()
        cluster.controller.kill()
        for node in cluster.nodes:
            node.start()
        cluster.wait_registered()
        cluster.wait_isr("log")
        check_everything_acked_is_there(cluster, "log", acked)
        assert produce(cluster.bootstrap, "log", [b"after"]) == {b"after": 500}


@pytest.mark.parametrize("controller_too", [False, True])
def test_kill_minus_9_of_all_brokers_at_once_loses_nothing_acknowledged(
    tmp_path: Path, controller_too: bool
) -> None:
    """Neither ISR nor ELR is left: the controller compares the logs of all candidates
    (docs/protocol.md 2.9)."""
    with Cluster(tmp_path) as cluster:
        cluster.create_topic("log")
        cluster.create_topic("lone", replicas=1)
        lone = produce(cluster.bootstrap, "lone", [b"a", b"b"])
        writer = Writer(cluster.bootstrap, "log")
        writer.start()
        writer.wait_for_more()
        victims = [*cluster.brokers.values(), *([cluster.controller] if controller_too else [])]
        for node in victims:
            node.signal(signal.SIGKILL)
        for node in victims:
            node.wait()
        for node in victims:
            node.start()
        cluster.wait_registered()
        cluster.wait_isr("log")
        cluster.wait_isr("lone", size=1)
        writer.wait_for_more()
        check_everything_acked_is_there(cluster, "log", writer.finish())
        check_everything_acked_is_there(cluster, "lone", lone)
        said = cluster.controller.log.read_text()
        assert said.count("possible data loss") == 2, said[-2_000:]
        assert re.search(r"recovery: tp=log-0, .*winner=\d", said), said[-2_000:]


def _all_heard(cluster: Cluster) -> bool:
    said = "node 101 (controller): answers again"
    return all(
        node.log.read_text().rfind(said) > node.log.read_text().rfind("node 101 (controller): c")
        for node in cluster.brokers.values()
    )


def test_the_controller_may_be_away(tmp_path: Path) -> None:
    with under_load(tmp_path, controller_keys={"session_timeout_ms": 6_000}) as (cluster, writer):
        cluster.controller.kill()
        writer.wait_for_more(300)
        cluster.controller.start()
        wait_for("the controller", lambda: cluster.controller.log.read_text().count("listening on") == 2)
        wait_for("the brokers to notice", lambda: _all_heard(cluster))
        cluster.create_topic("made-after")


def test_a_paused_leader_is_replaced_and_comes_back_as_a_follower(tmp_path: Path) -> None:
    with under_load(tmp_path) as (cluster, writer):
        leader = cluster.leader("log")
        process = cluster.brokers[leader].process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        try:
            wait_for("another leader", lambda: cluster.leader("log") != leader)
            writer.wait_for_more()
        finally:
            os.kill(process.pid, signal.SIGCONT)
        cluster.wait_isr("log")


def test_too_few_replicas_refuse_acks_all_and_nothing_is_half_written(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.create_topic("log")
        assert len(produce(cluster.bootstrap, "log", [b"before"])) == 1
        leader = cluster.leader("log")
        others = [node for node in cluster.brokers.values() if node.node_id != leader]
        for node in others:
            node.kill()
        wait_for("an ISR of one", lambda: cluster.describe("log")[0].isrs == [leader])
        refused = produce(cluster.bootstrap, "log", [b"too few"], delivery_timeout_ms=3_000)
        assert refused == {}
        for node in others:
            node.start()
        cluster.wait_isr("log")
        assert produce(cluster.bootstrap, "log", [b"after"]) == {b"after": 1}


def test_the_trace_tells_the_life_of_a_partition(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.create_topic("log")
        produce(cluster.bootstrap, "log", [b"x"])
        leader = cluster.leader("log")
        time.sleep(0.2)
        lines = [json.loads(line) for line in cluster.brokers[leader].trace.read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["node"] for line in lines} == {leader}
    assert len({line["incarnation"] for line in lines}) == 1
    assert [line["mono_ns"] for line in lines] == sorted(line["mono_ns"] for line in lines)
    about = [line for line in lines if line.get("tp") == "log-0"]
    kinds = [line["kind"] for line in about]
    for kind in ("role", "append", "hwm", "ack"):
        assert kind in kinds, kinds
    assert kinds.index("append") < kinds.index("hwm") < kinds.index("ack")


def test_flushing_every_write_commits_nothing_unflushed(tmp_path: Path) -> None:
    """R01: on every replica the flush of a record comes before a high watermark that includes it."""
    with Cluster(tmp_path, broker_keys={"flush_mode": "every-write"}) as cluster:
        cluster.create_topic("log")
        assert len(produce(cluster.bootstrap, "log", [b"%d" % i for i in range(50)], linger_ms=0)) == 50
        time.sleep(0.2)
        for node in cluster.brokers.values():
            flushed, checked = 0, 0
            for line in map(json.loads, node.trace.read_text().splitlines()):
                if line.get("tp") != "log-0":
                    continue
                if line["kind"] == "flush":
                    flushed = line["upto"]
                elif line["kind"] == "hwm" and node.node_id == cluster.leader("log"):
                    assert line["new"] <= flushed
                    checked += 1
            assert flushed == 50, f"node {node.node_id} flushed up to {flushed}"
            assert checked or node.node_id != cluster.leader("log")

"""Our broker in profile zk08 on real hosts, beside a real ZooKeeper on a host of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.zookeeper.server.carriers import release
from tests.zookeeper.systems.servers.driven import produce, until
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.simulator.trace_check.lines import Trace
from wrackline.simulator.trace_check.verdicts import judge
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.zookeeper.systems.wrackline.system import WracklineOnZooKeeper

pytestmark = [pytest.mark.fleet, pytest.mark.slow]
CONFIG = {
    "zookeeper_session_timeout_ms": 2_000,
    "replica_lag_time_max_ms": 2_000,
    "replica_fetch_backoff_ms": 200,
    "high_watermark_checkpoint_interval_ms": 300,
}


def test_a_small_cluster_from_its_start_to_a_zookeeper_that_is_away(
    tmp_path: Path, bundle_cache: Path
) -> None:
    release()
    with NetnsFleet(
        f"zk08-{os.getpid()}", ("n1", "n2", "z1"), state_dir=tmp_path / "fleet", disk_mb=128
    ) as fleet:
        system = WracklineOnZooKeeper(
            fleet,
            brokers=("n1", "n2"),
            zookeepers=("z1",),
            cluster_id="test-zk08",
            profile="zk08",
            config=CONFIG,
            bundle_cache=bundle_cache,
        )
        try:
            system.install()
            system.start_all()
            system.wait_ready()
            lives_through_it(system, tmp_path / "collected")
        finally:
            system.close()


def lives_through_it(system: WracklineOnZooKeeper, collected: Path) -> None:
    first, second = system.brokers
    [server] = system.zookeepers
    assert system.ensemble() == {201: "standalone"}
    system.create_topic(TopicSpec("log", 1, 2, {"min.insync.replicas": "1"}))
    assert until(system, lambda seen: seen.full_isr).leader == 1
    acked = produce(system, 100)
    assert len(acked) == 100
    for node in system.brokers:
        log = system.replica_log(node, "log", 0)
        assert log.problem is None
        assert {record.offset: record.value for record in log.records} == acked

    system.kill(first)
    until(system, lambda seen: seen.leader == 2)
    system.start(first)  # which listens when its former session has ended
    until(system, lambda seen: seen.leader == 1 and seen.full_isr)

    pid = system.pid(first)
    end = system.expire_session(first)
    assert end.node == "/brokers/ids/1"
    assert end.after not in (0, end.before)
    assert system.pid(first) == pid, "the process lived"
    until(system, lambda seen: seen.leader > 0 and seen.full_isr)

    system.kill(server)
    with pytest.raises(DeployError, match=r"no answer within 2 s .*; see that it runs"):
        system.describe(timeout_s=2)
    system.start(server)
    until(system, lambda seen: seen.leader > 0 and seen.full_isr)
    assert len(produce(system, 10)) == 10

    system.collect(collected)
    assert "zookeeper_connect = " in (collected / "n2" / "effective-config.toml").read_text()
    assert "clientPort=2181" in (collected / "z1" / "effective-config.toml").read_text()
    assert not list(collected.glob("*/missing.txt"))
    assert system.is_running(second)
    assert system.chronicle("log", collected).missing == ()
    traces_break_nothing(collected)


def traces_break_nothing(collected: Path) -> None:
    """One broker was killed, one lost its session, ZooKeeper was away: one after the other."""
    files = [*sorted(collected.glob("n*/trace.jsonl")), collected / "z1" / "transactions.jsonl"]
    traces = [Trace(file.parent.name, file.read_bytes().splitlines()) for file in files]
    found = judge(traces, profile="zk08", flush_mode="on-roll", recovery_strategy="balanced")
    assert found.broken == ()
    assert (found.unordered, found.unread, found.blind, found.until_ns) == (0, 0, (), None)
    assert found.steps > 200
    assert {"I01", "I07", "I17", "I21", "I22"} <= set(found.checked)

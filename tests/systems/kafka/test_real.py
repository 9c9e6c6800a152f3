"""The adapter against Apache Kafka itself: one node of the newest version, started once; more by night."""

from __future__ import annotations

import tarfile
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.systems.kafka.conftest import READY_S, cluster, installed
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.install import install
from wrackline.systems.kafka.releases import NEWEST
from wrackline.systems.kafka.server import formatted
from wrackline.systems.kafka.settings import refused
from wrackline.systems.kafka.system import KafkaSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow]


def produce(system: KafkaSystem, topic: str, values: list[bytes]) -> dict[int, bytes]:
    """Offset -> value, as acknowledged (acks=all) to a confluent-kafka producer."""
    acked: dict[int, bytes] = {}
    with system.fleet.entered():
        producer = Producer({"bootstrap.servers": system.bootstrap(), "acks": "all", "linger.ms": 1})
        for value in values:
            producer.produce(
                topic,
                value,
                partition=0,
                on_delivery=lambda _, m: acked.update({m.offset() or 0: m.value() or b""}),
            )
        assert producer.flush(60) == 0
    return acked


def test_one_node_is_asked_driven_read_stopped_and_started(one_node: KafkaSystem, tmp_path: Path) -> None:
    """All in one: the start of a JVM is what costs."""
    system, [node] = one_node, one_node.nodes
    system.create_topic(TopicSpec("log", 1, 1, {}), timeout_s=READY_S)
    state = system.describe()
    assert (state.controller, state.brokers) == (1, (1,))
    [partition] = [one for one in state.partitions if one.topic == "log"]
    assert (partition.topic, partition.leader, partition.isr) == ("log", 1, (1,))

    acked = produce(system, "log", [f"value-{number}".encode() * 20 for number in range(300)])
    log = system.replica_log(node, "log", 0)
    assert log.problem is None
    assert {one.offset: one.value for one in log.records} == acked
    assert (len(acked), log.log_start, log.leo) == (300, 0, 300)

    features = system.features()
    assert features["eligible.leader.replicas.version"] == 1
    assert features["transaction.version"] == 2
    config = system.effective_config(node)
    given, _, default = config.partition("# by default")
    assert "broker.session.timeout.ms=2000\n" in given
    assert "log.flush.interval.messages=9223372036854775807\n" in default
    with pytest.raises(DeployError, match=r"toomany cannot be created.*invalid_replication_factor"):
        system.create_topic(TopicSpec("toomany", 1, 9, {}))

    system.collect(tmp_path)
    kept = tmp_path / "n1"
    assert "Kafka Server started" in (kept / "broker.log").read_text()
    assert "broker.session.timeout.ms=2000" in (kept / "effective.properties").read_text()
    assert "log-0/00000000000000000000.log" in (kept / "listing.txt").read_text()
    assert not (kept / "missing.txt").exists()

    system.stop(node, timeout_s=READY_S)
    assert not system.is_running(node)
    assert "effective" not in system.effective_config(node)
    assert "from the node's file" in system.effective_config(node)
    assert system.fleet.remote(node.host).run("cat /data/broker/.kafka_cleanshutdown").ok


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["4.4.0", "4.0.0", "3.9.2"])
def test_brokers_with_a_controller_of_their_own(version: str) -> None:
    with cluster(("n1", "n2", "n3"), ("c1", "c2", "c3"), version=version) as system:
        system.create_topic(TopicSpec("log", 1, 3, {"min.insync.replicas": "2"}), timeout_s=READY_S)
        before = system.describe()
        assert before.brokers == (1, 2, 3)
        assert before.controller in (101, 102, 103), "KRaft controllers are asked by another question"
        acked = produce(system, "log", [b"%d" % number for number in range(100)])
        partition = before.partition("log", 0)
        assert partition is not None
        by_id = {node.node_id: node for node in system.nodes}
        system.kill(by_id[partition.leader])
        system.kill(by_id[before.controller])
        deadline = time.monotonic() + READY_S
        while True:
            state = system.describe(timeout_s=READY_S)
            now = state.partition("log", 0)
            assert now is not None
            if now.leader not in (-1, partition.leader) and state.controller not in (-1, before.controller):
                break
            assert time.monotonic() < deadline, state
            time.sleep(0.2)
        system.start(by_id[partition.leader])
        system.start(by_id[before.controller])
        system.wait_ready(timeout_s=READY_S)
        for node in system.brokers:
            read = {one.offset: one.value for one in system.replica_log(node, "log", 0).records}
            assert read == acked
        controller = by_id[101]
        assert "# given" in system.effective_config(controller)
        assert "node.id=101" in system.effective_config(controller)


@pytest.mark.nightly
def test_a_spare_joins_and_takes_its_share() -> None:
    with cluster(("n1", "n2", "n3"), ("n1", "n2", "n3"), spares=("n4",)) as system:
        system.create_topic(TopicSpec("log", 4, 3, {}), timeout_s=READY_S)
        [spare] = system.spares
        system.start(spare)
        deadline = time.monotonic() + READY_S
        while spare.node_id not in system.describe().brokers:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        plan = system.growth_plan(spare, "log")
        assert len(plan) == 3
        system.reassign(plan)
        while (moving := system.reassignments()) or not _moved(system, plan):
            assert time.monotonic() < deadline, moving
            time.sleep(0.2)


def _moved(system: KafkaSystem, plan: dict[tuple[str, int], tuple[int, ...]]) -> bool:
    state = system.describe(timeout_s=READY_S)
    found = {place: state.partition(*place) for place in plan}
    return all(
        one is not None and one.replicas == plan[place] and one.full_isr for place, one in found.items()
    )


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["4.4.0", "4.0.0", "3.9.2"])
def test_every_setting_that_a_node_is_given_is_one_that_its_version_knows(version: str) -> None:
    release = installed(version)
    golden = Path(__file__).with_name("golden")
    given: dict[str, str | int | float | bool] = {}
    for role in ("combined", "broker", "controller"):
        lines = (golden / f"{version}-{role}.properties").read_text().splitlines()
        given |= dict(line.split("=", 1) for line in lines)
    known = (release.folder / "settings.json").read_text()
    assert [key for key in given if f'"{key}"' not in known] == []
    assert list(refused(release, given, {"min.insync.replicas": "2", "flush.messages": "1"})) == []


@pytest.mark.nightly
def test_a_feature_that_the_server_does_not_know_is_refused_before_there_is_any_host() -> None:
    release = installed("4.0.0")
    assert formatted(release, {"eligible.leader.replicas.version": 1}) != formatted(release, {})
    with pytest.raises(
        DeployError, match=r"control node: Kafka 4\.0\.0: kafka\.tools\.StorageTool: .*no\.such"
    ):
        formatted(release, {"no.such.version": 1})
    assert Store().find("4.0.0") == release


@pytest.mark.nightly
def test_a_release_as_it_is_published_is_installed_without_maven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = installed(NEWEST)
    tarball = tmp_path / f"kafka_2.13-{NEWEST}.tgz"
    with tarfile.open(tarball, "w:gz", compresslevel=1) as archive:
        archive.add(release.folder / "libs", arcname=f"kafka_2.13-{NEWEST}/libs")
    monkeypatch.setattr("wrackline.systems.jvm.store._INVISIBLE", ())  # nobody here has hosts
    monkeypatch.delattr("wrackline.systems.kafka.install.resolve")
    again = install(Store(tmp_path / "kafka"), NEWEST, tarball=tarball)
    assert again.sha256 == release.sha256
    assert formatted(again, {}).keys() == formatted(release, {}).keys(), "its content has the time in it"
    assert again.archive.stat().st_size > 20_000_000
    again.verify()

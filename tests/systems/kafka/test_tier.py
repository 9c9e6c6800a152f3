"""The remote tier: its plug-in compiles, and a node of Apache Kafka moves segments to it and reads them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_TIER
from tests.systems.kafka.conftest import READY_S, cluster, installed
from tests.systems.kafka.test_real import produce
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.fleets.process.spec import ProcessSpec
from wrackline.fleets.qemu.spec import QemuSpec
from wrackline.systems.base import TopicSpec
from wrackline.systems.kafka.releases import NEWEST
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.kafka.system import KafkaSystem
from wrackline.systems.kafka.tier import Tier, compiled

CONFIGS = {"remote.storage.enable": "true", "local.retention.ms": "500", "segment.ms": "1000"}
TOPIC = TopicSpec("tiered", 1, 1, CONFIGS)


@pytest.mark.slow
def test_the_plug_in_compiles_against_the_newest_version_once() -> None:
    release = installed(NEWEST)
    classes = compiled(release)
    assert (classes / "wrackline/FolderTier.class").is_file()
    before = classes.stat().st_mtime_ns
    assert compiled(release) == classes
    assert classes.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("spec", "fleet", "why"),
    [
        (KafkaSpec(tier=Tier()), NetnsSpec(), None),
        (KafkaSpec(tier=Tier()), ProcessSpec(), None),
        (KafkaSpec(tier=Tier()), QemuSpec(), "hosts of the fleet qemu share no folder"),
        (KafkaSpec(tier=Tier()), NetnsSpec(disks=2), "one log directory with a remote tier"),
        (KafkaSpec(tier=Tier(), version="3.8.1"), NetnsSpec(), "ready for use since 3.9.0"),
    ],
)
def test_a_tier_that_cannot_be_is_refused(
    spec: KafkaSpec, fleet: NetnsSpec | ProcessSpec | QemuSpec, why: str | None
) -> None:
    refusal = spec.refusal(fleet)
    assert refusal is None if why is None else why in (refusal or "")


@pytest.fixture(scope="module")
def tiered() -> Iterator[KafkaSystem]:
    with cluster(("n1",), ("n1",), tier=Tier(interval_s=0.2)) as system:
        system.create_topic(TOPIC, timeout_s=READY_S)
        yield system


@contextmanager
def load(system: KafkaSystem) -> Iterator[dict[int, bytes]]:
    """Records are appended all the time; what was acknowledged, by offset."""
    acked: dict[int, bytes] = {}
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(0.05):
            acked.update(produce(system, TOPIC.name, [b"%d" % number * 50]))
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield acked
    finally:
        over.set()
        thread.join()


@pytest.mark.nightly
@pytest.mark.fleet
def test_records_that_are_in_the_tier_alone_are_read_from_the_beginning(tiered: KafkaSystem) -> None:
    [node] = tiered.nodes
    with load(tiered) as acked:
        deadline = time.monotonic() + READY_S
        while (log := tiered.replica_log(node, TOPIC.name, 0)).log_start == 0:
            assert time.monotonic() < deadline, log
            time.sleep(0.5)
    assert log.problem is None
    segments = tiered.fleet.remote(node.host).run("ls /shared/tier/segments/tiered-0").stdout
    assert "00000000000000000000-" in segments
    with tiered.fleet.entered():
        consumer = Consumer(
            {
                "bootstrap.servers": tiered.bootstrap(),
                "group.id": "g",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([TOPIC.name])
        read: dict[int, bytes] = {}
        deadline = time.monotonic() + READY_S
        while len(read) < len(acked):
            assert time.monotonic() < deadline, (len(read), len(acked))
            for message in consumer.consume(100, timeout=1.0):
                if message.error() is None:
                    read[message.offset() or 0] = message.value() or b""
        consumer.close()
    assert read == acked


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.parametrize(("trial", "sabotage"), every(ON_TIER))
def test_nobody_is_taken_in(tiered: KafkaSystem, trial: Trial, sabotage: Sabotage) -> None:
    with load(tiered):
        check(trial, Place(tiered.fleet, tiered, (TOPIC.name,)), sabotage)

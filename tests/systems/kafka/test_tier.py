"""The remote tier: its plug-in compiles, its stores do alike, and a node of Apache Kafka moves segments to it
and reads them."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from pydantic import ValidationError

from tests.checkers.servers import BUCKET, Storage, s3
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_TIER
from tests.systems.kafka.conftest import READY_S, cluster, installed
from tests.systems.kafka.test_real import produce
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.fleets.process.fleet import ProcessFleet
from wrackline.fleets.process.spec import ProcessSpec
from wrackline.fleets.qemu.spec import QemuSpec
from wrackline.systems.base import DeployError, TierTraffic, TopicSpec
from wrackline.systems.kafka.releases import NEWEST
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.kafka.system import KafkaSystem
from wrackline.systems.kafka.tier import KEYS, Tier, compiled, credentials, traffic_of

CONFIGS = {"remote.storage.enable": "true", "local.retention.ms": "500", "segment.ms": "1000"}
TOPIC = TopicSpec("tiered", 1, 1, CONFIGS)
TRIAL = Path(__file__).with_name("StoreTrial.java")


def in_s3(storage: Storage) -> Tier:
    return Tier(kind="s3", endpoint=storage.environment["AWS_ENDPOINT_URL"], bucket=BUCKET, interval_s=0.2)


@pytest.mark.slow
def test_the_plug_in_compiles_against_the_newest_version_once() -> None:
    release = installed(NEWEST)
    classes = compiled(release, Tier())
    assert (classes / "wrackline/FaultyTier.class").is_file()
    before = classes.stat().st_mtime_ns
    assert compiled(release, Tier()) == classes
    assert classes.stat().st_mtime_ns == before


def tried(tier: Tier, scratch: Path, store: str, **settings: object) -> str:
    """What `StoreTrial.java` says of a store."""
    release = installed(NEWEST)
    classes = compiled(release, tier)
    classpath = os.pathsep.join([str(scratch), str(classes), f"{classes}/*", release.classpath])
    subprocess.run(["javac", "-d", scratch, "-cp", classpath, TRIAL], check=True, timeout=300)
    words = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    command = ["java", "-cp", classpath, "wrackline.StoreTrial", f"wrackline.{store}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return (done.stdout or done.stderr).strip()


@pytest.mark.slow
def test_a_folder_keeps_what_it_is_given(tmp_path: Path) -> None:
    assert tried(Tier(), tmp_path, "FolderStore", dir=tmp_path / "tier") == "kept"


@pytest.mark.nightly
def test_a_server_that_speaks_s3_keeps_what_it_is_given(tmp_path: Path) -> None:
    with s3(tmp_path) as storage:
        keys = tmp_path / "keys"
        keys.write_text("\n".join(storage.environment[name] for name in KEYS))
        said = tried(
            in_s3(storage),
            tmp_path,
            "S3Store",
            s3_endpoint=storage.environment["AWS_ENDPOINT_URL"],
            s3_bucket=BUCKET,
            s3_region="us-east-1",
            s3_prefix="one",
            s3_credentials=keys,
        )
    assert said == "kept"


def test_the_journals_say_what_went_through_the_tier() -> None:
    lines = (
        "1 - stored copy log-0 0 9 500\n2 - stored copy log-0 10 19 500\n3 f1 lost copy log-0 20 29 500\n"
        "4 - stored copy log-0 0 9 500\n5 - fetched fetch log-0 0 9 500\n6 - fetched fetch log-0 0 9 500\n"
        "7 f2 failing fetch log-0 10 19 500\n8 - fet"
    )
    assert traffic_of(lines) == TierTraffic(copied=2, fetched=1, fetches=2)
    assert traffic_of("") == TierTraffic(0, 0, 0)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"kind": "s3"}, "needs an endpoint and a bucket"),
        ({"bucket": "b"}, "are of kind: s3"),
        ({"kind": "tape"}, "'folder' or 's3'"),
    ],
)
def test_a_tier_without_a_place_is_refused(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Tier.model_validate(settings)


def test_who_has_no_credentials_is_told_where_they_are_looked_for() -> None:
    with pytest.raises(DeployError, match="AWS_SECRET_ACCESS_KEY in the environment"):
        credentials({"AWS_ACCESS_KEY_ID": "me"})


@pytest.mark.parametrize(
    ("spec", "fleet", "why"),
    [
        (KafkaSpec(tier=Tier()), NetnsSpec(), None),
        (KafkaSpec(tier=Tier()), ProcessSpec(), None),
        (KafkaSpec(tier=Tier(kind="s3", endpoint="http://x", bucket="b")), ProcessSpec(), None),
        (
            KafkaSpec(tier=Tier(kind="s3", endpoint="http://x", bucket="b")),
            NetnsSpec(),
            "reach no server outside",
        ),
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


def check_that_records_come_back(system: KafkaSystem) -> None:
    """Segments that are in the tier alone are read from the beginning."""
    [node] = system.nodes
    with load(system) as acked:
        deadline = time.monotonic() + READY_S
        while (log := system.replica_log(node, TOPIC.name, 0)).log_start == 0:
            assert time.monotonic() < deadline, log
            time.sleep(0.5)
    assert log.problem is None
    with system.fleet.entered():
        consumer = Consumer(
            {
                "bootstrap.servers": system.bootstrap(),
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
    traffic = system.tier_traffic()
    assert traffic is not None
    assert traffic.copied > 0
    assert 0 < traffic.fetched <= traffic.fetches


@pytest.mark.nightly
@pytest.mark.fleet
def test_records_that_are_in_the_tier_alone_are_read_from_the_beginning(tiered: KafkaSystem) -> None:
    check_that_records_come_back(tiered)
    [node] = tiered.nodes
    segments = tiered.fleet.remote(node.host).run("ls /shared/tier/segments/tiered-0").stdout
    assert "00000000000000000000-" in segments


@pytest.mark.nightly
@pytest.mark.real
def test_records_come_back_from_a_server_that_speaks_s3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(NEWEST)
    with (
        s3(tmp_path) as storage,
        ProcessFleet("tier", ("n1",), state_dir=tmp_path / "state") as fleet,
    ):
        for name in KEYS:
            monkeypatch.setenv(name, storage.environment[name])
        system = KafkaSystem(
            fleet,
            version=NEWEST,
            brokers=("n1",),
            controllers=("n1",),
            cluster_id=base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("="),
            start_s=READY_S,
            tier=in_s3(storage),
        )
        try:
            system.install()
            system.start_all()
            system.wait_ready(timeout_s=READY_S)
            system.create_topic(TOPIC, timeout_s=READY_S)
            check_that_records_come_back(system)
            [objects] = (tmp_path / "objects" / BUCKET).glob("*/segments/tiered-0")
            assert any(one.name.endswith(".LOG") for one in objects.iterdir())
        finally:
            system.close()


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.parametrize(("trial", "sabotage"), every(ON_TIER))
def test_nobody_is_taken_in(tiered: KafkaSystem, trial: Trial, sabotage: Sabotage) -> None:
    with load(tiered):
        check(trial, Place(tiered.fleet, tiered, (TOPIC.name,)), sabotage)

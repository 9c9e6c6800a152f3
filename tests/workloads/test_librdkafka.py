"""A YAML file is not code: every property of the librdkafka that is installed is allowed or refused, for a
reason."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException
from pydantic import ValidationError

from wrackline.workloads.clients.base import ClientError, Outgoing, RefusedSetting, Unavailable
from wrackline.workloads.clients.libraries import make_library
from wrackline.workloads.clients.librdkafka.binding import _loaded
from wrackline.workloads.clients.librdkafka.consumers import RdkafkaConsumer
from wrackline.workloads.clients.properties import ALLOWED, refusal
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.clients.store import CLIENT, VARIABLE, ClientStore
from wrackline.workloads.clients.versions import LIBRDKAFKA
from wrackline.workloads.log import LogSpec

TELLING = re.compile(
    r"\b(paths?|files?|directory|command|executed|libraries|dlopen|URLs?|URI|endpoint|keytab|PEM|callback)\b",
    re.I,
)
"""Words by which librdkafka's own description gives away that a property reaches beyond the client."""
HARMLESS_ALL_THE_SAME = {"statistics.interval.ms", "log_level"}
"""The first only makes a callback be called, which nobody has set."""


@pytest.fixture(scope="module")
def properties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name -> description of every property, as the very library that the clients use prints them."""
    mapped = Path("/proc/self/maps").read_text()
    found = re.search(r"\S*librdkafka\S*", mapped)
    assert found, f"no librdkafka in this process, with confluent-kafka {confluent_kafka.version()}"
    library, libc = ctypes.CDLL(found[0]), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    listing = tmp_path_factory.mktemp("librdkafka") / "properties.md"
    stream = ctypes.c_void_p(libc.fopen(str(listing).encode(), b"w"))
    library.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    rows = [line.split("|") for line in listing.read_text().splitlines() if line.count("|") >= 5]
    documented = {row[0].strip(): row[-1].strip() for row in rows}
    return {name: text for name, text in documented.items() if re.fullmatch(r"[a-z0-9._]+", name)}


def test_the_properties_come_from_the_installed_librdkafka(properties: dict[str, str]) -> None:
    assert len(properties) > 150
    assert {"plugin.library.paths", "bootstrap.servers", "linger.ms"} <= set(properties)


def test_every_property_of_the_library_has_been_looked_at(properties: dict[str, str]) -> None:
    """One that a new version brings is refused, and this says that somebody has to decide."""
    unknown = [name for name in properties if "not among the properties" in (refusal(name) or "")]
    assert unknown == []
    assert set(properties) >= ALLOWED


def test_what_reaches_files_commands_or_other_machines_is_refused(properties: dict[str, str]) -> None:
    reaching = {
        name for name, text in properties.items() if TELLING.search(name.replace(".", " ") + " " + text)
    }
    assert {
        "plugin.library.paths",
        "ssl.ca.location",
        "sasl.kerberos.kinit.cmd",
        "ssl.engine.location",
    } <= reaching
    assert {"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.assertion.file"} <= reaching
    assert {"https.ca.location", "offset.store.path", "ssl.keystore.location"} <= reaching
    assert sorted(reaching & ALLOWED - HARMLESS_ALL_THE_SAME) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plugin.library.paths", "load libraries or open files"),
        ("ssl.ca.location", "read files of this machine"),
        ("ssl.engine.location", "read files of this machine"),
        ("sasl.kerberos.kinit.cmd", "run commands"),
        ("sasl.kerberos.keytab", "run commands"),
        ("sasl.oauthbearer.token.endpoint.url", "fetch URLs"),
        ("https.ca.location", "read files"),
        ("security.protocol", "plain text"),
        ("offset.store.path", "open files"),
        ("bootstrap.servers", "the harness gives it itself"),
        ("enable.auto.commit", "the harness gives it itself"),
        ("acks", "give it as workload.acks"),
        ("compression.type", "give it as workload.client.compression"),
        ("delivery.timeout.ms", "give it as workload.client.message_timeout_ms"),
        ("error_cb", "it is a function"),
        ("group.id", "no consumer group"),
        ("batch.sizes", "did you mean 'batch.size'"),
        ("key.serializer", "not among the properties known to do no harm"),
    ],
)
def test_a_specification_that_sets_it_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(why)):
        ClientSettings(librdkafka={name: "x"})


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A version of confluent-kafka beside the one of this Python: a copy of it."""
    package = Path(confluent_kafka.__file__).parent
    folder = tmp_path / "librdkafka-2.99.0"
    for one in (package, package.with_name("confluent_kafka.libs")):
        shutil.copytree(one, folder / one.name)
    module = folder / "confluent_kafka" / "__init__.py"
    module.write_text(module.read_text() + '\n\ndef libversion():\n    return "2.99.0", 0\n')
    (folder / CLIENT).write_text('{"sha256": {}}')
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    yield "2.99.0"
    _loaded.pop("2.99.0", None)


def test_another_version_is_loaded_beside_the_installed_one(second: str, mock_cluster: str) -> None:
    """Its clients work, and what they raise is known as its own."""
    settings = LogSpec(client=ClientSettings(version=second, compression="lz4"))
    library = make_library(settings.client)
    assert library.version == "2.99.0"
    assert library.locate() != confluent_kafka.__file__
    assert make_library(ClientSettings()).version == confluent_kafka.libversion()[0]
    producer = library.producer(mock_cluster, settings)
    [outcome] = producer.send("log", [Outgoing(0, b"k", b"v", 5)])
    assert outcome.offset == 0
    producer.close()
    consumer = library.consumer(mock_cluster, settings)
    assert consumer.ends("log", 0) == (0, 1)
    with pytest.raises(ClientError):
        consumer.ends("log", 99)
    consumer.close()
    with pytest.raises(RefusedSetting, match=r"batch\.size"):
        library.check(LogSpec(client=ClientSettings(version=second, librdkafka={"batch.size": "x"})))
    assert confluent_kafka is sys.modules["confluent_kafka"]


class Forgetful:
    """A handle without metadata until somebody asks for a topic, as one is when no broker was there for a
    while."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.topics: list[str] = []

    def get_watermark_offsets(self, *args: Any, **options: Any) -> Any:
        if not self.topics:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return self._handle.get_watermark_offsets(*args, **options)

    def list_topics(self, topic: str, *, timeout: float) -> Any:
        self.topics.append(topic)
        return self._handle.list_topics(topic, timeout=timeout)

    def close(self) -> None:
        self._handle.close()


def test_a_client_that_has_forgotten_a_topic_asks_for_it(mock_cluster: str) -> None:
    settings = LogSpec()
    library = make_library(settings.client)
    producer = library.producer(mock_cluster, settings)
    producer.send("log", [Outgoing(0, b"k", b"v", 5)])
    producer.close()
    consumer: Any = library.consumer(mock_cluster, settings)
    consumer._handle = Forgetful(consumer._handle)
    with pytest.raises(ClientError, match="_UNKNOWN_PARTITION"):
        consumer.ends("log", 0)
    assert consumer.ends("log", 0) == (0, 1)
    assert consumer._handle.topics == ["log"]
    consumer.close()


def test_a_version_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    library = make_library(ClientSettings(version="2.97.0"))
    library.check(LogSpec())  # a run will fetch it
    with pytest.raises(Unavailable, match=r"confluent-kafka 2\.97\.0 is not.*kafka --librdkafka 2\.97\.0"):
        library.producer("h:1", LogSpec(client=ClientSettings(version="2.97.0")))


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("2.4.0", "confluent-kafka 2.4.0 is too old: 2.5.0 is the oldest"),
        ("2.8", "'2.8' is no version of confluent-kafka: give it in full, 2.8.0 for example"),
    ],
)
def test_a_version_that_cannot_be_used_is_refused(version: str, why: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(why)):
        ClientSettings(version=version)


@pytest.mark.nightly
def test_a_version_is_fetched_from_pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    library = make_library(ClientSettings(version="2.6.2"))
    library.prepare(print)
    assert library.version == "2.6.2"
    ClientStore(package=LIBRDKAFKA).install("2.6.2").verify()
    with pytest.raises(Unavailable, match=r"2\.98\.0 cannot be installed: No matching distribution"):
        make_library(ClientSettings(version="2.98.0")).prepare(print)
    assert [one.name for one in tmp_path.glob("librdkafka-*")] == ["librdkafka-2.6.2"]
    _loaded.pop("2.6.2")


def test_what_is_allowed_reaches_the_client() -> None:
    assert ClientSettings(librdkafka={"batch.size": 100, "debug": "broker"}).librdkafka["batch.size"] == 100


def test_of_a_consumer_in_a_rack_the_statistics_say_which_follower_it_reads_from(mock_cluster: str) -> None:
    settings = LogSpec(client=ClientSettings(rack="a"))
    consumer = RdkafkaConsumer(mock_cluster, settings)
    partitions = {
        "0": {"partition": 0, "broker": 2, "leader": 1},
        "1": {"partition": 1, "broker": 3, "leader": 3},
        "-1": {"partition": -1, "broker": -1, "leader": 1},
    }
    assert consumer.poll(timeout_s=0).followers == {}
    consumer._take_statistics(json.dumps({"topics": {"log": {"partitions": partitions}}}))
    assert consumer.poll(timeout_s=0).followers == {0: 2}
    consumer.close()


def test_statistics_of_a_consumer_in_a_rack_are_read(mock_cluster: str) -> None:
    """The mock cluster has leaders alone: what comes is read, and says of no follower."""
    consumer = RdkafkaConsumer(mock_cluster, LogSpec(client=ClientSettings(rack="a")))
    consumer.assign("log", {0: 0})
    follower = {"partitions": {"0": {"partition": 0, "broker": 2, "leader": 1}}}
    consumer._take_statistics(json.dumps({"topics": {"log": follower}}))
    deadline = time.monotonic() + 30
    while (polled := consumer.poll(timeout_s=0.2)).followers and time.monotonic() < deadline:
        pass
    assert polled.followers == {}
    consumer.close()

"""Clients in Java, as far as they need no JVM: what the settings become, what errors mean, which versions
there are. Against Apache Kafka itself: tests/systems/kafka/test_java_clients.py."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jpype
import orjson
import pytest
from pydantic import ValidationError

from wrackline.clients_java import configs
from wrackline.clients_java.consumers import JavaConsumer
from wrackline.clients_java.errors import Thrown, error_of, failed
from wrackline.clients_java.jvm import Kafka
from wrackline.clients_java.library import Java
from wrackline.harness.specification.check import ask_clients
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.model import FAILED, UNKNOWN
from wrackline.systems.kafka import releases
from wrackline.workloads.clients import versions
from wrackline.workloads.clients.base import GroupSettings, RefusedSetting, Unavailable
from wrackline.workloads.clients.libraries import make_library
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.clients.store import CLIENT, ClientStore
from wrackline.workloads.clients.versions import NEWEST
from wrackline.workloads.log import LogSpec
from wrackline.workloads.share import ShareSpec
from wrackline.workloads.txn import TxnSpec

JAVA = ClientSettings(library="java")


class Slow(Kafka):
    """Classes on paper. ``causes``: of what each client that is made raises; then one is made."""

    def __init__(self, *causes: Thrown) -> None:
        self.causes = list(causes)
        self.jpype = SimpleNamespace(JException=OSError)

    def enter(self) -> None: ...

    def map(self, values: Any) -> Any:
        return values

    def named(self, name: str) -> Any:
        del name
        return self._make

    def _make(self, config: Any) -> str:
        del config
        if self.causes:
            raise OSError
        return "a client"

    def thrown(self, wrong: Any) -> Thrown:
        del wrong
        return Thrown(("KafkaException",), "UNKNOWN_SERVER_ERROR", -1, "", "failed", self.causes.pop(0))


LATE = Thrown(("TimeoutException", "KafkaException"), "", 7, "", "initialization timed out after 2000 ms")


def test_a_client_whose_thread_begins_late_is_made_again() -> None:
    slow = Slow(LATE, LATE)
    assert slow.made("consumer.KafkaShareConsumer", {}) == "a client"
    assert not slow.causes


def test_a_client_that_never_begins_is_refused_in_the_end() -> None:
    with pytest.raises(RefusedSetting, match="timed out after 2000 ms"):
        Slow(*[LATE] * 100).made("consumer.KafkaShareConsumer", {})


def test_what_the_library_says_of_a_setting_is_final() -> None:
    refused = Slow(Thrown(("ConfigException",), "", -1, "", "Invalid value"), LATE)
    with pytest.raises(RefusedSetting, match="Invalid value"):
        refused.made("consumer.KafkaShareConsumer", {})
    assert refused.causes == [LATE]


def test_deadlines_of_a_producer() -> None:
    made = configs.producer("h:1", LogSpec(client=JAVA))
    assert made["delivery.timeout.ms"] == "3000"
    assert made["request.timeout.ms"] == "3000", "delivery.timeout.ms must not be less"
    assert made["max.block.ms"] == "3000"
    assert (made["acks"], made["enable.idempotence"], made["retries"]) == ("all", "false", "0")
    lingering = ClientSettings(library="java", linger_ms=500, retries=3)
    made = configs.producer("h:1", LogSpec(client=lingering, acks=1))
    assert (made["linger.ms"], made["request.timeout.ms"], made["retries"]) == ("500", "2500", "3")
    assert made["acks"] == "1"
    assert made["compression.type"] == "none"
    packed = ClientSettings(library="java", compression="zstd")
    assert configs.producer("h:1", LogSpec(client=packed))["compression.type"] == "zstd"
    with pytest.raises(RefusedSetting, match="linger_ms 3000 leaves no time of message_timeout_ms 3000"):
        configs.producer("h:1", LogSpec(client=ClientSettings(library="java", linger_ms=3_000)))


def test_deadlines_of_a_transactional_producer() -> None:
    """It asks again after 1.5 s, as librdkafka does with the same settings; an idempotent producer's retries
    are its own."""
    made = configs.transactional("h:1", TxnSpec(), "t1", 7_000)
    assert made["request.timeout.ms"] == "1500"
    assert (made["transactional.id"], made["transaction.timeout.ms"]) == ("t1", "7000")
    assert made["max.block.ms"] == "5000"
    assert made["enable.idempotence"] == "true"
    assert "retries" not in made


def test_settings_of_members_of_share_groups() -> None:
    """Where they begin, what they see and how long they have a record are settings of their group."""
    made = configs.share_member("h:1", ShareSpec(), "g", explicit=True)
    assert made["share.acknowledgement.mode"] == "explicit"
    assert (made["max.poll.records"], made["request.timeout.ms"]) == ("20", "2000")
    assert not {"auto.offset.reset", "isolation.level", "enable.auto.commit"} & set(made)
    implicit = configs.share_member("h:1", ShareSpec(), "g", explicit=False)
    assert implicit["share.acknowledgement.mode"] == "implicit"


def test_a_version_without_share_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wrackline.clients_java.library.look", lambda: "libjvm.so")
    with pytest.raises(
        RefusedSetting, match=r"share groups need kafka-clients 4\.2\.0 or newer, not 4\.1\.2"
    ):
        Java("4.1.2").check(ShareSpec())
    Java("4.2.0").check(ShareSpec())


def test_settings_of_consumers_and_members() -> None:
    made = configs.consumer("h:1", TxnSpec(), isolation=None, group="")
    assert (made["isolation.level"], made["auto.offset.reset"]) == ("read_committed", "none")
    assert made["default.api.timeout.ms"] == "2000"
    other = configs.consumer("h:1", TxnSpec(), isolation="read_uncommitted", group="g")
    assert (other["isolation.level"], other["group.id"]) == ("read_uncommitted", "g")
    classic = GroupSettings("g", "classic", "cooperative-sticky", 6_000, 500, "m1")
    made = configs.member("h:1", LogSpec(), classic, close_options=False)
    assert made["partition.assignment.strategy"].endswith(".CooperativeStickyAssignor")
    assert made["session.timeout.ms"] == "6000"
    assert made["group.instance.id"] == "m1"
    assert made[configs.LEAVES] == "false", "a crash sends nothing to the coordinator"
    assert configs.LEAVES not in configs.member("h:1", LogSpec(), classic, close_options=True)
    new = GroupSettings("g", "consumer", "uniform", 6_000, 500)
    made = configs.member("h:1", LogSpec(), new, close_options=True)
    assert made["group.remote.assignor"] == "uniform"
    assert "session.timeout.ms" not in made
    with pytest.raises(RefusedSetting, match=r"kafka-clients 4\.1\.0 or newer"):
        configs.member("h:1", LogSpec(), new, close_options=False)


class Late(Exception):
    """In the place of Java's TimeoutException."""


class KeepsWhatCameLate:
    """In the place of the library's consumer, and like it: a request that had no answer in time stays under
    way, and its answer is the next call's. No real cluster is late when a test wants it to be."""

    def __init__(self) -> None:
        self.now, self.late = 1, False
        self._under_way: int | None = None

    def committed(self, asked: set[int], wait: float) -> dict[int, Any]:
        del wait
        answer = self.now if self._under_way is None else self._under_way
        self._under_way = answer if self.late else None
        if self.late:
            raise Late
        return dict.fromkeys(asked, SimpleNamespace(offset=lambda: answer))


def test_an_answer_that_came_late_is_not_taken_for_what_is_committed_now() -> None:
    handle = KeepsWhatCameLate()
    kafka = SimpleNamespace(
        named=lambda _: lambda: None,
        made=lambda *_: handle,
        sets=set,
        place=lambda _, partition: partition,
        ms=float,
        in_our_words=contextlib.nullcontext,
    )
    consumer = JavaConsumer(cast("Kafka", kafka), LogSpec(client=JAVA), {})
    assert consumer.committed("log", [0]) == {0: 1}
    handle.late = True
    for _ in range(2):
        with pytest.raises(Late):
            consumer.committed("log", [0])
    handle.now, handle.late = 2, False
    assert consumer.committed("log", [0]) == {0: 2}


def optional(value: Any) -> Any:
    return SimpleNamespace(isPresent=lambda: value is not None, get=lambda: value)


def node(node_id: int) -> Any:
    return SimpleNamespace(id=lambda: 2**31 - 1 - node_id)


CLASSIC = SimpleNamespace(coordinator=SimpleNamespace(coordinator=node(2)))
BY_ITS_OWN_ID = SimpleNamespace(coordinator=SimpleNamespace(coordinator=SimpleNamespace(id=lambda: 2)))
NOT_YET = SimpleNamespace(coordinator=SimpleNamespace(coordinator=None))


def consumer_protocol(coordinator: Any) -> Any:
    manager = None if coordinator is None else SimpleNamespace(coordinator=coordinator)
    thread = SimpleNamespace(requestManagers=SimpleNamespace(coordinatorRequestManager=optional(manager)))
    return SimpleNamespace(applicationEventHandler=SimpleNamespace(networkThread=thread))


@pytest.mark.parametrize(
    ("delegate", "coordinator"),
    [
        (CLASSIC, 2),
        (BY_ITS_OWN_ID, 2),
        (NOT_YET, -1),
        (consumer_protocol(node(3)), 3),
        (consumer_protocol(None), -1),
        (SimpleNamespace(), -1),
    ],
)
def test_the_coordinator_is_read_from_the_librarys_own_fields(delegate: Any, coordinator: int) -> None:
    """As they are in 3.7 to 4.4; of a version that has others nobody knows it."""
    kafka = SimpleNamespace(
        jpype=SimpleNamespace(JException=Late),
        field=getattr,
        has_field=hasattr,
        named=lambda _: lambda: None,
        made=lambda *_: SimpleNamespace(delegate=delegate),
    )
    consumer = JavaConsumer(cast("Kafka", kafka), LogSpec(client=JAVA), {})
    assert consumer.coordinator() == coordinator
    assert consumer.requires_stable


def thrown(
    *kinds: str,
    kafka: str = "UNKNOWN_SERVER_ERROR",
    code: int = -1,
    said: str = "x",
    cause: Thrown | None = None,
) -> Thrown:
    return Thrown((*kinds, "KafkaException", "Exception"), kafka, code, "by Kafka", said, cause)


NOT_ENOUGH = thrown("NotEnoughReplicasException", "RetriableException", kafka="NOT_ENOUGH_REPLICAS", code=19)
AFTER_APPEND = thrown(
    "NotEnoughReplicasAfterAppendException",
    "RetriableException",
    kafka="NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    code=20,
)
EXPIRED = thrown("TimeoutException", "RetriableException", kafka="REQUEST_TIMED_OUT", code=7)
BY_BROKER = thrown(
    "TimeoutException", "RetriableException", kafka="REQUEST_TIMED_OUT", code=7, said="by Kafka"
)
FENCED = thrown("ProducerFencedException", kafka="PRODUCER_FENCED", code=90)
TOO_LARGE = thrown("RecordTooLargeException", kafka="MESSAGE_TOO_LARGE", code=10)
COMMIT_FAILED = thrown("CommitFailedException")
IN_ERROR_STATE = thrown("KafkaException", cause=FENCED)
AFTER_TIMEOUT = thrown("KafkaException", cause=EXPIRED)


@pytest.mark.parametrize(
    ("one", "first_try", "offset", "name"),
    [
        (NOT_ENOUGH, True, FAILED, "NOT_ENOUGH_REPLICAS"),
        (NOT_ENOUGH, False, UNKNOWN, "NOT_ENOUGH_REPLICAS"),
        (AFTER_APPEND, True, UNKNOWN, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        (TOO_LARGE, True, FAILED, "MESSAGE_TOO_LARGE"),
        (EXPIRED, True, UNKNOWN, "_MSG_TIMED_OUT"),
        (BY_BROKER, True, UNKNOWN, "REQUEST_TIMED_OUT"),
    ],
)
def test_what_became_of_a_record(one: Thrown, first_try: bool, offset: int, name: str) -> None:
    found = failed(one, first_try=first_try)
    assert (found.offset, found.error) == (offset, name)


@pytest.mark.parametrize(
    ("one", "name", "fatal", "again", "must_abort"),
    [
        (EXPIRED, "_TIMED_OUT", False, True, False),
        (FENCED, "PRODUCER_FENCED", True, False, False),
        (COMMIT_FAILED, "_COMMIT_FAILED", False, False, True),
        (IN_ERROR_STATE, "PRODUCER_FENCED", True, False, False),
        # The producer is in a state that only an abort ends: to ask again would be in vain.
        (AFTER_TIMEOUT, "_TIMED_OUT", False, False, True),
    ],
)
def test_what_a_call_that_failed_says(
    one: Thrown, name: str, fatal: bool, again: bool, must_abort: bool
) -> None:
    error = error_of(one)
    assert (error.name, error.fatal, error.again, error.must_abort) == (name, fatal, again, must_abort)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"library": "java", "librdkafka": {"debug": "broker"}}, "properties of another library"),
        ({"version": "4.4.0"}, "version 4.4.0 is one of kafka-clients, which need library: java"),
        ({"library": "java", "version": "4.4"}, "is no version of kafka-clients"),
        ({"library": "java", "version": "2.8.0"}, r"3\.7\.0 is the oldest"),
    ],
)
def test_settings_that_do_not_fit_the_library_are_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ClientSettings.model_validate(given)


def client_of(system: str, more: str = "") -> ClientSettings:
    text = f"name: x\nsystem: {system}\nworkload: {{name: log, client: {{library: java{more}}}}}"
    return parse(text, "x.yaml").workload.client


def test_the_version_is_that_of_the_system_where_it_is_kafka() -> None:
    assert client_of("{kind: apache-kafka, version: 3.9.2}").version == "3.9.2"
    assert client_of("{kind: apache-kafka, version: 3.9.2}", ", version: 4.4.0").version == "4.4.0"
    assert client_of("{kind: wrackline}").version == versions.NEWEST == releases.NEWEST
    assert parse("name: x", "x.yaml").workload.client.version == ""


def test_a_machine_without_a_jvm_is_told_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_found() -> str:
        raise jpype.JVMNotFoundException("no JVM")

    monkeypatch.setattr(jpype, "getDefaultJVMPath", none_found)
    spec = parse("name: x\nworkload: {client: {library: java}}", "x.yaml")
    with pytest.raises(
        SpecError, match=r"^x\.yaml: workload\.client: library java needs a JVM.*setup java.*$"
    ):
        ask_clients(spec, "x.yaml")


def test_a_version_that_is_not_installed_is_named() -> None:
    with pytest.raises(
        Unavailable, match=r"kafka-clients 3\.7\.99 is not installed.*get kafka --client 3\.7"
    ):
        Java("3.7.99").producer("h:1", LogSpec(client=JAVA))


def test_what_was_not_finished_is_not_installed_and_what_was_changed_is_told(tmp_path: Path) -> None:
    store = ClientStore(tmp_path)
    folder = tmp_path / "4.4.0"
    folder.mkdir()
    (folder / "a.jar").write_bytes(b"jar")
    assert store.find("4.4.0") is None
    assert store.all() == ()
    wrong = "0" * 64
    (folder / CLIENT).write_bytes(orjson.dumps({"sha256": {"a.jar": wrong}}))
    [found] = store.all()
    assert found.files == (folder / "a.jar",)
    with pytest.raises(Unavailable, match=r"a\.jar is not what was installed"):
        found.verify()
    assert store.remove("4.4.0")
    assert not store.remove("4.4.0")


def test_a_machine_without_maven_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"kafka-clients 4\.4\.0 cannot be installed: no Maven found"):
        ClientStore(tmp_path / "store").install("4.4.0")
    assert ClientStore(tmp_path / "store").find("4.4.0") is None


@pytest.mark.parametrize(("version", "refused"), [("4.0.0", True), ("4.1.0", False)])
def test_a_protocol_that_the_clients_version_lacks_is_refused_before_there_is_any_host(
    version: str, refused: bool
) -> None:
    spec = parse(
        "name: x\nsystem: {kind: apache-kafka}\nworkload: {name: group, protocol: consumer, "
        f"client: {{library: java, version: {version}}}}}",
        "x.yaml",
    )
    if not refused:
        ask_clients(spec, "x.yaml")
        return
    with pytest.raises(SpecError, match=r"protocol consumer needs kafka-clients 4\.1\.0 or newer"):
        ask_clients(spec, "x.yaml")


def test_the_library_is_found_by_its_entry_point() -> None:
    for version, wanted in (("", NEWEST), ("4.0.0", "4.0.0")):
        found = make_library(ClientSettings(library="java", version=version))
        assert (type(found), found.name, found.version) == (Java, "java", wanted)
    assert make_library(ClientSettings()).name == "librdkafka"

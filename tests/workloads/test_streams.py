"""The workload ``streams``, as far as it needs no JVM: which specifications it takes, what the application is
told, and what becomes of a record in the output. Against Apache Kafka itself:
tests/systems/kafka/test_workloads.py."""

from __future__ import annotations

import contextlib
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.nemesis.load import wait_until
from tests.workloads.driving import Row, recorded
from wrackline.harness.run.live.setup import run_info
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history import Recorder
from wrackline.history.model import FAILED, OUTPUT, UNKNOWN, Record, RunInfo, TopicInfo, Type, value_of
from wrackline.workloads.clients.base import Fetched, Unavailable
from wrackline.workloads.log.processes import read_records
from wrackline.workloads.payload import encode, run_tag
from wrackline.workloads.streams import StreamsSpec, application
from wrackline.workloads.streams.application import Instance, Migration, properties
from wrackline.workloads.streams.transit import FIRST_PROCESS, STATE, StreamsContext

TOPICS = {"log": 2, "log-out": 2}
SPEC = """
name: x
system: {kind: apache-kafka, version: 4.4.0}
topics: [{name: log, partitions: 2}, {name: log-out, partitions: 2}]
workload: {name: streams}
"""


def refused(text: str) -> str:
    with pytest.raises(SpecError) as wrong:
        parse(text, "x.yaml")
    return str(wrong.value)


def test_it_takes_two_topics_that_are_alike() -> None:
    spec = parse(SPEC, "x.yaml")
    assert isinstance(spec.workload, StreamsSpec)
    assert spec.workload.client.version == "4.4.0"  # the cluster's
    assert spec.workload.lanes("send", TOPICS) == 2
    assert spec.workload.lanes("end", TOPICS) == 4
    info = run_info(spec, "t1", cast(Any, SimpleNamespace(name="kafka-4.4.0", nodes=())), cast(Any, NO_PLAN))
    assert [topic.source for topic in info.topics] == ["", "log"]
    assert RunInfo.from_json(info.to_json()).topics == info.topics
    takes = "takes two topics with as many partitions each"
    assert takes in refused(SPEC.replace("log-out, partitions: 2", "log-out, partitions: 3"))
    assert takes in refused(SPEC.replace(", {name: log-out, partitions: 2}", ""))


NO_PLAN = SimpleNamespace(faults=(), guided=None, follow=None)


def test_what_cannot_serve_it_is_refused() -> None:
    of_streams = SPEC.replace("name: streams", "name: streams, protocol: streams")
    assert parse(of_streams, "x.yaml").workload.needs > parse(SPEC, "x.yaml").workload.needs
    assert "needs streams protocol" in refused(of_streams.replace("4.4.0", "4.1.2"))
    migrating = SPEC.replace("name: streams", "name: streams, migrate_after_s: 10")
    assert "needs streams protocol" in refused(migrating.replace("4.4.0", "4.1.2"))
    parse(SPEC.replace("4.4.0", "3.9.2"), "x.yaml")
    older = of_streams.replace("protocol:", "client: {version: 4.1.2}, protocol:")
    assert "needs client.version 4.2.0 or newer, not 4.1.2" in refused(older)
    own = refused(SPEC.replace("{kind: apache-kafka, version: 4.4.0}", "{kind: wrackline}"))
    assert "needs applications of Kafka Streams" in own
    external = SPEC.replace("{kind: apache-kafka, version: 4.4.0}", "{kind: external, bootstrap: ['h:1']}")
    assert "needs applications of Kafka Streams" in refused(external + "fleet: {kind: none}\n")
    assert "librdkafka" in refused(
        SPEC.replace("name: streams", "name: streams, client: {library: librdkafka}")
    )


def test_what_the_application_is_told() -> None:
    classic = properties("h:1", "app", Path("/s"), StreamsSpec(threads=2), 1, "classic")
    assert classic["processing.guarantee"] == "exactly_once_v2"
    assert (classic["num.stream.threads"], classic["state.dir"]) == ("2", "/s/state-1")
    assert classic["main.consumer.session.timeout.ms"] == "6000"
    assert "group.protocol" not in classic
    streams = properties("h:1", "app", Path("/s"), StreamsSpec(), 0, "streams")
    assert streams["group.protocol"] == "streams"
    assert "main.consumer.session.timeout.ms" not in streams


class Started:
    """A process of the application, which lives until it is asked to end."""

    def __init__(self, protocol: str, up: list[str], log: list[tuple[str, int]]) -> None:
        self._up, self._ended = up, threading.Event()
        up.append(protocol)
        log.append((protocol, len(set(up))))

    def poll(self) -> int | None:
        return 0 if self._ended.is_set() else None

    def terminate(self) -> None:
        self._up.pop()
        self._ended.set()

    def wait(self, timeout: float | None = None) -> int:
        assert self._ended.wait(timeout)
        return 0


def test_all_instances_are_down_before_one_starts_with_the_other_protocol(
    context: StreamsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = dict.fromkeys(("crash_every_s", "leave_every_s", "pause_every_s"), 0)
    spec = StreamsSpec(instances=3, migrate_after_s=0.3, session_timeout_ms=1_000, **never)
    up: list[str] = []
    log: list[tuple[str, int]] = []
    migration = Migration(spec)
    monkeypatch.setattr(Instance, "_start", lambda _: Started(migration.protocol, up, log))
    instances = [Instance(context, spec, number, "", "app", migration) for number in range(3)]
    for one in instances:
        one.start()
    wait_until(lambda: len(log) == 6, "six starts")
    for one in instances:
        one.end()
        one.join()
    assert log == [("classic", 1)] * 3 + [("streams", 1)] * 3  # never of both at once
    assert up == []


def test_an_instance_that_ends_does_not_wait_for_others(context: StreamsContext) -> None:
    spec = StreamsSpec(instances=2, migrate_after_s=0.001)
    alone = Instance(context, spec, 0, "", "app", Migration(spec))
    time.sleep(0.01)
    alone.start()
    alone.end()
    alone.join(20)
    assert not alone.is_alive()


def test_a_machine_without_a_compiler_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = SimpleNamespace(files=(tmp_path / "a.jar",), folder=tmp_path)
    store = SimpleNamespace(install=lambda *_, **__: installed)
    monkeypatch.setattr(application, "ClientStore", lambda **_: store)
    monkeypatch.setattr(application.shutil, "which", lambda _: None)
    with pytest.raises(Unavailable, match="needs a Java compiler"):
        application.prepare("4.4.0", lambda _: None)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[StreamsContext]:
    topics = tuple(TopicInfo(name, count, 3, 2) for name, count in TOPICS.items())
    with Recorder(
        tmp_path / "run", RunInfo("t1", "t", 1, "", "mock", "streams", "all", True, topics)
    ) as recorder:
        yield StreamsContext(
            bootstrap="",
            library=cast(Any, None),
            topics=TOPICS,
            spec=StreamsSpec(),
            recorder=recorder,
            generator=cast(Any, None),
            tag=run_tag("t1"),
            stride=100,
            enter=contextlib.nullcontext,
            on_failure=lambda _: None,
        )


def outputs(context: StreamsContext) -> list[Row]:
    context.recorder.close()
    return [row for row in recorded(context.recorder.run_dir) if row["topic"] == "log-out"]


def test_an_output_is_acknowledged_when_its_input_was_committed(context: StreamsContext) -> None:
    values = [value_of(3, number) for number in range(4)]
    for value in values:
        context.record(3, Type.INVOKE, "send", topic="log", records=(Record(1, UNKNOWN, value),))
    for value, offset in zip(values, (1, 0, FAILED, UNKNOWN), strict=True):
        kind = {FAILED: Type.FAIL, UNKNOWN: Type.INFO}.get(offset, Type.OK)
        context.record(3, kind, "send", topic="log", records=(Record(1, offset, value),))
    assert context.behind == 2
    context.committed({0: 9, 1: 1})
    assert context.behind == 1
    context.committed({1: 2})
    context.committed({1: 2})
    assert context.behind == 0
    assert context.tally.counts().operations == 4  # nobody is asked for outputs
    rows = outputs(context)
    assert [(row["process"] - FIRST_PROCESS, row["type"]) for row in rows] == [
        *((number, "invoke") for number in range(4)),
        (2, "fail"),
        (1, "ok"),
        (0, "ok"),
    ]  # the last one's outcome is not known: it stays open
    assert {record["value"] & 0xF for row in rows for record in row["records"]} == {OUTPUT}
    assert {row["records"][0]["offset"] for row in rows if row["type"] == "ok"} == {-3}


def test_a_payload_of_the_application_is_read_with_its_state(context: StreamsContext) -> None:
    """As `Application.java` makes it of an input: the attempt, the topic, the count and the checksum."""
    spec, value = context.spec, value_of(7, 5)
    sent = encode(context.tag, value, "log", 1, 77, spec.record_bytes)
    made = encode(context.tag, value | OUTPUT, "log-out", 1, 77, spec.record_bytes)
    body = bytearray(made[8:])
    body[STATE.start - 8 : STATE.stop - 8] = (12).to_bytes(8, "big")
    counted = made[:4] + struct.pack(">I", zlib.crc32(bytes(body))) + bytes(body)
    fetched = [
        Fetched(1, offset, 0, 77, spec.key_of(1, value), payload)
        for offset, payload in enumerate((sent, counted))
    ]
    records, corrupt = read_records(fetched, context)
    assert corrupt == []
    assert [record.value for record in records] == [value, value | OUTPUT]
    assert context.states(fetched, records) == {"states": [-1, 12]}
    assert context.states(fetched[:1], records[:1]) == {}

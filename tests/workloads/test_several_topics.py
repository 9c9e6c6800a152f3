"""Several topics in one run: every partition of every one is written, read and read back, each record under
its own topic; and one that goes elsewhere is found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from tests.workloads.driving import Row, driven, recorded
from wrackline.checkers.analysis import analyze
from wrackline.workloads.clients.base import Outgoing
from wrackline.workloads.clients.librdkafka.producers import RdkafkaProducer
from wrackline.workloads.log import ClientsSpec, LogSpec
from wrackline.workloads.queue import QueueSpec
from wrackline.workloads.register import RegisterSpec
from wrackline.workloads.txn import TxnSpec

pytestmark = pytest.mark.real

PARTITIONS = 4
TOPICS = ("log", "log-1")
EVERY = {(topic, p) for topic in TOPICS for p in range(PARTITIONS)}
SPEC = LogSpec(rate=300, senders=4, pollers=2, enders=2, reassign_every=4)


def drive(bootstrap: str, run_dir: Path, spec: ClientsSpec = SPEC, operations: int = 500) -> list[Row]:
    asker = Producer({"bootstrap.servers": bootstrap, "allow.auto.create.topics": True})
    for topic in TOPICS:  # made when asked for
        while len(asker.list_topics(topic, timeout=10).topics[topic].partitions) != PARTITIONS:
            time.sleep(0.1)
    more = {"log-1": PARTITIONS}
    with driven(
        bootstrap, run_dir, spec, PARTITIONS, operations, tries=300, stop_s=30, others=more
    ) as workload:
        drained = workload.drain(deadline_s=20)
        assert {(one.topic, one.partition) for one in drained} == EVERY
        assert [one.problem for one in drained] == [None] * len(EVERY)
        for one in drained:
            assert not workload.told(one.topic, one.partition) - one.offsets
    return recorded(run_dir)


def places(rows: Sequence[Row], f: str) -> dict[tuple[str, int, int], int]:
    return {
        (row["topic"], record["partition"], record["offset"]): record["value"]
        for row in rows
        if (row["f"], row["type"]) == (f, "ok")
        for record in row["records"]
    }


def test_every_partition_of_every_topic_is_used_and_read_back(mock_cluster: str, tmp_path: Path) -> None:
    rows = drive(mock_cluster, tmp_path / "run")
    acked, final, polled = (places(rows, f) for f in ("send", "drain", "poll"))
    assert {place[:2] for place in acked} == EVERY
    assert final == acked
    assert {place[0] for place in polled} == set(TOPICS)
    assert polled.items() <= acked.items()
    assert {(row["topic"], row["partition"]) for row in rows if row["f"] == "end"} == EVERY
    # A client carries sends to all of them: what one topic's records do to another's can show.
    by_process: dict[int, set[str]] = {}
    for row in rows:
        if row["f"] == "send":
            by_process.setdefault(row["process"], set()).add(row["topic"])
    assert set(TOPICS) in by_process.values()
    [verdict] = analyze([tmp_path / "run"], engine="local")
    assert {one["anomaly"] for one in verdict["anomalies"] if one["count"]} <= {"unproven-write"}


# The mock cluster's markers lack the checksums that consumers look at.
UNCHECKED = TxnSpec().client.model_copy(update={"librdkafka": {"check.crcs": False}})


@pytest.mark.parametrize(
    ("spec", "get"),
    [
        (RegisterSpec(rate=200), "read"),
        (QueueSpec(rate=200), "dequeue"),
        (
            TxnSpec(rate=80, hold_ms=2, end_hold_ms=1, aborts=0.3).model_copy(update={"client": UNCHECKED}),
            "poll",
        ),
    ],
    ids=lambda one: one.name if isinstance(one, ClientsSpec) else "",
)
def test_objects_and_transactions_use_every_topic(
    mock_cluster: str, tmp_path: Path, spec: ClientsSpec, get: str
) -> None:
    rows = drive(mock_cluster, tmp_path / "run", spec, 300)
    for f in ("send", get):
        assert {row["topic"] for row in rows if (row["f"], row["type"]) == (f, "ok")} == set(TOPICS)
    assert {place[:2] for place in places(rows, "send")} == EVERY
    if spec.name == "txn":  # a worker reads one topic and writes to any
        written: dict[int, set[str]] = {}
        sources = {row["process"]: row["topic"] for row in rows if row["f"] == "commit"}
        for row in rows:
            if row["f"] == "send" and row["type"] == "ok":
                written.setdefault(row["process"], set()).add(row["topic"])
        assert set(TOPICS) in written.values()
        assert set(sources.values()) == set(TOPICS)
        assert {row["topic"] for row in rows if row["f"] == "committed"} == set(TOPICS)
        return  # the mock cluster knows transactions but hides nothing
    [verdict] = analyze([tmp_path / "run"], engine="local")
    assert {one["anomaly"] for one in verdict["anomalies"] if one["count"]} <= {"unproven-write"}


def test_a_record_that_goes_to_another_topic_is_found_and_named(
    mock_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a client does that uses a buffer again (KAFKA-19012): one's bytes go where another was meant."""
    begin = RdkafkaProducer.begin
    sent: dict[str, Outgoing] = {}
    swapped: list[int] = []

    def wrong(client: RdkafkaProducer, topic: str, records: Sequence[Outgoing], finished: Any) -> None:
        [mine] = records
        other = next((one for name, one in sent.items() if name != topic), None)
        if len(sent) == 2 and other is not None and not swapped:
            swapped.append(int.from_bytes(other.key, "big"))
            records = [Outgoing(mine.partition, other.key, other.payload, other.timestamp_ms)]
        sent[topic] = mine
        begin(client, topic, records, finished)

    monkeypatch.setattr(RdkafkaProducer, "begin", wrong)
    drive(mock_cluster, tmp_path / "run")
    [verdict] = analyze([tmp_path / "run"], engine="local")
    found = {one["anomaly"] for one in verdict["anomalies"] if one["count"]}
    assert {"misrouted", "lost-write"} <= found
    findings = pq.read_table(tmp_path / "run" / "findings.parquet").to_pylist()
    [one] = [row for row in findings if row["anomaly"] == "misrouted"]
    assert (one["value"], one["where"]) == (swapped[0], "topic")
    assert "but it is in another topic, at offset" in one["explanation"]

"""The workload ``log`` runs with its real clients against librdkafka's own mock cluster on loopback."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.workloads.driving import Row, driven, recorded, records_of
from wrackline.history import Recorder
from wrackline.history.model import FAILED, Event, RunInfo, TopicInfo, Type, parts_of
from wrackline.workloads.clients.base import Outgoing
from wrackline.workloads.clients.libraries import library_of
from wrackline.workloads.clients.librdkafka.producers import RdkafkaProducer
from wrackline.workloads.log import LogSpec, LogWorkload
from wrackline.workloads.payload import encode, key_of, run_tag

pytestmark = pytest.mark.real

PARTITIONS = 4


def drive(bootstrap: str, run_dir: Path, spec: LogSpec, operations: int) -> tuple[list[Row], LogWorkload]:
    with driven(bootstrap, run_dir, spec, PARTITIONS, operations, tries=200, stop_s=15) as workload:
        drained = workload.drain(deadline_s=20)
        assert [each.problem for each in drained] == [None] * PARTITIONS
    return recorded(run_dir), workload


def test_every_operation_is_on_record_and_what_was_acked_is_read_back(
    mock_cluster: str, tmp_path: Path
) -> None:
    spec = LogSpec(
        rate=300, senders=3, pollers=2, enders=1, records_per_op=3, reassign_every=8, record_bytes=200
    )
    rows, workload = drive(mock_cluster, tmp_path / "run", spec, 400)
    assert {row["f"] for row in rows} == {"send", "poll", "end", "assign", "drain"}
    assert workload.missing_kinds() == []

    # Every process acts one operation at a time, and is invoked before it completes.
    for process in {row["process"] for row in rows}:
        types = [row["type"] for row in rows if row["process"] == process]
        assert types[::2] == ["invoke"] * len(types[::2])
        assert "invoke" not in types[1::2]

    values = [record["value"] for record in records_of(rows, "send", "invoke")]
    assert len(values) == len(set(values))
    acked, final, polled = (
        {(one["partition"], one["offset"]): one["value"] for one in records_of(rows, f, "ok")}
        for f in ("send", "drain", "poll")
    )
    assert acked
    assert final == acked
    assert polled
    assert polled.items() <= acked.items()
    ends = [row for row in rows if (row["f"], row["type"]) == ("end", "ok")]
    assert all(row["offset"] == 0 and row["high_watermark"] >= 0 for row in ends)
    last = [row for row in rows if row["f"] == "drain" and "complete" in (row["extra"] or "")]
    assert sorted(row["partition"] for row in last) == list(range(PARTITIONS))


def test_a_send_is_on_record_before_the_client_has_it(
    mock_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several under way per sender, and as fast as they can."""
    on_record: set[int] = set()
    early: list[int] = []
    most = 0
    begin, record = RdkafkaProducer.begin, Recorder.record

    def written(recorder: Recorder, event: Event) -> Event:
        done = record(recorder, event)
        if event.type is Type.INVOKE:
            on_record.update(sent.value for sent in event.records)
        return done

    def looked_for(client: RdkafkaProducer, topic: str, records: Sequence[Outgoing], finished: Any) -> None:
        nonlocal most
        most = max(most, len(client._pending))
        early.extend({int.from_bytes(outgoing.key, "big") for outgoing in records} - on_record)
        begin(client, topic, records, finished)

    monkeypatch.setattr(Recorder, "record", written)
    monkeypatch.setattr(RdkafkaProducer, "begin", looked_for)
    spec = LogSpec(rate=0, senders=2, pollers=1, enders=0)
    for attempt in range(5):  # a cluster that answers at once leaves nothing under way
        rows, _ = drive(mock_cluster, tmp_path / f"run-{attempt}", spec, 300)
        assert early == []
        if most > 4:
            break
    assert most > 4
    acked = [row for row in rows if (row["f"], row["type"]) == ("send", "ok")]
    assert len(acked) > 50
    assert {sent["value"] for row in acked for sent in row["records"]} <= on_record


def test_consumers_go_on_where_they_stand_and_say_so_when_they_move(
    mock_cluster: str, tmp_path: Path
) -> None:
    spec = LogSpec(rate=300, senders=2, pollers=3, enders=0, reassign_every=5)
    rows, _ = drive(mock_cluster, tmp_path / "run", spec, 400)
    assigned = 0
    for process in {row["process"] for row in rows if row["f"] == "poll"}:
        at: dict[int, int] = {}
        for row in rows:
            if row["process"] != process or row["type"] != "ok":
                continue
            positions = orjson.loads(row["extra"])["positions"]
            if row["f"] == "assign":
                at = {int(partition): offset for partition, offset in positions.items()}
                assigned += 1
                continue
            for record in row["records"]:
                assert record["offset"] == at[record["partition"]]
                at[record["partition"]] += 1
            assert {int(partition): offset for partition, offset in positions.items()} == at
    assert assigned > 6


def test_without_acks_nothing_is_taken_for_evidence(mock_cluster: str, tmp_path: Path) -> None:
    spec = LogSpec(rate=200, senders=1, pollers=0, enders=1, acks=0)
    rows, _ = drive(mock_cluster, tmp_path / "run", spec, 60)
    assert {record["offset"] for record in records_of(rows, "send", "ok")} == {-3}


def nobody_listens(
    run_dir: Path, spec: LogSpec, over: Callable[[LogWorkload], bool]
) -> tuple[list[Row], LogWorkload]:
    """Every record times out, nobody knows what became of it."""
    info = RunInfo("t1", "t", 1, "", "mock", "log", "all", False, (TopicInfo("log", PARTITIONS, 3, 2),))
    with Recorder(run_dir, info) as recorder:
        workload = LogWorkload(
            spec,
            bootstrap="127.0.0.1:1",
            topics={"log": PARTITIONS},
            seed=3,
            recorder=recorder,
            enter=contextlib.nullcontext,
        )
        workload.start()
        waiting = threading.Event()
        while not over(workload):
            waiting.wait(0.05)
        assert workload.stop(timeout_s=20) == []
    return recorded(run_dir), workload


def unknown(operations: int) -> Callable[[LogWorkload], bool]:
    """So many operations of unknown outcome, and no failure of ours."""

    def over(workload: LogWorkload) -> bool:
        assert workload.failure is None
        return workload.counts().info >= operations

    return over


def test_a_process_of_unknown_outcome_is_retired(tmp_path: Path) -> None:
    spec = LogSpec(
        rate=50,
        senders=2,
        in_flight=1,
        pollers=0,
        enders=0,
        client={"message_timeout_ms": 300, "request_timeout_ms": 200},
    )
    rows, _ = nobody_listens(tmp_path / "run", spec, unknown(6))
    stride = spec.concurrency + PARTITIONS
    processes = sorted({row["process"] for row in rows})
    assert {process % stride for process in processes} == {0, 1}
    assert processes[:4] == [0, 1, stride, stride + 1]
    for process in processes:
        mine = [row for row in rows if row["process"] == process]
        assert len(mine) <= 2
        assert mine[-1]["type"] == "info" or len(mine) == 1
        assert all(parts_of(record["value"])[0] == process for row in mine for record in row["records"])


def test_an_error_in_our_own_code_ends_the_workload_and_is_reported(tmp_path: Path) -> None:
    spec = LogSpec(rate=50, client={"librdkafka": {"message.max.bytes": 5}})
    _, workload = nobody_listens(tmp_path / "run", spec, lambda workload: workload.failure is not None)
    assert workload.failure is not None
    assert "message.max.bytes" in workload.failure


def test_a_record_the_client_refuses_is_a_certain_failure(mock_cluster: str) -> None:
    spec = LogSpec(client={"librdkafka": {"message.max.bytes": 1000}})
    client = library_of(spec).producer(mock_cluster, spec)
    tag = run_tag("t1")
    small, large = (encode(tag, value, "log", 0, 1, size) for value, size in ((1, 100), (2, 5000)))
    refused, taken = client.send("log", [Outgoing(0, key_of(2), large, 1), Outgoing(0, key_of(1), small, 1)])
    client.close()
    assert (refused.offset, refused.error) == (FAILED, "MSG_SIZE_TOO_LARGE")
    assert (taken.offset, taken.error) == (0, None)


def test_a_cluster_that_does_not_answer_still_gets_the_asked_rate(tmp_path: Path) -> None:
    """Two senders, and every operation takes two seconds to end unknown: one at a time each would be one a
    second."""
    client = {"message_timeout_ms": 2_000, "request_timeout_ms": 1_000}
    spec = LogSpec(rate=40, senders=2, pollers=0, enders=0, client=client)
    assert spec.width == 90
    rows, workload = nobody_listens(tmp_path / "run", spec, unknown(120))
    assert workload.failure is None
    assert workload.left_out == {"send": [0, 0, 0, 0]}
    invoked = [row["time_ns"] / 1e9 for row in rows if row["type"] == "invoke"]
    assert len(invoked) / (invoked[-1] - invoked[0]) > 30
    ids = {row["process"] for row in rows}
    assert len(ids) == len(invoked)  # each was retired
    assert max(ids) < (spec.concurrency + PARTITIONS) * 5  # and all of them in turn


def test_what_is_under_way_follows_from_rate_and_timeout() -> None:
    assert (
        LogSpec(rate=300, senders=8).width == 150
    )  # 200 sends a second, four seconds, eight senders, half as much more
    assert LogSpec(rate=0).width == 32
    assert LogSpec(rate=300, senders=8, in_flight=2).width == 2
    assert LogSpec(rate=300, senders=8, in_flight=2).concurrency == 8 * 2 + 2 + 2
    assert LogSpec(rate=50_000, senders=1).width == 200
    assert LogSpec(rate=300, pollers=2).poll_wait_s < 2 / 75 < LogSpec(rate=3).poll_wait_s == 0.1

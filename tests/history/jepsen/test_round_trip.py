"""What the workloads ``txn``, ``group`` and ``compact`` write down goes out in Jepsen's words and comes in
again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from wrackline.history import history_files, read_info
from wrackline.history.jepsen.exports import Keys, kafka, rows
from wrackline.history.jepsen.imports import Settings, import_history
from wrackline.history.jepsen.text import write
from wrackline.history.labels import CONSUMERS
from wrackline.history.model import FAILED, UNKNOWN, Event, Record, RunInfo, TopicInfo, Type
from wrackline.history.store.files import write_history

TOPIC = TopicInfo("log", 2, 3, 2, contiguous=False)
INFO = RunInfo("t", "t", 1, "2026-01-01T00:00:00Z", "kafka", "txn", "all", True, (TOPIC,))
GROUP = {"group": "g", "member": "m", "generation": 3}


def event(process: int, kind: Type, f: str, *places: tuple[int, int, int], **columns: Any) -> Event:
    records = tuple(Record(*one) for one in places)
    return Event(process, kind, f, topic="log", records=records, **columns)


def back(tmp_path: Path, ending: str, timeline: list[Event]) -> tuple[Path, list[dict[str, Any]]]:
    write_history(tmp_path / "run", INFO, timeline)
    file = tmp_path / f"history.{ending}"
    write(kafka(rows(tmp_path / "run"), Keys()), file, ending)
    found = import_history(file, tmp_path / "results", Settings("again"))
    events = pq.read_table(history_files(found)[0]).to_pylist()
    return found, [{**row, "extra": orjson.loads(row["extra"] or "{}")} for row in events]


def of(events: list[dict[str, Any]], f: str) -> list[tuple[int, str, dict[str, Any]]]:
    return [(row["process"], row["type"], row["extra"]) for row in events if row["f"] == f]


@pytest.mark.parametrize("ending", ["edn", "json"])
def test_a_transaction_survives_export_and_import(tmp_path: Path, ending: str) -> None:
    begun, ended = {"txn": 7, "transactional_id": "t"}, {"txn": 7, "asked": "abort", "end_ns": 55}
    commit = {"offsets": {"0": 1}, "group": "g", "member": "m", "txn": 7}
    _, events = back(
        tmp_path,
        ending,
        [
            event(1, Type.INVOKE, "assign", extra={"positions": {"0": 0}, "group": "g", "member": "m"}),
            event(1, Type.OK, "assign", extra={"positions": {"0": 0}, "group": "g", "member": "m"}),
            event(0, Type.INVOKE, "send", (0, UNKNOWN, 5), (1, UNKNOWN, 6), extra=begun),
            event(1, Type.INVOKE, "poll", extra={"txn": 7}),
            event(2, Type.INVOKE, "commit", extra=commit),
            event(2, Type.FAIL, "commit", error="aborted", extra={**commit, "asked": "abort", "end_ns": 55}),
            event(1, Type.OK, "poll", (0, 0, 3), extra={**ended, "aborted": "fail", "positions": {"0": 1}}),
            event(0, Type.FAIL, "send", (0, FAILED, 5), (1, FAILED, 6), error="aborted", extra=ended),
        ],
    )  # fmt: skip
    assert of(events, "send") == [
        (0, "invoke", begun),
        (0, "fail", ended),
    ]
    assert of(events, "poll") == [
        (1 + CONSUMERS, "invoke", {"txn": 7}),
        (1 + CONSUMERS, "ok", {**ended, "aborted": "fail"}),
    ]
    assert of(events, "commit") == [
        (2 + CONSUMERS, "invoke", commit),
        (2 + CONSUMERS, "fail", {**commit, "asked": "abort", "end_ns": 55}),
    ]
    assert of(events, "assign")[0][2] == {"positions": {}}  # all are given up first
    assert of(events, "assign")[3][2] == {"positions": {"0": 0}, "group": "g", "member": "m"}


@pytest.mark.parametrize("ending", ["edn", "json"])
def test_a_consumer_group_survives_export_and_import(tmp_path: Path, ending: str) -> None:
    moved = {"partitions": [0], "positions": {"0": 0}, "revoked": [1], **GROUP}
    mode = {"offsets": {"0": 1}, "mode": "async", **GROUP}
    _, events = back(
        tmp_path,
        ending,
        [
            event(0, Type.INVOKE, "send", (0, UNKNOWN, 3)),
            event(0, Type.OK, "send", (0, 0, 3)),
            event(1, Type.INVOKE, "subscribe", extra={"partitions": [0, 1], "group": "g"}),
            event(1, Type.OK, "subscribe", extra={"partitions": [0, 1], "group": "g"}),
            event(1, Type.INVOKE, "poll"),
            event(1, Type.OK, "rebalance", extra=moved),
            event(1, Type.OK, "poll", (0, 0, 3), extra={"positions": {"0": 1}}),
            event(2, Type.INVOKE, "commit", extra=mode),
            event(2, Type.OK, "commit", extra=mode),
            event(3, Type.INVOKE, "committed", extra={"group": "g"}),
            event(3, Type.OK, "committed", extra={"offsets": {"0": 1, "1": -1}, "group": "g"}),
            event(1, Type.OK, "crash", extra={"group": "g", "partitions": [0]}),
        ],
    )  # fmt: skip
    subscribed = {"partitions": [0, 1], "group": "g"}
    assert of(events, "subscribe") == [(1 + CONSUMERS, kind, subscribed) for kind in ("invoke", "ok")]
    [rebalance] = of(events, "rebalance")
    assert rebalance[2] == moved
    assert of(events, "commit") == [(2 + CONSUMERS, kind, mode) for kind in ("invoke", "ok")]
    assert of(events, "committed") == [
        (3 + CONSUMERS, "invoke", {"group": "g"}),
        (3 + CONSUMERS, "ok", {"offsets": {"0": 1, "1": -1}, "group": "g"}),
    ]
    assert of(events, "crash") == [(1 + CONSUMERS, "ok", {"group": "g"})]


def test_record_keys_survive_export_and_import(tmp_path: Path) -> None:
    run, events = back(
        tmp_path,
        "edn",
        [
            event(0, Type.INVOKE, "send", (0, UNKNOWN, 3), key="k0-1"),
            event(0, Type.OK, "send", (0, 0, 3), key="k0-1"),
        ],
    )
    assert [row["key"] for row in events if row["f"] == "send"] == ["k0-1", "k0-1"]
    assert read_info(run).topics[0].compacted

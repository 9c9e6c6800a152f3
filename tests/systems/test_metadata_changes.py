"""What a system wrote down of its partitions is read whole, and what is missing is named."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from wrackline.systems.base import ReplicaLog, StoredRecord
from wrackline.systems.kafka import metadata_log
from wrackline.systems.wrackline.metadata_changes import chronicle

TOPIC_ID = UUID(int=7)
CREATED = {
    "type": "PartitionRecord",
    "partition_id": 0,
    "topic_id": str(TOPIC_ID),
    "replicas": [1, 2, 3],
    "isr": [1, 2, 3],
    "leader": 1,
    "leader_epoch": 0,
    "partition_epoch": 0,
    "elr": [],
    "last_known_elr": [],
    "leader_recovery_state": 0,
}


def changed(**fields: Any) -> dict[str, Any]:
    unchanged = dict.fromkeys(("isr", "replicas", "elr", "last_known_elr", "leader_recovery_state"))
    return {
        "type": "PartitionChangeRecord",
        "partition_id": 0,
        "topic_id": str(TOPIC_ID),
        "leader": -2,
        **unchanged,
        **fields,
    }


RECORDS = [
    {"type": "TopicRecord", "name": "log", "topic_id": str(TOPIC_ID)},
    CREATED,
    changed(isr=[1, 2]),
    changed(isr=[2], leader=2, elr=[1]),
    changed(isr=[], leader=-1, elr=[2], last_known_elr=[1]),
    changed(isr=[3], leader=3, elr=[], leader_recovery_state=1),
    changed(leader_recovery_state=0),
]
STATES = [
    # leader, leader epoch, partition epoch, ISR, ELR, LastKnownELR, recovering
    (1, 0, 0, (1, 2, 3), (), (), False),
    (1, 0, 1, (1, 2), (), (), False),
    (2, 1, 2, (2,), (1,), (), False),
    (-1, 2, 3, (), (2,), (1,), False),
    (3, 3, 4, (3,), (), (1,), True),
    (3, 3, 5, (3,), (), (1,), False),
]


def states(changes: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [
        (
            *(one.leader, one.leader_epoch, one.partition_epoch),
            *(one.isr, one.elr, one.last_known_elr, one.recovering),
        )
        for one in changes
    ]


# --- our own broker --------------------------------------------------------------------------------------


def line(kind: str, time_ns: int, **fields: Any) -> bytes:
    return orjson.dumps({"time_ns": time_ns, "kind": kind, **fields}).replace(b'": ', b'":') + b"\n"


def commit(offset: int, time_ns: int) -> bytes:
    return line("ctl_commit", time_ns, offset=offset, record=RECORDS[offset])


def test_two_controllers_tell_together_what_was_committed_and_when_first(tmp_path: Path) -> None:
    first, second = tmp_path / "c1.jsonl", tmp_path / "c2.jsonl"
    first.write_bytes(b"".join(commit(offset, 100 + offset) for offset in range(4)))
    second.write_bytes(b"".join(commit(offset, 150 + offset) for offset in range(3, 7)) + b'{"time_ns":9')
    found = chronicle({"c1": first, "c2": second}, "log")
    assert states(found.changes) == STATES
    assert [(one.at_ns, one.host) for one in found.changes] == [
        *((101, "c1"), (102, "c1"), (103, "c1")),
        *((154, "c2"), (155, "c2"), (156, "c2")),
    ]
    assert found.missing == ()


def test_a_change_that_brokers_learnt_of_and_no_controller_told_is_missing(tmp_path: Path) -> None:
    told, broker = tmp_path / "c1.jsonl", tmp_path / "n1.jsonl"
    told.write_bytes(b"".join(commit(offset, offset) for offset in range(4)))
    applied = [
        line("md_apply", 9, tp=tp, partition_epoch=epoch)
        for tp, epoch in (("log-0", 2), ("log-0", 4), ("other-0", 8))
    ]
    broker.write_bytes(b"".join(applied))
    [missing] = chronicle({"c1": told, "n1": broker}, "log").missing
    assert "log-0" in missing
    assert "partition epoch 4" in missing


def test_an_unclean_recovery_is_told_once_with_its_strategy_and_logs(tmp_path: Path) -> None:
    file = tmp_path / "c1.jsonl"
    asked = {"tp": "log-0", "by": "proactive", "candidates": [1, 3], "missing": [1], "winner": None}
    won = {"tp": "log-0", "by": "proactive", "winner": 3, "logs": {"3": [2, 40]}, "offset": 5}
    file.write_bytes(
        line("recovery", 10, **asked, why="waiting")
        + line("recovery", 20, **won, why="the best log")
        + line("recovery", 90, **won, why="the best log")  # the controller has started again
        + line("recovery", 95, **{**asked, "tp": "other-0"}, why="waiting")
    )
    first, second = chronicle({"c1": file}, "log").recoveries
    assert (first.at_ns, first.winner, first.strategy, first.why) == (10, -1, "proactive", "waiting")
    assert first.details == {"candidates": [1, 3], "missing": [1]}
    assert (second.at_ns, second.winner, second.details) == (20, 3, {"logs": {"3": [2, 40]}})


# --- Apache Kafka ----------------------------------------------------------------------------------------


def nodes(some: Sequence[int] | None) -> bytes:
    return (
        b"\0" if some is None else bytes([len(some) + 1]) + b"".join(struct.pack(">i", one) for one in some)
    )


def tagged(fields: dict[int, bytes]) -> bytes:
    parts = [bytes([tag, len(value)]) + value for tag, value in sorted(fields.items())]
    return bytes([len(parts)]) + b"".join(parts)


def kafka(record: dict[str, Any]) -> bytes:
    """As Kafka 4 writes it, by hand: frame 1, the record's number, its version."""
    match record["type"]:
        case "TopicRecord":
            name = record["name"].encode()
            return bytes([1, 2, 0, len(name) + 1]) + name + TOPIC_ID.bytes + b"\0"
        case "PartitionRecord":
            own = struct.pack(">i", record["partition_id"]) + TOPIC_ID.bytes
            lists = nodes(record["replicas"]) + nodes(record["isr"]) + nodes(()) + nodes(())
            epochs = struct.pack(">iii", record["leader"], record["leader_epoch"], record["partition_epoch"])
            directories = bytes([2]) + bytes(16)
            return bytes([1, 3, 2]) + own + lists + epochs + directories + b"\0"
        case _:
            own = struct.pack(">i", record["partition_id"]) + TOPIC_ID.bytes
            tags = {
                tag: nodes(record[name])
                for tag, name in ((0, "isr"), (6, "elr"), (7, "last_known_elr"))
                if record[name] is not None
            }
            if record["leader"] != -2:
                tags[1] = struct.pack(">i", record["leader"])
            if record["leader_recovery_state"] is not None:
                tags[5] = struct.pack(">b", record["leader_recovery_state"])
            tags[8] = bytes([2]) + bytes(16)  # directories, which nobody asks for
            return bytes([1, 5, 2]) + own + tagged(tags)


def log_of(values: Sequence[bytes | None], start: int = 0) -> ReplicaLog:
    stored = [StoredRecord(start + at, 1, 1_000 + at, None, value) for at, value in enumerate(values)]
    return ReplicaLog(1, metadata_log.TOPIC, 0, start, start + len(values), -1, stored)


def test_kafkas_metadata_log_tells_every_change() -> None:
    no_op = bytes([1, 20, 0, 0])
    found = metadata_log.chronicle(log_of([no_op, *map(kafka, RECORDS), no_op]), "n1", "log")
    assert states(found.changes) == STATES
    assert found.changes[0].at_ns == 1_002 * 1_000_000
    assert found.changes[0].place == "offset 2"
    assert [(one.winner, one.strategy) for one in found.recoveries] == [(3, ""), (3, "")]
    assert "elected uncleanly" in found.recoveries[0].why
    assert found.missing == ()


def test_what_kafkas_log_lacks_is_named() -> None:
    values = [kafka(record) for record in RECORDS]
    found = metadata_log.chronicle(log_of([*values[:3], values[3][:12], *values[4:]], start=5), "n1", "log")
    assert any("begins at offset 5" in one for one in found.missing)
    assert any("offset 8" in one for one in found.missing)


def test_the_log_that_begins_at_the_beginning_and_reaches_furthest_is_read() -> None:
    logs = [("n1", log_of([None] * 9, start=3)), ("n2", log_of([None] * 5)), ("n3", log_of([None] * 7))]
    assert metadata_log.furthest(logs)[0] == "n3"


@pytest.mark.parametrize("value", [b"", b"\x01", bytes([2, 2, 0, 1]), bytes([1, 3, 0, 0, 0])])
def test_bytes_that_are_no_record_are_refused_in_one_line(value: bytes) -> None:
    with pytest.raises(metadata_log.NotUnderstood) as wrong:
        metadata_log.decode(value)
    assert "\n" not in str(wrong.value)

"""Lines of the trace are JSON and say what the core said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from wrackline.broker.model.types import SnapshotId, TopicPartition
from wrackline.broker.server.trace import TraceWriter

_INCARNATION = UUID(int=5)


def written(path: Path, *lines: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    writer = TraceWriter(path, 7, _INCARNATION)
    for kind, fields in lines:
        writer.begin()
        writer.write(kind, fields)
    writer.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_its_moment_its_node_and_its_fields(tmp_path: Path) -> None:
    first, second = written(
        tmp_path / "logs" / "trace.jsonl",
        ("hwm", {"tp": TopicPartition("caf\u00e9", 3), "old": -1, "new": 2**63 - 1}),
        ("stop", {}),
    )
    assert first["tp"] == "caf\u00e9-3"
    assert (first["old"], first["new"]) == (-1, 2**63 - 1)
    assert (first["node"], first["incarnation"], first["kind"]) == (7, str(_INCARNATION), "hwm")
    assert [first["seq"], second["seq"]] == [1, 2]
    assert 0 < first["mono_ns"] <= second["mono_ns"]
    assert [first["step"], second["step"]] == [1, 2]
    assert set(second) == {"time_ns", "mono_ns", "step", "node", "incarnation", "seq", "kind"}


def test_tuples_sets_ids_and_quotes_come_through(tmp_path: Path) -> None:
    fields = {
        "isr": frozenset({3, 1, 2}),
        "id": SnapshotId(9, 4),
        "topic_id": UUID(int=1),
        "logs": {"1": [0, 5]},
        "why": 'a "quoted"\nline',
        "diverging": None,
        "leader": True,
        "at_s": 1.5,
    }
    [line] = written(tmp_path / "trace.jsonl", ("any", fields))
    assert {key: line[key] for key in fields} == {
        **fields,
        "isr": [1, 2, 3],
        "id": [9, 4],
        "topic_id": str(UUID(int=1)),
    }


def test_a_second_life_appends(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    written(path, ("start", {"clean": True}))
    assert [line["seq"] for line in written(path, ("start", {"clean": False}))] == [1, 1]


def test_the_lines_of_one_event_have_one_time_and_are_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    writer = TraceWriter(path, 7, _INCARNATION)
    writer.begin()
    writer.write("append", {"base": 0})
    writer.write("hwm", {"new": 1})
    assert path.read_bytes() == b""
    writer.flush()  # before the answer leaves
    writer.write("ack", {"offset": 0})
    writer.flush()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["append", "hwm", "ack"]
    assert len({(line["step"], line["time_ns"], line["mono_ns"]) for line in lines}) == 1
    writer.close()


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    writer = TraceWriter(None, 7, _INCARNATION)
    writer.begin()
    writer.write("append", {"base": 0})
    writer.close()
    assert list(tmp_path.iterdir()) == []

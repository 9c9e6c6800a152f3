"""Lines of the trace are JSON and say what the core said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

from wrackline.broker.model.types import SnapshotId, TopicPartition
from wrackline.broker.server.trace import TraceWriter

_INCARNATION = UUID(int=5)


def written(path: Path, *lines: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    async def write() -> None:
        writer = TraceWriter(path, 7, _INCARNATION)
        for kind, fields in lines:
            writer.write(kind, fields)
        writer.close()

    asyncio.run(write())
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
    assert set(second) == {"time_ns", "mono_ns", "node", "incarnation", "seq", "kind"}


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

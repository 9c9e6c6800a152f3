"""Why a finding is a contradiction: the cycle of edges that proves it, from the operations it cites."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.findings import FINDINGS
from harness.history.files import write_history
from harness.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, Event, Record, RunInfo, TopicInfo, Type
from harness.report import write_report

A, B = 160, 176
INFO = RunInfo(
    "t", "t", 1, "2026-01-01T00:00:00Z", "wrackline", "log", "all", True, (TopicInfo("log", 1, 3, 2),)
)


def send(process: int, value: int, offset: int) -> list[Event]:
    said = {"topic": "log", "partition": 0}
    return [
        Event(process, Type.INVOKE, "send", records=(Record(0, UNKNOWN, value),), **said),
        Event(process, Type.OK, "send", records=(Record(0, offset, value),), **said),
    ]


def poll(process: int, *got: tuple[int, int]) -> list[Event]:
    records = tuple(Record(0, *one) for one in got)
    return [
        Event(process, Type.INVOKE, "poll", topic="log"),
        Event(process, Type.OK, "poll", topic="log", records=records),
    ]


def end(process: int, told: int) -> list[Event]:
    said = {"topic": "log", "partition": 0}
    return [
        Event(process, Type.INVOKE, "end", **said),
        Event(process, Type.OK, "end", high_watermark=told, **said),
    ]


def drain(*got: tuple[int, int], ends: int) -> list[Event]:
    said = {"topic": "log", "partition": 0, "offset": 0, "high_watermark": ends}
    records = tuple(Record(0, *one) for one in got)
    return [
        Event(9, Type.INVOKE, "drain", topic="log", partition=0),
        Event(9, Type.OK, "drain", records=records, extra={"complete": True}, **said),
    ]


def explained(
    tmp_path: Path, events: list[Event], anomaly: str, offset: int, value: int | None
) -> dict[str, object]:
    """The explanation of a finding that cites every event."""
    timed = [
        Event(**{**{f: getattr(e, f) for f in e.__slots__}, "time_ns": 1_000_000 * n})
        for n, e in enumerate(events)
    ]
    run_dir = tmp_path / "run"
    write_history(run_dir, INFO, timed)
    finding = {
        "test_id": "t", "anomaly": anomaly, "topic": "log", "partition": 0, "offset": offset, "value": value,
        "operations": list(range(len(events))), "where": None, "explanation": "said",
    }  # fmt: skip
    pq.write_table(pa.Table.from_pylist([finding], FINDINGS), run_dir / "findings.parquet")
    html = write_report(run_dir).read_text()
    [found] = orjson.loads((run_dir / "explanations.json").read_bytes())
    assert ("No order of these operations is possible" in html) == bool(found["edges"])
    assert all(edge["sentence"].split(" (")[0] in html for edge in found["edges"])
    return dict(found)


@pytest.mark.parametrize(
    ("anomaly", "events", "offset", "kinds"),
    [
        ("append-order", send(1, A, 1) + send(2, B, 0), 0, {"time", "log"}),
        ("stale-read", send(1, A, 0) + end(3, 0), 0, {"time", "unseen"}),
        ("future-read", poll(4, (0, A)) + send(1, A, 0), 0, {"time", "seen"}),
        ("watermark-regression", end(3, 2) + end(4, 1), 1, {"time", "unseen"}),
        ("watermark-regression", poll(3, (0, A)) + end(4, 0), 0, {"time", "unseen"}),
        ("lost-write", send(1, A, 0) + send(2, B, 1) + drain((0, A), ends=1), 1, {"time", "unseen"}),
    ],
)
def test_a_cycle_of_edges_proves_it(
    tmp_path: Path, anomaly: str, events: list[Event], offset: int, kinds: set[str]
) -> None:
    found = explained(tmp_path, events, anomaly, offset, None)
    edges = found["edges"]
    assert isinstance(edges, list)
    assert {edge["kind"] for edge in edges} == kinds
    following = [*edges[1:], edges[0]]
    assert all(edge["after"] == after["before"] for edge, after in zip(edges, following, strict=True))
    assert found["facts"] == []


@pytest.mark.parametrize(
    "events",
    [
        send(1, A, 0) + send(2, B, 1) + poll(3, (0, A), (1, B)) + end(4, 2) + drain((0, A), (1, B), ends=2),
        # open at the same time: any order will do
        [send(1, A, 1)[0], *send(2, B, 0), send(1, A, 1)[1]],
        [end(3, 0)[0], *send(1, A, 0), end(3, 0)[1]],
        # acknowledged without offset: nobody knows where it must be
        send(1, A, ACKED_WITHOUT_OFFSET) + end(3, 1),
    ],
)
def test_a_correct_history_has_no_cycle(tmp_path: Path, events: list[Event]) -> None:
    assert explained(tmp_path, events, "not-linearizable", 0, A)["edges"] == []


def test_without_a_cycle_each_operation_says_what_it_knows(tmp_path: Path) -> None:
    found = explained(tmp_path, send(1, A, 0) + poll(3, (0, B)), "inconsistent-offset", 0, B)
    assert found["facts"] == [
        "the send (1) sent p0·10: acknowledged at offset 0",
        "the poll (2) holds p0·11 at offset 0",
    ]

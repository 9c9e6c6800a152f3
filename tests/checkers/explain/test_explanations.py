"""A finding is explained by the cycle of edges that proves it, made of the operations it cites."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wrackline.checkers.explain.model import (
    DETAILED,
    EXPLANATIONS_FILE,
    GROUPS,
    Cell,
    Explanation,
    Finding,
    Group,
    Shown,
    from_json,
    to_json,
)
from wrackline.checkers.explain.selection import Sample, detailed, fair
from wrackline.checkers.explain.step import explain, explained
from wrackline.checkers.findings import FINDINGS
from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, Event, Record, RunInfo, TopicInfo, Type
from wrackline.history.store.files import write_history

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


def end(process: int, offset: int) -> list[Event]:
    said = {"topic": "log", "partition": 0}
    return [
        Event(process, Type.INVOKE, "end", **said),
        Event(process, Type.OK, "end", high_watermark=offset, **said),
    ]


def drain(*got: tuple[int, int], ends: int) -> list[Event]:
    said = {"topic": "log", "partition": 0, "offset": 0, "high_watermark": ends}
    records = tuple(Record(0, *one) for one in got)
    return [
        Event(9, Type.INVOKE, "drain", topic="log", partition=0),
        Event(9, Type.OK, "drain", records=records, extra={"complete": True}, **said),
    ]


def of_all(tmp_path: Path, events: list[Event], anomaly: str, offset: int, value: int | None) -> Explanation:
    """The explanation of a finding that cites every event."""
    return explanation_of(tmp_path, events, anomaly, offset, value)


def explanation_of(
    tmp_path: Path,
    events: list[Event],
    anomaly: str,
    offset: int | None,
    value: int | None,
    *,
    cited: list[int] | None = None,
    info: RunInfo = INFO,
    where: str | None = None,
) -> Explanation:
    timed = [
        Event(**{**{f: getattr(e, f) for f in e.__slots__}, "time_ns": 1_000_000 * n})
        for n, e in enumerate(events)
    ]
    run_dir = tmp_path / "run"
    write_history(run_dir, info, timed)
    finding = {
        "test_id": "t", "anomaly": anomaly, "topic": "log", "partition": 0, "offset": offset, "value": value,
        "operations": list(range(len(events))) if cited is None else cited, "where": where,
        "explanation": "said",
    }  # fmt: skip
    pq.write_table(pa.Table.from_pylist([finding], FINDINGS), run_dir / "findings.parquet")
    [found] = explain(run_dir)
    return found


@pytest.mark.parametrize(
    ("anomaly", "events", "offset", "kinds"),
    [
        ("append-order", send(1, A, 1) + send(2, B, 0), 0, {"time", "log"}),
        (
            "append-order",
            send(1, A, ACKED_WITHOUT_OFFSET)
            + send(2, B, ACKED_WITHOUT_OFFSET)
            + drain((0, B), (1, A), ends=2),
            0,
            {"time", "log"},
        ),
        ("lost-committed", end(3, 2) + drain((0, A), ends=1), 1, {"time", "unseen"}),
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
    found = of_all(tmp_path, events, anomaly, offset, None)
    edges = found.edges
    assert {edge.kind for edge in edges} == kinds
    following = [*edges[1:], edges[0]]
    assert all(edge.after == after.before for edge, after in zip(edges, following, strict=True))
    assert found.facts == ()


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
    assert of_all(tmp_path, events, "not-linearizable", 0, A).edges == ()


def test_without_a_cycle_each_operation_says_what_it_knows(tmp_path: Path) -> None:
    found = of_all(tmp_path, send(1, A, 0) + poll(3, (0, B)), "inconsistent-offset", 0, B)
    assert list(found.facts) == [
        "the send (1) sent p0·10 to log-0: acknowledged at offset 0",
        "the poll (2) has p0·11 at offset 0 of log-0",
    ]


def batch(process: int, *records: tuple[int, int]) -> list[Event]:
    said = {"topic": "log", "partition": 0}
    return [
        Event(process, Type.INVOKE, "send", records=tuple(Record(0, UNKNOWN, v) for v, _ in records), **said),
        Event(process, Type.OK, "send", records=tuple(Record(0, o, v) for v, o in records), **said),
    ]


def test_records_of_one_send_are_appended_one_by_one(tmp_path: Path) -> None:
    """That a read saw the first of them and not the second is no contradiction: no cycle may go through the
    two."""
    sent = batch(1, (A, 0), (B, 1))
    begun, done = drain((0, A), ends=1)
    overlapping = [sent[0], begun, done, sent[1]]
    assert of_all(tmp_path, overlapping, "not-linearizable", 1, B).edges == ()


def taken(process: int, f: str, value: int | None) -> list[Event]:
    records = () if value is None else (Record(0, UNKNOWN, value),)
    said = {"topic": "log", "partition": 0}
    return [Event(process, Type.INVOKE, f, **said), Event(process, Type.OK, f, records=records, **said)]


@pytest.mark.parametrize(
    ("anomaly", "events", "kinds"),
    [
        # the write of B came between the write of A and the read of it
        ("register", send(1, A, 0) + send(2, B, 1) + taken(3, "read", A), ["time", "time", "held"]),
        ("register", send(1, A, 0) + taken(3, "read", None), ["time", "unseen"]),
        ("register", taken(3, "read", A) + send(1, A, 0), ["time", "seen"]),
        (
            "queue",
            send(1, A, 0) + send(1, B, 1) + taken(2, "dequeue", B) + taken(3, "dequeue", A),
            ["time", "queue"],
        ),
        ("queue", send(1, A, 0) + taken(2, "dequeue", None) + taken(3, "dequeue", A), ["time", "unseen"]),
        # right ones
        ("register", send(1, A, 0) + taken(3, "read", A) + send(2, B, 1) + taken(3, "read", B), []),
        ("queue", send(1, A, 0) + send(1, B, 1) + taken(2, "dequeue", A) + taken(3, "dequeue", B), []),
        ("queue", send(1, A, 0) + taken(2, "dequeue", A) + taken(3, "dequeue", None), []),
    ],
)  # fmt: skip
def test_registers_and_queues(tmp_path: Path, anomaly: str, events: list[Event], kinds: list[str]) -> None:
    found = explanation_of(tmp_path, events, f"{anomaly}-not-linearizable", None, A)
    assert [edge.kind for edge in found.edges] == kinds
    assert kinds or found.facts


def test_a_loss_is_held_against_the_read_that_lacks_it(tmp_path: Path) -> None:
    """The finding cites the completions alone: their invocations, and the row of the final read that
    reaches the offset, are found."""
    first, second = drain((0, A), ends=3), drain((2, 192), ends=3)
    first[1] = dataclasses.replace(first[1], extra={})
    events = send(1, A, 0) + send(2, B, 1) + first + second
    found = explanation_of(tmp_path, events, "lost-write", 1, B, cited=[3])
    assert [op.indexes for op in found.operations] == [(2, 3), (6, 7)]
    assert [edge.kind for edge in found.edges] == ["time", "unseen"]
    around = found.neighbourhood
    assert around is not None
    final = [column.name for column in around.columns].index("final read")
    at = {line.offset: line.cells[final] for line in around.lines}
    assert at[1] == Cell(state="missing", note="nothing")
    assert at[2].held[0].value == 192


def test_the_operations_of_one_transaction_are_joined_by_an_edge(tmp_path: Path) -> None:
    """One was given what the other sent, which lies behind what it sent itself."""
    whole = [
        dataclasses.replace(event, extra={"txn": txn})
        for own, txn in ((send(1, A, 0), 1), (send(2, B, 1), 2), (poll(11, (1, B)), 1))
        for event in own
    ]
    found = of_all(tmp_path, [*whole[0::2], *whole[1::2]], "read-cycle", 0, A)
    edges = found.edges
    assert sorted(edge.kind for edge in edges) == ["log", "seen", "with"]


def test_transactions_are_whole_and_sends_are_not(tmp_path: Path) -> None:
    """One lies between the records of the other: a contradiction only where they are transactions."""
    one, other = batch(1, (A, 0), (192, 2)), batch(2, (B, 1))
    for name, extra, edges in (("transactions", ({"txn": 1}, {"txn": 2}), 2), ("sends", (None, None), 0)):
        begun, done = (dataclasses.replace(event, extra=extra[0]) for event in one)
        between = [dataclasses.replace(event, extra=extra[1]) for event in other]
        found = explanation_of(tmp_path / name, [begun, *between, done], "write-cycle", 0, A)
        assert len(found.edges) == edges


def test_values_of_an_imported_history_are_named_as_they_are_there(tmp_path: Path) -> None:
    info = dataclasses.replace(INFO, system="imported")
    value = 3 << 32 | 17
    found = explanation_of(tmp_path, send(1, value, 0), "lost-write", 0, value, info=info)
    assert "17 → 0" in found.operations[0].what
    assert "the send (1) sent 17 to log-0: acknowledged at offset 0" in found.facts


def test_what_a_consumer_was_given_stands_in_its_order_and_beside_the_log(tmp_path: Path) -> None:
    events = batch(1, (A, 0), (B, 1), (192, 2)) + poll(4, (0, A), (2, 192))
    found = of_all(tmp_path, events, "poll-skip", 1, None)
    assert "the poll (2): p4 was given, around offset 1 of log-0, 0 (p0·10), 2 (p0·12)" in found.facts
    around = found.neighbourhood
    assert around is not None
    column = [one.name for one in around.columns].index("poll (2)")
    assert [line.cells[column].note for line in around.lines][:3] == ["", "not given", ""]


def test_a_sample_of_too_many_findings_contains_every_anomaly() -> None:
    def sample(anomaly: str, partition: int) -> Sample:
        findings = tuple(
            Finding(anomaly, "log", partition, n, n, (100 * partition + n,), None, "") for n in range(6)
        )
        return Sample(Group(anomaly, "log", partition, 6, 0, 5), findings)

    samples = [sample("lost-write", p) for p in range(40)] + [sample(a, 0) for a in ("duplicate", "phantom")]
    chosen = fair(samples, 10)
    assert [one.group.anomaly for one in chosen] == ["lost-write"] * 8 + ["duplicate", "phantom"]
    assert chosen == [one for one in samples if one in chosen]
    drawn = detailed(samples, 45)
    assert Counter(f.anomaly for f in drawn) == {"lost-write": 41, "duplicate": 2, "phantom": 2}
    assert {f.partition for f in drawn if f.anomaly == "lost-write"} == set(range(40))


def test_what_is_not_shown_is_counted_by_anomaly(tmp_path: Path) -> None:
    write_history(tmp_path, INFO, send(1, A, 0))
    found = [
        {"test_id": "t", "anomaly": anomaly, "topic": "log", "partition": p, "offset": o, "value": o,
         "operations": [0, 1], "where": None, "explanation": f"value {o} was acked"}
        for anomaly, partitions in (("lost-write", 90), ("duplicate", 3))
        for p in range(partitions) for o in range(2)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(found, FINDINGS), tmp_path / "findings.parquet")
    found = explain(tmp_path)
    shown = [group for group in found.groups if group.explanations]
    assert len(shown) == GROUPS
    assert [group.anomaly for group in shown] == ["lost-write"] * (GROUPS - 3) + ["duplicate"] * 3
    assert sum(group.count for group in found.groups) == 186
    # two findings of a partition rest on the same operations: one of them is shown in detail
    assert Counter(one.finding.anomaly for one in found if one.detailed) == {
        "lost-write": DETAILED - 3,
        "duplicate": 3,
    }


def test_each_incident_has_findings_that_are_shown(tmp_path: Path) -> None:
    """Of one partition: i-a has the lost writes of the offsets 40 and 41 and the stale read of offset 40, and
    i-b has the lost write of offset 42. The others are of incidents that the verdict does not tell."""
    write_history(tmp_path, INFO, send(1, A, 0))
    found = [
        {"test_id": "t", "anomaly": anomaly, "topic": "log", "partition": 0, "offset": o, "value": o,
         "operations": [0, 1], "where": None, "explanation": "gone"}
        for anomaly, offsets in (("lost-write", range(43)), ("stale-read", range(40, 42)))
        for o in offsets
    ]  # fmt: skip
    file = tmp_path / "findings.parquet"
    pq.write_table(pa.Table.from_pylist(found, FINDINGS), file, row_group_size=41)
    incidents = [
        {"id": "i-b", "meaning": "violation", "anomalies": [{"rows": [[42, 42]]}]},
        {"id": "i-a", "meaning": "allowed", "anomalies": [{"rows": [[40, 41]]}, {"rows": [[43, 43]]}]},
    ]
    anomalies = [
        {"anomaly": "lost-write", "meaning": "violation", "count": 43},
        {"anomaly": "stale-read", "meaning": "allowed", "count": 2},
    ]
    verdict = {"incidents": incidents, "anomalies": anomalies}
    (tmp_path / "verdict.json").write_bytes(orjson.dumps(verdict))
    groups = [
        (group.incident, group.anomaly, group.count, [one.finding.offset for one in group.explanations])
        for group in explain(tmp_path).groups
    ]
    assert groups == [
        ("i-b", "lost-write", 1, [42]),
        (None, "lost-write", 40, list(range(20))),
        ("i-a", "lost-write", 2, [40, 41]),
        ("i-a", "stale-read", 1, [40]),
        (None, "stale-read", 1, [41]),
    ]


def test_what_a_consumer_is_given_twice_stands_out(tmp_path: Path) -> None:
    events = batch(1, (A, 0), (B, 1)) + poll(4, (0, A), (1, B)) + poll(4, (1, B))
    around = of_all(tmp_path, events, "poll-rewind", 1, None).neighbourhood
    assert around is not None
    names = [one.name for one in around.columns]
    states = {
        name: [line.cells[names.index(name)].state for line in around.lines][:2]
        for name in ("poll (2)", "poll (3)")
    }
    assert states == {"poll (2)": ["same", "same"], "poll (3)": ["", "differs"]}


def test_an_edge_has_both_ends_of_what_proves_it(tmp_path: Path) -> None:
    timed, unseen = of_all(tmp_path, send(1, A, 0) + end(3, 0), "stale-read", 0, A).edges
    assert (timed.before, timed.earlier.time_ns, timed.later.time_ns) == (1, 1_000_000, 2_000_000)
    assert (unseen.earlier, unseen.later) == (
        Shown(partition=0, end=0),
        Shown(partition=0, offset=0, value=A),
    )


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    of_all(tmp_path, send(1, A, 0) + end(3, 0), "stale-read", 0, A)
    run_dir = tmp_path / "run"
    written = (run_dir / EXPLANATIONS_FILE).read_bytes()
    found = from_json(written)
    assert found == explained(run_dir)
    assert to_json(found) == written
    [one] = found
    assert [op.name for op in found.in_window(one.windows[0])] == ["send", "end-offset request"]


def test_an_older_judge_left_none(tmp_path: Path) -> None:
    """They are written where they are missing or of another version, and otherwise left alone."""
    of_all(tmp_path, send(1, A, 0) + end(3, 0), "stale-read", 0, A)
    run_dir = tmp_path / "run"
    path = run_dir / EXPLANATIONS_FILE
    written = path.read_bytes()
    for before in (None, b'{"version": 0}', b"[]", b"half"):
        path.unlink()
        if before is not None:
            path.write_bytes(before)
        explained(run_dir)
        assert path.read_bytes() == written
    (run_dir / "findings.parquet").unlink()
    explained(run_dir)
    assert path.read_bytes() == written


def test_a_cycle_of_reads_and_writes_is_shown_through_a_read(tmp_path: Path) -> None:
    """Though the two sends are a shorter cycle by themselves: that is another anomaly."""
    twice = {"topic": "log", "partition": None}
    values = {1: (Record(0, 1, 161), Record(1, 1, 163)), 2: (Record(0, 2, 162), Record(1, 0, 164))}
    first = send(5, A, 0) + poll(6, (2, 162))
    sends = [
        Event(process, kind, "send", records=records, **twice)
        for process, records in values.items()
        for kind in (Type.INVOKE, Type.OK)
    ]
    of = [3, 3, 3, 3, 1, 1, 2, 2]
    done = [dataclasses.replace(e, extra={"txn": t}) for e, t in zip([*first, *sends], of, strict=True)]
    events = [*done[0::2], *done[1::2]]
    both = of_all(tmp_path / "both", events, "write-read-cycle", 2, 162)
    assert (both.cycle, sorted(edge.kind for edge in both.edges)) == ("G1c", ["log", "seen", "with"])
    writes = of_all(tmp_path / "writes", events, "write-cycle", 1, 161)
    assert (writes.cycle, [edge.kind for edge in writes.edges]) == ("G0", ["log", "log"])

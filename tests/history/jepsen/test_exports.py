"""Runs of ours go out as Jepsen's histories: for its kafka workload, for Elle and for Knossos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.history.jepsen.words import assign, events, imported, op, poll, polled, send
from wrackline.history.jepsen.exports import MODELS, Keys, kafka, list_append, rows
from wrackline.history.jepsen.imports import Settings, import_history
from wrackline.history.jepsen.text import write
from wrackline.history.labels import CONSUMERS
from wrackline.history.model import MARKER, UNKNOWN, Event, Record, RunInfo, TopicInfo, Type, value_of
from wrackline.history.store.files import write_history

INFO = RunInfo(
    "t", "t", 1, "2026-01-01T00:00:00Z", "wrackline", "log", "all", True, (TopicInfo("log", 2, 3, 2),)
)


def test_an_exported_run_is_imported_again_with_the_same_outcomes(tmp_path: Path) -> None:
    """A run of ours in Jepsen's words, and back: the same operations with the same outcomes."""
    first = imported(
        tmp_path,
        assign(1, 0, 1, begin=True),
        send(0, 0, 1, 0),
        send(0, 1, 2, 0),
        send(2, 0, 5, None, "info"),
        poll(1, {0: [[0, 1]], 1: [[0, 2]]}),
    )
    again = tmp_path / "again.edn"
    write(kafka(rows(first), Keys()), again, "edn")
    second = import_history(again, tmp_path / "results", Settings("again"))
    for f in ("send", "poll"):
        outcomes = [
            [
                (row["type"], [(r["partition"], r["offset"]) for r in row["records"] or ()])
                for row in events(run, f)
            ]
            for run in (first, second)
        ]
        assert outcomes[1][: len(outcomes[0])] == outcomes[0]
    # A final read that an import made of polls goes out no more; it is made again.
    assert len(events(second, "drain")) == len(events(first, "drain")) == 4
    assert {row["process"] for row in events(second, "assign")} == {1 + 2 * CONSUMERS}


def test_a_final_read_goes_out_as_polls_from_the_beginning(tmp_path: Path) -> None:
    said: dict[str, Any] = {"topic": "log", "partition": 1, "offset": 0, "high_watermark": 1}
    timeline = [
        Event(5, Type.INVOKE, "drain", **said),
        Event(5, Type.OK, "drain", records=(Record(1, 0, 160),), extra={"complete": True}, **said),
    ]
    write_history(tmp_path, INFO, timeline)
    told = [(str(o["f"]), str(o["type"]), o["value"]) for o in kafka(rows(tmp_path), Keys())]
    assert told == [
        ("assign", "invoke", [1]),
        ("assign", "ok", [1]),
        ("poll", "invoke", [["poll"]]),
        ("poll", "ok", [["poll", {1: [[0, 160]]}]]),
    ]


def test_an_imported_history_is_exported_unchanged(tmp_path: Path) -> None:
    """Transactions, polls that failed, offsets of sends of unknown outcome, records without an offset."""
    ops = [
        op(0, "invoke", "txn", [["send", 0, 1], ["send", 1, 2]]),
        op(0, "info", "txn", [["send", 0, [4, 1]], ["send", 1, 2]]),
        *polled(1, "txn", "fail", [4, 1]),
        *poll(2, {0: [[None, 1]]}),
    ]
    told = [
        o
        for o in kafka(rows(imported(tmp_path, ops)), Keys())
        if o["f"] != "assign" and o["type"] != "invoke"
    ]
    value = 1 << 32 | 2
    assert [(str(o["type"]), o.get("txn"), o["value"]) for o in told] == [
        ("info", 0, [["send", 0, [4, 1]], ["send", 1, value]]),
        ("fail", 1, [["poll", {0: [[4, 1]]}]]),
        ("ok", None, [["poll", {0: [[None, 1]]}]]),
    ]


def test_elle_gets_appends_of_one_record_and_prefixes(tmp_path: Path) -> None:
    two = [["send", 0, 1], ["send", 0, 2]]
    run_dir = imported(
        tmp_path,
        [op(0, "invoke", "send", two), op(0, "ok", "send", [["send", 0, [0, 1]], ["send", 0, [1, 2]]])],
        send(0, 0, 3, None, "info"),
        poll(1, {0: [[0, 1], [1, 2]]}),
    )
    ops = list(list_append(rows(run_dir), Keys()))
    appends = [(o["process"], str(o["type"]), o["value"][0][2]) for o in ops if o["value"][0][0] == "append"]
    assert len({process for process, _, _ in appends}) == 2
    assert sorted(kind for _, kind, value in appends if value == 3) == ["info", "invoke"]
    assert ops[-1]["value"] == [["r", 0, [1, 2]]]
    assert [o["index"] for o in ops] == list(range(len(ops)))


def test_knossos_gets_registers_and_queues_by_key(tmp_path: Path) -> None:
    said: dict[str, Any] = {"topic": "log", "partition": 1}
    marker, kept = Record(1, 5, value_of(3, 0, MARKER)), Record(1, 4, value_of(1, 0))
    timeline = [
        Event(1, Type.INVOKE, "send", records=(kept._replace(offset=UNKNOWN),), **said),
        Event(1, Type.OK, "send", records=(kept,), **said),
        Event(3, Type.INVOKE, "send", records=(marker,), **said),
        Event(3, Type.OK, "send", records=(marker,), **said),
        Event(2, Type.INVOKE, "read", **said),
        Event(2, Type.OK, "read", records=(kept,), **said),
        Event(2, Type.INVOKE, "dequeue", **said),
        Event(2, Type.OK, "dequeue", **said),
    ]
    write_history(tmp_path / "run", INFO, timeline)
    shown = {
        model: [
            (str(o["type"]), str(o["f"]), o["value"]) for o in MODELS[model](rows(tmp_path / "run"), Keys())
        ]
        for model in ("register", "queue")
    }
    value = kept.value
    assert shown["register"] == [
        ("invoke", "write", [1, value]),
        ("ok", "write", [1, value]),
        ("invoke", "read", [1, None]),
        ("ok", "read", [1, value]),
    ]
    assert shown["queue"][2:] == [("invoke", "dequeue", [1, None]), ("ok", "dequeue", [1, None])]


def test_logs_go_out_with_offsets_and_ends(tmp_path: Path) -> None:
    said: dict[str, Any] = {"topic": "log", "partition": 1}
    one, lost = Record(1, 0, 160), Record(1, UNKNOWN, 176)
    timeline = [
        Event(1, Type.INVOKE, "send", records=(one._replace(offset=UNKNOWN), lost), **said),
        Event(2, Type.INVOKE, "end", **said),
        Event(1, Type.OK, "send", records=(one, lost), **said),
        Event(2, Type.OK, "end", high_watermark=1, **said),
        Event(3, Type.INVOKE, "poll", topic="log"),
        Event(3, Type.OK, "poll", topic="log", records=(Record(0, 4, 192), one)),
    ]
    write_history(tmp_path, INFO, timeline)
    keys = Keys()
    found = [(str(o["type"]), str(o["f"]), o["value"]) for o in MODELS["log"](rows(tmp_path), keys)]
    assert keys.numbers == {("log", 1): 1, ("log", 0): 0}
    assert found == [
        ("invoke", "append", [1, 160]),
        ("invoke", "append", [1, 176]),
        ("invoke", "end", [1, None]),
        ("ok", "append", [1, [0, 160]]),
        ("info", "append", [1, 176]),
        ("ok", "end", [1, 1]),
        ("invoke", "read", [0, None]),
        ("ok", "read", [0, [[4, 192]]]),
        ("invoke", "read", [1, None]),
        ("ok", "read", [1, [[0, 160]]]),
    ]


def test_share_groups_go_out_record_by_record_with_the_end_of_each_lock(tmp_path: Path) -> None:
    def event(
        process: int, kind: Type, f: str, at: int, records: tuple[Record, ...] = (), **extra: Any
    ) -> Event:
        named = {"group": "g", **extra}
        return Event(process, kind, f, topic="log", records=records, extra=named, time_ns=at * 1_000_000)

    two, renew = (Record(1, 4, 64), Record(1, 5, 80)), {"acks": {"renew": {"1": [4]}, "accept": {"1": [5]}}}
    timeline = [
        event(1, Type.OK, "subscribe", 0, share={"lock_ms": 100}),
        event(1, Type.INVOKE, "acquire", 5),
        event(1, Type.OK, "acquire", 9, two, counts=[1, 2], since_ns=3_000_000),
        event(2, Type.INVOKE, "acknowledge", 10, member=1, **renew),
        event(2, Type.INFO, "acknowledge", 20, member=1, acks={"accept": {"1": [5]}}),
        event(1, Type.INVOKE, "acquire", 21),
        event(1, Type.OK, "acquire", 22, two[:1], counts=[1], since_ns=21_000_000, renewed=[[1, 4]]),
        event(1, Type.OK, "crash", 30),
    ]
    write_history(tmp_path, INFO, timeline)
    first, second = {"record": ("g", 1, 4), "member": 1}, {"record": ("g", 1, 5), "member": 1}
    found = list(MODELS["share"](rows(tmp_path), Keys()))
    assert [(o["time"] // 1_000_000, str(o["type"]), str(o["f"]), o["value"]) for o in found] == [
        (3, "invoke", "acquire", first),
        (3, "invoke", "acquire", second),
        (9, "ok", "acquire", {**first, "count": 1}),
        (9, "ok", "acquire", {**second, "count": 2}),
        (10, "invoke", "renew", first),
        (10, "invoke", "accept", second),
        (20, "info", "renew", first),
        (20, "ok", "accept", second),
        (30, "invoke", "release", first),
        (103, "invoke", "expire", {**first, "count": 1, "renewals": 0}),
        (103, "invoke", "expire", {**second, "count": 2, "renewals": 0}),
        (110, "invoke", "expire", {**first, "count": 1, "renewals": 1}),
    ]

"""Transactions go out as Elle's: what a transaction was given, then what it wrote, by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wrackline.history.jepsen.exports import MODELS, Keys, rows
from wrackline.history.model import FAILED, UNKNOWN, Event, Record, RunInfo, TopicInfo, Type, value_of
from wrackline.history.store.files import write_history

TOPIC = TopicInfo("log", 2, 3, 2, contiguous=False)
INFO = RunInfo("t", "t", 1, "2026-01-01T00:00:00Z", "kafka", "txn", "all", True, (TOPIC,))
A, B, C = (value_of(0, counter) for counter in range(3))
D = value_of(1, 0)


def event(process: int, kind: str, f: str, *places: tuple[int, int, int], **extra: Any) -> Event:
    return Event(
        process, Type(kind), f, topic="log", records=tuple(Record(*one) for one in places), extra=extra
    )


def txn(
    number: int, process: int, kind: str, values: list[tuple[int, int, int]], *given: tuple[int, int, int]
):
    """Transaction ``number``: its send (process) and its poll (process + 10), with what it was given."""
    ended = {"ok": {}, "fail": {"aborted": "fail"}, "info": {"aborted": "info"}}[kind]
    offset = {"fail": FAILED, "info": UNKNOWN}
    return [
        event(
            process,
            "invoke",
            "send",
            *((p, UNKNOWN, v) for p, _, v in values),
            txn=number,
            transactional_id="t",
        ),
        event(process + 10, "invoke", "poll", txn=number),
        event(process + 10, "ok", "poll", *given, txn=number, **ended),
        event(process, kind, "send", *((p, offset.get(kind, o), v) for p, o, v in values), txn=number),
    ]


def assign(process: int, **positions: int) -> list[Event]:
    at = {name.removeprefix("p"): offset for name, offset in positions.items()}
    return [event(process, kind, "assign", positions=at, member="m") for kind in ("invoke", "ok")]


def exported(folder: Path, model: str, *timeline: list[Event]) -> list[tuple[str, list[Any]]]:
    write_history(folder / "run", INFO, [one for events in timeline for one in events])
    told = MODELS[model](rows(folder / "run"), Keys())
    return [(str(o["type"]), [[str(mop[0]), *mop[1:]] for mop in o["value"]]) for o in told]


def test_a_transaction_is_exported_as_its_reads_and_then_its_writes(tmp_path: Path) -> None:
    timeline = [
        assign(11, p0=0, p1=0),
        txn(1, 0, "ok", [(0, 0, A), (1, 0, B)]),
        txn(2, 1, "ok", [(0, 2, D)], (0, 0, A), (1, 0, B)),
        txn(3, 1, "info", [(1, 2, value_of(1, 1))], (0, 2, D)),
    ]
    assert exported(tmp_path, "list-append", *timeline) == [
        ("invoke", []),
        ("ok", [["append", 0, A], ["append", 1, B]]),
        ("invoke", []),
        ("ok", [["r", 0, [A]], ["r", 1, [B]], ["append", 2, D]]),
        ("invoke", []),
        (
            "info",
            [["append", 3, value_of(1, 1)]],
        ),  # what it was given tells nothing: nobody says it took place
    ]


def test_records_read_in_a_failed_transaction_are_read_again_in_the_next_ones(tmp_path: Path) -> None:
    timeline = [
        assign(10, p0=0),
        txn(1, 0, "fail", [(1, 0, B)], (0, 0, A), (0, 1, C)),
        assign(10, p0=0),
        txn(2, 0, "ok", [], (0, 0, A)),
        txn(3, 0, "ok", [], (0, 1, C)),
    ]
    assert [value for kind, value in exported(tmp_path, "list-append", *timeline) if kind != "invoke"] == [
        [["append", 0, B]],
        [["r", 1, [A]]],
        [["r", 1, [A, C]]],
    ]


def test_a_consumer_that_takes_over_has_read_what_the_former_one_read(tmp_path: Path) -> None:
    """A new consumer of the same member begins at what is committed."""
    timeline = [
        assign(10, p0=0),
        txn(1, 0, "ok", [], (0, 0, A), (0, 1, C)),
        assign(12, p0=1),
        txn(2, 2, "ok", [], (0, 1, C)),
        assign(12, p0=50),  # nobody of them had come so far: nothing is told of what follows
        txn(3, 2, "ok", [], (0, 50, D)),
    ]
    assert [value for kind, value in exported(tmp_path, "list-append", *timeline) if kind == "ok"] == [
        [["r", 0, [A, C]]],
        [["r", 0, [A, C]]],
        [],
    ]


def test_registers_are_the_last_values_of_lists(tmp_path: Path) -> None:
    timeline = [
        assign(11, p0=0),
        txn(1, 0, "ok", [(0, 0, A)]),
        txn(2, 0, "ok", [(0, 2, C)]),
        txn(3, 1, "ok", [(0, 4, D)], (0, 0, A), (0, 2, C)),
    ]
    assert [value for kind, value in exported(tmp_path, "rw-register", *timeline) if kind == "ok"] == [
        [["w", 0, A]],
        [["w", 0, C]],
        [["r", 0, C], ["w", 1, D]],
    ]


def test_polls_and_final_reads_outside_of_transactions_are_transactions_of_reads(tmp_path: Path) -> None:
    said: dict[str, Any] = {"topic": "log", "partition": 0, "offset": 0, "high_watermark": 2}
    timeline = [
        txn(1, 0, "ok", [(0, 0, A), (1, 0, B)]),
        [Event(30, Type.INVOKE, "drain", topic="log", partition=0)],
        [Event(30, Type.OK, "drain", records=(Record(0, 0, A),), extra={"complete": True}, **said)],
        [event(20, kind, "assign", positions={"1": 0}) for kind in ("invoke", "ok")],
        [event(20, "invoke", "poll"), event(20, "ok", "poll", (1, 0, B))],
    ]
    assert [value for kind, value in exported(tmp_path, "list-append", *timeline) if kind == "ok"] == [
        [["append", 0, A], ["append", 1, B]],
        [["r", 0, [A]]],
        [["r", 1, [B]]],
    ]

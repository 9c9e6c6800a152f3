"""Jepsen's histories become runs, and what Jepsen calls wrong is found in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.history.jepsen.words import Op, assign, events, imported, op, poll, polled, send
from wrackline.history import read_info
from wrackline.history.jepsen.consumers import SOMEWHERE
from wrackline.history.jepsen.imports import ImportFailed
from wrackline.history.jepsen.text import TextError
from wrackline.history.labels import CONSUMERS
from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    FAILED,
    UNKNOWN,
)


def test_sends_and_their_outcomes(tmp_path: Path) -> None:
    run_dir = imported(
        tmp_path,
        send(0, 3, 7, 0),
        send(0, 3, 8, None),
        send(0, 3, 9, None, "fail"),
        send(0, 3, 10, None, "info"),
        poll(1, {3: [[0, 7], [1, 8]]}),
    )
    said = [(row["type"], row["records"][0]["offset"]) for row in events(run_dir, "send")]
    assert said[1::2] == [
        ("ok", 0),
        ("ok", ACKED_WITHOUT_OFFSET),
        ("fail", FAILED),
        ("info", UNKNOWN),
    ]
    assert {row["records"][0]["value"] for row in events(run_dir, "send")} == {
        3 << 32 | v for v in (7, 8, 9, 10)
    }
    [poll_row] = [row for row in events(run_dir, "poll") if row["type"] == "ok"]
    assert poll_row["process"] == 1 + CONSUMERS
    assert [(r["partition"], r["offset"]) for r in poll_row["records"]] == [(3, 0), (3, 1)]
    info = read_info(run_dir)
    assert (info.topics[0].partitions, info.acks, info.idempotence) == (4, "all", True)


def test_the_final_read_is_all_polls_and_unseen_sends_are_not_judged(tmp_path: Path) -> None:
    run_dir = imported(
        tmp_path, send(0, 0, 1, 0), send(0, 0, 2, 5), poll(1, {0: [[0, 1], [1, 4]]}), poll(2, {0: [[2, 6]]})
    )
    [final] = [row for row in events(run_dir, "drain") if row["type"] == "ok"]
    assert [r["offset"] for r in final["records"]] == [0, 1, 2]
    assert final["high_watermark"] == 3
    assert final["extra"]["complete"] is True
    last = events(run_dir, "send")[-1]
    assert last["records"][0]["offset"] == 5
    assert final["extra"]["derived"]
    assert final["extra"]["unseen"] == 1
    assert any("not judged (key-0: 1)" in note for note in read_info(run_dir).notes)


def test_a_transaction_is_a_send_and_a_poll_of_one_number(tmp_path: Path) -> None:
    mops = [["send", 0, 1], ["poll"]]
    done = [["send", 0, [0, 1]], ["poll", {"0": [[0, 1]]}]]
    run_dir = imported(tmp_path, [op(0, "invoke", "txn", mops), op(0, "ok", "txn", done)])
    told = {f: [row["extra"]["txn"] for row in events(run_dir, f)] for f in ("send", "poll")}
    assert told == {"send": [0, 0], "poll": [0, 0]}


def test_assignments_say_where_a_consumer_begins(tmp_path: Path) -> None:
    run_dir = imported(
        tmp_path,
        assign(0, 0, 1),
        assign(0, 1, 2),
        assign(0, 1, begin=True),
        poll(0, {}, **{"rebalance-log": [{"keys": [2]}]}),
        send(1, 0, 1, 0),
    )
    told = [row["extra"]["positions"] for row in events(run_dir, "assign") if row["type"] == "ok"]
    assert told == [{"0": SOMEWHERE, "1": SOMEWHERE}, {"1": SOMEWHERE, "2": SOMEWHERE}, {"1": 0}]
    assert [row["extra"] for row in events(run_dir, "rebalance")] == [{"partitions": [2]}]


def positions(run_dir: Path) -> list[tuple[dict[str, int], list[int]]]:
    rows = [row["extra"] for row in events(run_dir, "assign") if row["type"] == "ok"]
    return [(extra["positions"], extra.get("revoked", [])) for extra in rows]


def test_a_new_assignment_keeps_the_positions_of_kept_partitions_only(tmp_path: Path) -> None:
    """Also where it was never assigned to it, and where it subscribes."""
    run_dir = imported(
        tmp_path,
        poll(0, {0: [[4, 1]], 1: [[7, 1]]}),
        assign(0, 0, 2),
        poll(0, {0: [[5, 2]]}),
        [op(0, kind, "subscribe", [2]) for kind in ("invoke", "ok")],
        [op(0, kind, "subscribe", [2]) for kind in ("invoke", "ok")],
    )
    assert positions(run_dir) == [({"0": 5, "2": SOMEWHERE}, [1]), ({"2": SOMEWHERE}, [0])]


def test_an_assignment_of_unknown_outcome_keeps_only_the_positions_it_leaves_alone(tmp_path: Path) -> None:
    run_dir = imported(
        tmp_path,
        poll(0, {0: [[4, 1]], 1: [[7, 1]]}),
        [op(0, kind, "assign", [0, 2]) for kind in ("invoke", "info")],
    )
    assert positions(run_dir) == [({"0": 5, "1": SOMEWHERE, "2": SOMEWHERE}, [])]


@pytest.mark.parametrize("kind", ["fail", "info"])
def test_records_polled_in_a_failed_transaction_still_count(tmp_path: Path, kind: str) -> None:
    run_dir = imported(
        tmp_path, polled(0, "txn", "ok", [0, 1]), polled(0, "txn", kind, [1, 2]), polled(0, "txn", "fail")
    )
    told = [(row["type"], row["extra"].get("aborted")) for row in events(run_dir, "poll")[1::2]]
    assert told == [("ok", None), ("ok", kind), ("fail", None)]
    assert positions(run_dir) == [({"0": 1}, [])]
    [final] = [row for row in events(run_dir, "drain") if row["type"] == "ok"]
    assert [r["offset"] for r in final["records"]] == [0, 1]
    assert final["high_watermark"] == 1, "loss is judged up to what polls that succeeded gave"


def test_a_failed_poll_outside_of_a_transaction_makes_the_position_unknown(tmp_path: Path) -> None:
    run_dir = imported(tmp_path, polled(0, "poll", "ok", [0, 1]), polled(0, "poll", "fail", [1, 2]))
    assert positions(run_dir) == [({"0": SOMEWHERE}, [])]


def test_a_failed_poll_without_records_makes_a_subscribed_position_unknown(tmp_path: Path) -> None:
    joins = [op(0, kind, "subscribe", [0]) for kind in ("invoke", "ok")]
    first, second = polled(0, "poll", "ok", [0, 1]), polled(0, "poll", "fail")
    assert positions(imported(tmp_path / "subscribed", joins, first, second)) == [({"0": SOMEWHERE}, [])]
    assert positions(imported(tmp_path / "assigned", assign(0, 0), first, second)) == [
        ({"0": SOMEWHERE}, [])
    ], "of the assignment; the poll that failed gave nothing"


def test_a_rebalance_within_a_poll_excuses_a_jump_only_if_it_gives_no_position(tmp_path: Path) -> None:
    given = {0: [[0, 1], [2, 3], [3, 4]]}
    untold = imported(tmp_path / "untold", poll(0, given, **{"rebalance-log": [{"keys": [0]}]}))
    told = [[r["offset"] for r in row["records"] or ()] for row in events(untold, "poll") if row["records"]]
    assert told == [[0], [2, 3]]
    log = [{"keys": [0], "positions": {0: 0}}]
    [whole] = [
        row
        for row in events(imported(tmp_path / "told", poll(0, given, **{"rebalance-log": log})), "poll")
        if row["records"]
    ]
    assert len(whole["records"]) == 3


def test_several_values_at_one_offset_are_all_in_the_final_read(tmp_path: Path) -> None:
    run_dir = imported(tmp_path, poll(1, {0: [[0, 3]]}), poll(1, {0: [[0, 1], [1, 3]]}))
    [final] = [row for row in events(run_dir, "drain") if row["type"] == "ok"]
    assert [(r["offset"], r["value"]) for r in final["records"]] == [(0, 1), (0, 3), (1, 3)]


def test_offsets_of_a_send_of_unknown_outcome_hold_once_one_of_its_values_is_polled(tmp_path: Path) -> None:
    two = [["send", 0, 1], ["send", 1, 2]]
    told = [["send", 0, [4, 1]], ["send", 1, [None, 2]]]
    sends = [[op(0, "invoke", "send", two), op(0, "info", "send", told)]]
    without = events(imported(tmp_path / "without", *sends), "send")[-1]
    assert [r["offset"] for r in without["records"]] == [UNKNOWN, UNKNOWN]
    seen = events(imported(tmp_path / "seen", *sends, poll(1, {1: [[0, 2]]})), "send")[-1]
    assert [r["offset"] for r in seen["records"]] == [4, UNKNOWN]


@pytest.mark.parametrize(
    ("f", "mops", "txn"),
    [
        ("txn", [["send", 0, 1], ["send", 1, 2]], {"txn": 0}),
        ("txn", [["send", 0, 1]], {"txn": 0}),
        ("send", [["send", 0, 1], ["send", 1, 2]], {"txn": 0}),
        ("send", [["send", 0, 1]], None),
    ],
)
def test_a_txn_and_a_send_of_several_records_are_transactions(
    tmp_path: Path, f: str, mops: list[Any], txn: Any
) -> None:
    run_dir = imported(tmp_path, [op(0, kind, f, mops) for kind in ("invoke", "ok")])
    assert [row["extra"] for row in events(run_dir, "send")] == [txn, txn]


def test_rebalances_not_in_the_log_leave_no_position_in_a_group_of_two(tmp_path: Path) -> None:
    def joined(*processes: int) -> list[Op]:
        return [op(p, kind, "subscribe", [0]) for p in processes for kind in ("invoke", "ok")]

    alone = imported(tmp_path / "alone", joined(0), poll(0, {0: [[0, 1]]}), poll(0, {0: [[2, 3]]}))
    assert events(alone, "rebalance") == []
    two = imported(tmp_path / "two", joined(0, 1), poll(0, {0: [[0, 1]]}), poll(0, {0: [[2, 3]]}))
    assert [row["extra"] for row in events(two, "rebalance")] == [{"partitions": [0]}] * 2
    log = {"rebalance-log": [{"keys": [0]}]}
    told = imported(tmp_path / "told", joined(0, 1), poll(0, {0: [[0, 1]]}, **log), poll(0, {0: [[2, 3]]}))
    assert len(events(told, "rebalance")) == 1


def test_imported_faults_have_all_phases_and_no_proof(tmp_path: Path) -> None:
    nemesis = [
        op("nemesis", "info", f, "majority") for f in ("start-partition",) * 2 + ("stop-partition",) * 2
    ]
    nemesis += [op("nemesis", "info", f, ["n1"]) for f in ("kill", "kill", "start", "start")]
    run_dir = imported(tmp_path, nemesis, send(0, 0, 1, 0))
    phases = {
        f: [(row["extra"]["id"], row["extra"]["phase"]) for row in events(run_dir, f)]
        for f in ("partition", "kill")
    }
    assert [phase for _, phase in phases["partition"]] == ["begin", "active", "undo", "ended"]
    assert [phase for _, phase in phases["kill"]] == ["begin", "active", "undo", "ended"]
    assert len({fault for rows in phases.values() for fault, _ in rows}) == 2
    assert all(row["extra"]["proved"] is None for row in events(run_dir, "kill"))


def test_keys_and_values_that_are_no_numbers_get_one(tmp_path: Path) -> None:
    run_dir = imported(
        tmp_path, send(0, "x", "a", 0), send(0, "y", "a", 0), poll(1, {"x": [[0, "a"]], "y": [[0, "a"]]})
    )
    sent = [
        (row["records"][0]["partition"], row["records"][0]["value"]) for row in events(run_dir, "send")[1::2]
    ]
    assert sent[0][0] != sent[1][0]
    assert sent[0][1] != sent[1][1]
    [row] = [row for row in events(run_dir, "poll") if row["type"] == "ok"]
    assert [(r["partition"], r["value"]) for r in row["records"]] == sent


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        ([op(0, "invoke", "read", None), op(0, "ok", "read", 3)], "only histories of Jepsen's Kafka"),
        ([op(0, "ok", "send", [["send", 0, [0, 1]]])], "operation 1: .*completes what it never invoked"),
        ([op(0, "invoke", "send", 3)], "operation 1: no operation of Jepsen's"),
        ([{"type": "invoke", "f": "send"}], "operation 1 has no :process"),
        ([{"process": 0, "f": "send"}], "operation 1: :type is nil"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, ops: list[Op], said: str) -> None:
    with pytest.raises((ImportFailed, TextError), match=said):
        imported(tmp_path, ops)
    assert not list((tmp_path / "results").glob("*/history.parquet"))

"""Each step of the language of cases becomes operations, and what is no case is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from wrackline.checkers.cases.language import CaseError, parse
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN, Type


def test_a_case_is_a_history() -> None:
    case = parse("p: a@0 b? | q: (c@1/? | c: from 0 1/5 | c: got a@0^3 | e: end 1/2 | final a@0 to 2 short")
    kinds = [(event.process, event.type, event.f) for event in case.events]
    assert kinds == [
        *((1, Type.INVOKE, "send"), (1, Type.INFO, "send"), (2, Type.INVOKE, "send")),
        *((3, Type.INVOKE, "assign"), (3, Type.OK, "assign"), (3, Type.INVOKE, "poll"), (3, Type.OK, "poll")),
        *((4, Type.INVOKE, "end"), (4, Type.OK, "end"), (900, Type.INVOKE, "drain"), (900, Type.OK, "drain")),
    ]
    a, b, c = (r.value for event in (case.events[0], case.events[2]) for r in event.records)
    assert [(r.partition, r.offset, r.value) for r in case.events[1].records] == [(0, 0, a), (0, UNKNOWN, b)]
    assert [(r.partition, r.value) for r in case.events[2].records] == [(1, c)]
    assert case.events[4].extra == {"positions": {"0": 0, "1": 5}}
    assert case.events[6].records[0].leader_epoch == 3
    assert (case.events[8].partition, case.events[8].high_watermark) == (1, 2)
    assert (case.events[10].high_watermark, case.events[10].extra) == (
        2,
        {"positions": {"0": 1}, "asked": True},
    )
    assert case.info.topics[0].partitions == 2


def test_a_step_may_be_of_another_topic() -> None:
    case = parse(
        "p: a@0 | q: b@log-1-0/0 c@log-1-0/1 | r: from log-1-2/1 | r: got c@log-1-0/1 | s: end log-1-0/2 "
        "| final a@0 | final log-1-1/ | n1 holds b@log-1-0/0"
    )
    assert {event.topic for event in case.events if event.process in (1, 900)} == {"log"}
    assert {event.topic for event in case.events if event.process not in (1, 900)} == {"log-1"}
    assert [(one.name, one.partitions) for one in case.info.topics] == [("log", 1), ("log-1", 3)]
    assert [event.partition for event in case.events if event.f == "drain"] == [0, 0, 1, 1]
    with pytest.raises(CaseError, match="an event is of one topic, not of log-1 and other"):
        parse("p: a@log-1-0/0 b@other-0/1")


def test_outcomes_make_the_type_of_an_operation() -> None:
    case = parse("p: a@0 b+ | q: a2! b2! | r: a3! b3@1 | s: a4?")
    done = [event for event in case.events if event.type is not Type.INVOKE]
    assert [event.type for event in done] == [Type.OK, Type.FAIL, Type.INFO, Type.INFO]
    codes = Counter(r.offset for event in done for r in event.records)
    assert codes == {0: 1, 1: 1, ACKED_WITHOUT_OFFSET: 1, FAILED: 3, UNKNOWN: 1}


def test_what_nobody_told_is_left_out() -> None:
    case = parse("p: (a | p: ) | final a@0^- b@1 | n2 holds b@1 from 1")
    invoked, completed, _, final, held = case.events
    assert (completed.process, completed.type, completed.records) == (invoked.process, Type.INFO, ())
    assert [record.leader_epoch for record in final.records] == [-1, 0]
    assert (held.offset, held.high_watermark) == (1, 2)


def test_groups_and_transactions() -> None:
    case = parse(
        "c: gen 2 from 1 1/? | c: commit 3 1/5 gen 1 ! | d: (commit 4 in h | o: committed 3 1/none "
        "| p: (txn 7 a b@1/? got | p: txn 7 a@0 b@1/0 got a@0) | q: txn 8 c! got"
    )
    extras = [(event.f, str(event.type), event.extra) for event in case.events]
    of_c = {"group": "g", "member": "m1", "generation": 2}
    assert extras[0] == ("rebalance", "ok", of_c | {"partitions": [0, 1], "positions": {"0": 1}})
    refused = of_c | {"generation": 1, "offsets": {"0": 3, "1": 5}}
    assert extras[1:3] == [("commit", "invoke", refused), ("commit", "fail", refused)]
    assert extras[3] == ("commit", "invoke", {"group": "h", "offsets": {"0": 4}})
    assert extras[5] == ("committed", "ok", {"group": "g", "offsets": {"0": 3, "1": -1}})
    assert [(f, kind) for f, kind, _ in extras[6:]] == [
        *(("send", "invoke"), ("poll", "invoke"), ("send", "ok"), ("poll", "ok")),
        *(("send", "invoke"), ("poll", "invoke"), ("send", "fail"), ("poll", "fail")),
    ]
    assert [extra for _, _, extra in extras[6:]] == [{"txn": 7}] * 4 + [{"txn": 8}] * 4
    sender, consumer = case.events[6].process, case.events[7].process
    assert {case.events[at].process for at in (6, 8)} == {sender} != {consumer}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a@0", "neither"),
        ("p:", "does nothing"),
        ("p: a@x", "'a@x' is no record"),
        ("c: got a", "so it has an offset"),
        ("e: end", "wants one offset"),
        ("e: end x", "'x' is no offset"),
        ("c: commit", "an offset must follow"),
        ("c: commit 3 in", "a group's name must follow 'in'"),
        ("o: committed x", "'x' is no offset"),
        ("c: gen x", "a number must follow 'gen'"),
        ("p: txn 1 got", "a transaction sends something"),
        ("final a@0 to", "a number must follow 'to'"),
    ],
)
def test_nonsense_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message) as wrong:
        parse(f"p: ok@0 | {text}")
    assert "\n" not in str(wrong.value)

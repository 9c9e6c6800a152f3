"""What decides between a finding and none, where the language of cases has no words for it: commits that are
held back, members that subscribe, offsets of transactions, owners in KIP-848."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.checkers.anomalies.groups.explainer import NOBODY, Step, can_be, events_of
from tests.checkers.anomalies.groups.walked import findings_of, walk_of
from tests.checkers.histories import info
from wrackline.checkers.cases.language import parse
from wrackline.proving.model.made import write_events

A, B = Step("told", "A", 1, 0), Step("told", "B", 2, 0)
COMMIT, OK, UNKNOWN = Step("commit", "A", 1, 1, 0), Step("ok", number=0), Step("info", number=0)
LATER = replace(COMMIT, is_async=True)
NOBODYS = replace(COMMIT, generation=NOBODY)
ASK, ONE, NOTHING = Step("ask", number=9), Step("answer", offset=1, number=9), Step("answer", number=9)
JOIN = Step("join", "B")
ASK_AGAIN, ONE_AGAIN, NOTHING_AGAIN = (replace(one, number=8) for one in (ASK, ONE, NOTHING))
MORE, MORE_OK = Step("commit", "B", 2, 3, 5), Step("ok", number=5)

RULES = {
    "a fenced member asks for a commit": (
        [A, B, COMMIT, UNKNOWN, ASK, ONE],
        [A, B, COMMIT, UNKNOWN, ASK, NOTHING],
    ),
    "a commit that is held back may be one of a later generation": (
        [A, COMMIT, OK, B],
        [A, LATER, OK, B, Step("told", "A", 3, 1)],
    ),
    "a commit that never completed may be sent again": (
        [A, COMMIT, B, MORE, MORE_OK, ASK, ONE],
        [A, COMMIT, B, MORE, MORE_OK, Step("told", "A", 3, 3), ASK, ONE],
    ),
    "an answer shows that a commit took effect, and later ones that it did not": (
        [A, COMMIT, UNKNOWN, ASK, ONE, ASK_AGAIN, NOTHING_AGAIN],
        [A, COMMIT, UNKNOWN, ASK, NOTHING, ASK_AGAIN, ONE_AGAIN],
    ),
    "answers that overlap may come in any order": (
        [A, COMMIT, UNKNOWN, ASK, ONE, ASK_AGAIN, NOTHING_AGAIN],
        [A, COMMIT, UNKNOWN, ASK_AGAIN, ASK, ONE, NOTHING_AGAIN],
    ),
    "who begins must know a commit that an answer has shown": (
        [A, COMMIT, UNKNOWN, ASK, ONE, B],
        [A, COMMIT, UNKNOWN, B, ASK, NOTHING],
    ),
    "who begins need not know one that may have been sent when it had begun": (
        [A, COMMIT, UNKNOWN, ASK, ONE, B],
        [ASK, A, COMMIT, ONE, replace(A, generation=2)],
    ),
    "an answer that two commits account for shows neither of them": (
        [
            A,
            replace(MORE, member="A", generation=1),
            MORE_OK,
            COMMIT,
            UNKNOWN,
            ASK,
            ONE,
            ASK_AGAIN,
            replace(ONE_AGAIN, offset=3),
        ],
        [
            *(A, COMMIT, OK, replace(COMMIT, offset=3, number=5), MORE_OK),
            *(replace(COMMIT, number=6), replace(UNKNOWN, number=6), replace(COMMIT, number=7), ASK, ONE),
            *(replace(COMMIT, offset=3, number=4), replace(OK, number=4), ASK_AGAIN, ONE_AGAIN),
        ],
    ),
    "who subscribes after a commit must know it": ([A, NOBODYS, OK, JOIN, B], [A, NOBODYS, JOIN, OK, B]),
    "a fenced member's asynchronous commit": (
        [A, B, LATER, OK],
        [A, B, LATER, OK, Step("told", "A", 3, 1)],
    ),
}


@pytest.mark.parametrize("protocol", ["eager", "consumer"])
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_parts_what_cannot_be_from_what_can(rule: str, protocol: str) -> None:
    bad, good = RULES[rule]
    if can_be(bad, protocol):
        pytest.skip(f"{protocol} allows it")
    assert can_be(good, protocol)
    assert findings_of(events_of(bad, protocol), info())
    assert not findings_of(events_of(good, protocol), info())


def test_only_the_owner_is_fenced_where_members_have_epochs() -> None:
    """Another member's commit, of what it never had, is refused by nobody's arrival."""
    stranger = replace(COMMIT, member="C")
    steps = [A, Step("told", "C", 1, owns=False), stranger, B, OK]
    assert not findings_of(events_of(steps, "consumer"), info())
    assert findings_of(events_of([A, COMMIT, B, OK], "consumer"), info())


def test_a_member_is_not_fenced_by_itself() -> None:
    steps = [A, COMMIT, Step("told", "A", 2, 0), OK]
    assert not findings_of(events_of(steps, "eager"), info())


@pytest.mark.parametrize(("isolation", "expected"), [("read_committed", 1), ("read_uncommitted", 0), ("", 0)])
def test_offsets_of_a_transaction_are_waited_for_at_read_committed(
    isolation: str, expected: int, tmp_path: Path
) -> None:
    case = parse("p: a@0 | c: gen 1 from 0 | c: got a@0 | k: commit 1 gen 1 txn 1 | d: gen 2 from 0", "case")
    run = write_events(tmp_path / "run", replace(case.info, isolation=isolation), case.events)
    assert [one["anomaly"] for one in walk_of(run)[0]] == ["forgotten-commit"] * expected


@pytest.mark.parametrize(("final", "expected"), [("b@1 c@2 from 1", ["zombie-commit"]), ("c@2 from 2", [])])
def test_who_begins_behind_what_was_deleted_proves_nothing(
    final: str, expected: list[str], tmp_path: Path
) -> None:
    text = "p: a@0 b@1 c@2 | c: gen 1 from 0 | c: got a@0 b@1 | c: (commit 1 | d: gen 2 from 2 | c: commit 1)"
    case = parse(f"{text} | final {final}", "case")
    run = write_events(tmp_path / "run", case.info, case.events)
    assert [one["anomaly"] for one in walk_of(run)[0]] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c: gen 1 from 0 | c: got a@0 at 2 | c: got b@1 at 3", [(2, 4)]),
        ("c: gen 1 from 0 | c: got a@0 at 3", [(1, 2), (2, 2)]),
        ("c: gen 1 from 0 | c: got a@0 at 3 | c: got b@1 at 2", []),
        ("c: gen 1 from 0 | c: got a@0 at 2 | c: gen 2 | c: got b@1", [(1, 2)]),
        ("c: gen 1 from ? | c: got at 3", []),
        ("z: gen 1 from 3 | c: from 0 | c: got a@0 at 3", []),
        ("c: from 0 in g | c: got a@0 at 2", [(1, 3)]),
    ],
)
def test_a_position_passes_what_nobody_gave(
    text: str, expected: list[tuple[int, int]], tmp_path: Path
) -> None:
    """(offset, and which event after the send is the poll that first says so)."""
    case = parse(f"p: a@0 b@1 c@2 | {text} | final a@0 b@1 c@2", "case")
    found, _ = walk_of(write_events(tmp_path / "run", case.info, case.events))
    assert {one["anomaly"] for one in found} <= {"position-skip"}
    assert [(one["offset"], one["operations"][0] - 2) for one in found] == expected

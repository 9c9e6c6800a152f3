"""Forms of the anomalies of transactions, and what looks like one and is none: what the walk finds of each,
with
``where``, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.checkers.anomalies.transactions.walked import walked
from tests.checkers.cases import Case, all_cases
from wrackline.checkers.anomalies.transactions import TRANSACTIONS
from wrackline.checkers.cases.language import parse
from wrackline.checkers.checks.registry import checks

MINE = {one.name for one in checks() if one.walk is TRANSACTIONS}
FORMS = {
    "an abort that failed, where no transactional id is on record": (
        "p: txn 1 a? abort | final a@0",
        ["aborted-read abort failed"],
    ),
    "an end that nobody asked for, where one is": (
        "p: txn 1 by x a? | final a@0",
        ["aborted-read abort failed"],
    ),
    "an end that nobody wrote down": ("p: txn 1 a? | final a@0", []),
    "a transaction that was aborted is no torn one": ("p: txn 1 a! b! abort | final a@0 to 2", []),
    "a record below the beginning of the log": (
        "p: txn 1 a@0 b@1/0 commit | final from 1 | final b@1/0",
        [],
    ),
    "the order of lost records is no cycle": (
        "p: (txn 1 a b@1/? | q: (txn 2 c d@1/? | p: txn 1 a@0 b@1/1) | q: txn 2 c@1 d@1/0) | final a@0 c@1 "
        "| final 1/ to 2",
        ["torn-transaction committed", "torn-transaction committed"],
    ),
    "a commit that had succeeded before accounts for no answer": (
        "q: z@0 | d: commit 2 | p: txn 1 a? commit | c: commit 1 txn 1 ? | o: committed 2 stable "
        "| final z@0 a@1",
        ["torn-transaction records"],
    ),
    "a commit at the same time may have come later": (
        "q: z@0 | p: txn 1 a? commit | c: (commit 1 txn 1 | d: commit 2 | c: commit 1 txn 1 ?) "
        "| o: committed 2 stable | final z@0 a@1",
        [],
    ),
    "an answer that does not wait for ends": (
        "q: z@0 | p: txn 1 a? commit | c: commit 1 txn 1 ? | o: committed none | final z@0 a@1",
        [],
    ),
    "what was given itself too early hides what lies behind it": (
        "p: (txn 1 a b | q: d@2 | c: from 0 | c: got a@0 | e: from 2 | e: got d@2 | p: txn 1 a@0 b@1 commit) "
        "| final a@0 b@1 d@2",
        ["precommitted-read before its end"],
    ),
    "behind a transaction that was never committed": (
        "p: (txn 1 a | q: b@1 | c: from 1 | c: got b@1 | p: txn 1 a? abort) | final a@0 b@1",
        ["aborted-read abort failed"],
    ),
    "what was behind it is not there in the end": (
        "p: (txn 1 a | q: (b | r: (d | c: from 1 | c: got b@1 | p: txn 1 a@0 commit) | final a@0 d@1",
        [],
    ),
    "answers at the same time tell no order": (
        "q: z@0 | p: txn 1 by x a? commit | c: commit 1 txn 1 ? | q: (txn 2 by x b | o: (committed "
        "| r: (committed | o: committed none stable) | r: committed 1) | q: txn 2 b@1 commit) "
        "| final z@0 b@1 short",
        [],
    ),
    "the next one of another transactional id fences nobody": (
        "p: (txn 1 by x a | q: (txn 2 by y b | p: txn 1 a@0 commit) | q: txn 2 b@1 commit) | final a@0 b@1",
        [],
    ),
    "a fenced transaction that nothing is seen of": (
        "p: (txn 1 by x a | q: txn 2 by x b@0 commit | p: txn 1 a? commit) | final b@0",
        [],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_is_found_of_a_form(name: str) -> None:
    text, expected = FORMS[name]
    case = parse(text)
    found = [f"{row['anomaly']} {row['where'] or ''}".strip() for row in walked(case.info, case.events)]
    assert sorted(found) == sorted(expected)


def _cases() -> list[Case]:
    return [case for case in all_cases() if any("txn" in (event.extra or {}) for event in case.events)]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case.info.test_id)
def test_the_cases_of_all_checks(case: Case) -> None:
    found = Counter(row["anomaly"] for row in walked(case.info, case.events) if row["anomaly"] in MINE)
    assert found == {name: count for name, count in case.expected.items() if name in MINE}

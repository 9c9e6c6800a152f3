"""Cases in a line: for every anomaly one history that has it, and its nearest neighbour that has not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkers.proving.language import CaseError, parse
from checkers.proving.made import write_events
from checkers.proving.mutations import closure
from harness.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN, Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1_800)
"""All histories are judged at once, in the first test that asks for it."""

# anomaly: (bad, what else follows in this very case, good)
PAIRS: dict[str, tuple[str, set[str], str]] = {
    "lost-write": (
        "p: a@0 | p: b@1 | final a@0",
        set(),
        "p: a@0 | p: b? | final a@0",
    ),
    "vanished-read": (
        "p: (a | q: (b | c: from 0 | c: got a@0 b@1 | final a@0",
        set(),
        "p: (a | q: (b | c: from 0 | c: got a@0 b@1 | final a@0 to 2 short",
    ),
    "lost-on-replica": (
        "p: a@0 | final a@0 | n1 holds a@0 | n2 holds",
        set(),
        "p: a@0 | final a@0 | n1 holds a@0 | n2 holds out",
    ),
    "inconsistent-offset": (
        "p: (a | q: (b | c: from 0 | c: got a@0 | d: from 0 | d: got b@0",
        set(),
        "p: (a | q: (b | c: from 0 | c: got a@0 | d: from 0 | d: got a@0 b@1",
    ),
    "replica-divergence": (
        "p: (a | q: (b | n1 holds a@0 | n2 holds b@0",
        set(),
        "p: (a | q: (b | n1 holds a@0 | n2 holds b@0 hw 0",
    ),
    "duplicate": (
        "p: a@0 | final a@0 a@1",
        set(),
        "p: a@0 | q: b@1 | final a@0 b@1",
    ),
    "batch-order": (
        "p: a@1 b@0 | final b@0 a@1",
        set(),
        "p: a@0 b@1 | final a@0 b@1",
    ),
    "aborted-read": (
        "p: a! | final a@0",
        set(),
        "p: a? | final a@0",
    ),
    "phantom": (
        "p: a@0 | final a@0 z@1",
        set(),
        "p: a@0 | q: (z | final a@0 z@1",
    ),
    "misrouted": (
        "p: (a | q: (b@1/? | final a@0 b@1",
        set(),
        "p: (a | q: (b@1/? | final a@0 | final b@1/0",
    ),
    "corrupt": (
        "p: (a | c: from 0 | c: got #@0",
        set(),
        "p: (a | c: from 0 | c: got a@0",
    ),
    "epoch-order": (
        "p: a@0 b@1 | final a@0^2 b@1^1",
        set(),
        "p: a@0 b@1 | final a@0^1 b@1^2",
    ),
    "append-order": (
        "p: a@1 | q: b@0 | final b@0 a@1",
        set(),
        "p: (a | q: b@0 | p: a@1) | final b@0 a@1",
    ),
    "session-order": (
        "p: a@1 | p: b@0 | final b@0 a@1",
        set(),
        "p: b@0 | p: a@1 | final b@0 a@1",
    ),
    "poll-skip": (
        "p: a@0 b@1 c@2 | k: from 0 | k: got a@0 c@2",
        set(),
        "p: a@0 b@1 c@2 | k: from 0 | k: got a@0 | k: from 2 | k: got c@2",
    ),
    "poll-rewind": (
        "p: a@0 b@1 | c: from 0 | c: got a@0 b@1 | c: got b@1",
        set(),
        "p: a@0 b@1 | c: from 0 | c: got a@0 b@1 | c: from 1 | c: got b@1",
    ),
    "stale-read": (
        "p: a@0 | p: b@1 | e: end 1 | final a@0 b@1",
        set(),
        "p: a@0 | e: (end 0 | p: b@1 | e: end 1) | final a@0 b@1",
    ),
    "future-read": (
        "c: from 0 | c: got a@0 | p: a@0 | final a@0",
        set(),
        "c: from 0 | p: (a | c: got a@0 | p: a@0) | final a@0",
    ),
    "watermark-regression": (
        "p: (a | q: (b | e: end 2 | e: end 1 | final a@0 b@1",
        set(),
        "p: (a | q: (b | e: (end 0 | f: end 2 | e: end 1) | final a@0 b@1",
    ),
    "not-linearizable": (
        "p: a@0 | e: end 2",
        set(),
        "p: a@0 | q: (b | e: end 2",
    ),
}


@pytest.fixture(scope="module")
def anomalies(
    spark: SparkSession,  # noqa: ARG001 - one session for all tests of the judge
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, set[str]]:
    from checkers.analysis import analyze

    folder: Path = tmp_path_factory.mktemp("language")
    runs = []
    for anomaly, (bad, _, good) in PAIRS.items():
        for name, text in (("bad", bad), ("good", good)):
            case = parse(text, f"{name} {anomaly}")
            runs.append(write_events(folder / case.test_id, case.info, case.events))
    return {
        run.name: {one["anomaly"] for one in verdict["anomalies"] if one["count"]} - {"unproven-write"}
        for run, verdict in zip(runs, analyze(runs), strict=True)
    }


@pytest.mark.spark
@pytest.mark.parametrize("anomaly", PAIRS)
def test_one_has_it_its_neighbour_has_not(anomaly: str, anomalies: dict[str, set[str]]) -> None:
    assert anomalies[f"bad {anomaly}"] == closure({anomaly, *PAIRS[anomaly][1]})
    assert anomalies[f"good {anomaly}"] == set()


def test_every_check_has_a_pair() -> None:
    from checkers.registry import names

    of_transactions_and_groups = {
        *("write-cycle", "read-cycle"),
        *("commit-regression", "commit-beyond-end", "group-skip", "zombie-commit"),
    }  # the language has no words for them: cases.py has histories
    assert PAIRS.keys() == set(names()) - of_transactions_and_groups


# --- the language itself -------------------------------------------------------------------------------------


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
    assert (case.events[10].high_watermark, case.events[10].extra) == (2, {})
    assert case.info.topics[0].partitions == 2


def test_outcomes_make_the_type_of_an_operation() -> None:
    case = parse("p: a@0 b+ | q: a2! b2! | r: a3! b3@1 | s: a4?")
    done = [event for event in case.events if event.type is not Type.INVOKE]
    assert [event.type for event in done] == [Type.OK, Type.FAIL, Type.INFO, Type.INFO]
    codes = Counter(r.offset for event in done for r in event.records)
    assert codes == {0: 1, 1: 1, ACKED_WITHOUT_OFFSET: 1, FAILED: 3, UNKNOWN: 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a@0", "neither"),
        ("p:", "does nothing"),
        ("p: a@x", "'a@x' is no record"),
        ("c: got a", "so it has an offset"),
        ("e: end", "wants one offset"),
        ("e: end x", "'x' is no offset"),
        ("final a@0 to", "a number must follow 'to'"),
    ],
)
def test_nonsense_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message) as wrong:
        parse(f"p: ok@0 | {text}")
    assert "\n" not in str(wrong.value)

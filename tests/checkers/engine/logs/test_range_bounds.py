"""What a range of offsets knows of those above and below it."""

from __future__ import annotations

from dataclasses import replace

from wrackline.checkers.checks.registry import marks
from wrackline.checkers.engine.candidates import Entry, Proof, SentBelow
from wrackline.checkers.engine.context import Context, context_of
from wrackline.checkers.engine.facts import Summary
from wrackline.checkers.engine.logs.range_bounds import below_of, bounds
from wrackline.checkers.inputs.table import NONE

LOG = 7


def context() -> Context:
    return context_of([], marks())


def summary(part: int, **known: Proof[int] | Entry[int] | SentBelow[int] | int) -> Summary[int]:
    return replace(Summary[int].all(NONE), log=LOG, part=part, gaps=0, **known)  # type: ignore[arg-type]


def test_a_proof_by_the_final_read_is_not_its_lowest_record() -> None:
    """The proof names the largest offset that the event showed; what lies next above is another record."""
    proof, lowest = Proof(index=5, ns=50, offset=70, value=1), Entry(offset=50, value=2, index=6)
    known, _, _ = bounds([summary(0), summary(1, by_final=proof, low_final=lowest)], context())
    assert known[LOG, 0].proofs.by_final == proof
    assert known[LOG, 0].low_final == lowest
    assert (LOG, 1) not in known


def test_the_earliest_proof_above_counts_and_the_highest_where_they_are_equal() -> None:
    first, second, third = (Proof(index, 0, offset, 0) for index, offset in ((4, 30), (4, 20), (3, 10)))
    summaries = [summary(3, by_ack=first), summary(2, by_ack=second), summary(1, by_ack=third), summary(0)]
    known, _, _ = bounds(summaries, context())
    assert [known[LOG, part].proofs.by_ack for part in (2, 1, 0)] == [first, first, third]


def test_a_range_with_a_later_claim_than_a_proof_above_is_judged_again() -> None:
    above = summary(1, by_end=Proof(4, 0, 200, NONE))
    for last_claim, late in ((3, set()), (5, {(LOG, 0)})):
        assert bounds([summary(0, last_claim=last_claim), above], context())[1] == late


def test_of_the_ranges_below_the_record_sent_last_counts() -> None:
    early, late = (SentBelow(index, 0, index + 1, 0, offset, 0) for index, offset in ((1, 5), (9, 3)))
    known = below_of([summary(0, below=late), summary(1, below=early), summary(2)])
    assert known == {(LOG, 1): late, (LOG, 2): late}

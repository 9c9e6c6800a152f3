"""The tally gives the progress line and the wait for a warm load their figures."""

from __future__ import annotations

from wrackline.history.model import ABORTED_ON_PURPOSE, CRASHED_ON_PURPOSE, Event, Type
from wrackline.workloads.log.tally import Tally


def test_a_transaction_that_was_to_be_aborted_or_to_crash_is_done() -> None:
    tally = Tally()
    tally.count(Event(1, Type.INVOKE, "send"))
    for kind, error in (
        (Type.OK, None),
        (Type.FAIL, ABORTED_ON_PURPOSE),
        (Type.FAIL, "_TIMED_OUT"),
        (Type.INFO, "_TIMED_OUT"),
        (Type.INFO, CRASHED_ON_PURPOSE),
    ):
        tally.count(Event(1, kind, "send", error=error))
    counts = tally.counts()
    assert (counts.fail, counts.done, counts.operations) == (2, 3, 5)


def test_what_comes_along_with_a_transaction_is_not_what_the_rate_asks_for() -> None:
    tally = Tally()
    for f, extra in (
        ("send", {"txn": 1}),
        ("poll", {"txn": 1}),
        ("commit", {"txn": 1}),
        ("poll", {}),
        ("assign", {}),
        ("committed", {}),
    ):
        tally.count(Event(1, Type.OK, f, extra=extra))
    counts = tally.counts()
    assert (counts.done, counts.operations) == (2, 6)

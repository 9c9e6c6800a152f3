"""A check: writes that were acknowledged late.

The mark is a test of candidates in numpy, and the check a generator of findings. Both run wherever the rows
are, in Spark's workers too, so they are functions of a module. The check is called only where there are
marked rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from wrackline.api import Bools, Finding, Places, Promise, Rows, apart, bools, check, is_place, mark

SLOW_NS = 500_000_000


def _slow(rows: Rows) -> Bools:
    """A place in the log whose send was acknowledged half a second after it was invoked, or later."""
    return bools(is_place(rows) & (rows.acked == 1) & (rows.complete_ns - rows.invoke_ns > SLOW_NS))


SLOW = mark("slow-write", _slow)


@check(
    "slow-write",
    "latency",
    "–",
    "a write was acknowledged half a second after it was sent, or later",
    breaks=Promise.LINEARIZABLE_READS,
    marks=[SLOW],
)
def slow_write(at: Places) -> Iterator[Finding]:
    """``breaks``: contracts judge it as they do a stale read: reported, and forbidden with
    +linearizable-reads."""
    for c in at.each(SLOW):
        sent, acked = apart(c.invoke_ns, c.complete_ns)
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index],
            sentence=f"Value {at.run.value(c.value)}, which is at offset {c.offset:,} of {at.log}, was sent "
            f"at {sent} and acknowledged only at {acked}",
            since_ns=c.invoke_ns,
            until_ns=c.complete_ns,
        )

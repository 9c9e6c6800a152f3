"""A check: writes that were acknowledged late.

The mark is a test of candidates in numpy that runs wherever the rows are, in Spark's workers too, so it is a
function of a module. The check says what the marked rows mean, and is planned only where there are any.
"""

from __future__ import annotations

from wrackline.api import (
    Bools,
    Evidence,
    Findings,
    Promise,
    Rows,
    Window,
    apart,
    bools,
    check,
    findings,
    having,
    is_place,
    mark,
    place,
    say,
    value_label,
)

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
def slow_write(evidence: Evidence) -> Findings:
    """``breaks``: contracts judge it as they do a stale read: reported, and forbidden with
    +linearizable-reads."""
    rows = having(evidence, SLOW)
    c = rows.c
    sent, acked = apart(c.invoke_ns, c.complete_ns)
    return findings(
        rows,
        "slow-write",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index],
        sentence=say(
            "Value %s, which is at offset %,d of %s, was sent at %s and acknowledged only at %s",
            *(value_label(c.value), c.offset, place(c), sent, acked),
        ),
        around=Window(c.invoke_ns, c.complete_ns),
    )

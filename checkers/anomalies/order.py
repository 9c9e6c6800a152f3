"""Order (docs/anomalies.md section 3): of sends against real time and within a process, and of what a
consumer is given.

The order of sends is judged in the final read: a record that is gone from it was lost, which is reported as
that, and its offset is used again by records sent later.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import (
    Window,
    findings,
    having,
    place,
    process_label,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER, By, ExplainedBy, Spelt
from wrackline.checkers.anomalies.keys import uncompacted_only
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.engine.candidates import Candidate, Proof, SendOutcome, is_astray, is_kept, lt
from wrackline.checkers.engine.frames import packed, unpacked
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.engine.tables import CandidateOfRun, Partition
from wrackline.checkers.inputs.arrays import Bools, Ints, bools
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise


def out_of_order(rows: Candidate[Ints]) -> Bools:
    return bools(is_kept(rows) & lt(rows.by_settled_ack.index, rows.invoke_index))


def _process_out_of_order(rows: Candidate[Ints]) -> Bools:
    return bools(out_of_order(rows) & (rows.acked == 1) & lt(rows.offset, rows.earlier.offset))


def _before_what_was_acked(rows: Candidate[Ints], _: Unfilled) -> Bools:
    """At the very offset that had been acked it is an inconsistent-offset."""
    return bools(out_of_order(rows) & (rows.by_settled_ack.offset != rows.offset))


OUT_OF_ORDER = mark("out of order", out_of_order, _before_what_was_acked)
OUT_OF_SESSION = mark("out of session", _process_out_of_order)
ASTRAY = mark("astray", by_value=Alone(is_astray))
SHUFFLED = mark("shuffled")
JUMPED = mark("jumped")
REWOUND = mark("rewound")


def _acked_at(c: CandidateOfRun) -> Column:
    """ ", which was acknowledged at 1.234 s", where it was."""
    acked = say(", which was acknowledged at %s", seconds(c.complete_ns))
    unsure = c.outcome.isNotNull() & (c.outcome != SendOutcome.ACKED)
    return F.when(unsure | c.complete_ns.isNull(), ", whose outcome is unknown").otherwise(acked)


@dataclass(frozen=True, slots=True)
class _Sent(Table[Column]):
    """A send, and the earliest acknowledgement that names a larger offset."""

    invoke_index: Column
    invoke_ns: Column
    complete_index: Column
    complete_ns: Column
    final_index: Column
    kept_index: Column
    acked: Proof[Column]


@dataclass(frozen=True, slots=True)
class _Place(Partition):
    offset: Column
    value: Column


@check(
    "append-order",
    Family.ORDER,
    "G0-realtime",
    "one send completed before another was invoked, yet has the larger offset",
    breaks=Promise.ALWAYS,
    marks=[OUT_OF_ORDER],
)
def append_order(evidence: Evidence) -> Findings:
    """Once for each place."""
    marked = having(evidence, OUT_OF_ORDER)
    c = marked.c
    about = _Sent(
        invoke_index=c.invoke_index,
        invoke_ns=c.invoke_ns,
        complete_index=c.complete_index,
        complete_ns=c.complete_ns,
        final_index=c.final_index,
        kept_index=c.kept_index,
        acked=c.by_settled_ack,
    )
    first = F.min_by(packed(about), F.struct(c.by_settled_ack.index, c.by_settled_ack.offset))
    rows = marked.grouped(
        _Place(c.run, c.log, c.topic, c.partition, c.offset, c.value), unpacked(_Sent, first)
    )
    at, sent = rows.c
    return findings(
        rows,
        "append-order",
        at=at,
        offset=at.offset,
        value=at.value,
        operations=[
            sent.invoke_index,
            sent.complete_index,
            sent.final_index,
            sent.kept_index,
            sent.acked.index,
        ],
        sentence=say(
            "Value %s had been acknowledged at %s, and it is at offset %,d of %s; value %s was sent after "
            "that, at %s, but it lies before the other, at offset %,d",
            *(value_label(sent.acked.value), seconds(sent.acked.ns), sent.acked.offset, place(at)),
            *(value_label(at.value), seconds(sent.invoke_ns), at.offset),
        ),
        around=Window(sent.acked.ns, F.coalesce(sent.complete_ns, sent.invoke_ns)),
    )


@check(
    "session-order",
    Family.ORDER,
    "nonmonotonic-send",
    "a later send of one process has the smaller offset",
    breaks=Promise.IDEMPOTENCE,
    marks=[OUT_OF_SESSION],
)
def session_order(evidence: Evidence) -> Findings:
    """A process that goes on has its earlier sends acknowledged, so this is a part of append-order."""
    rows = having(evidence, OUT_OF_SESSION)
    c = rows.c
    sent_at = F.when(c.invoke_ns.isNotNull(), say(", at %s", seconds(c.invoke_ns))).otherwise("")
    return findings(
        rows,
        "session-order",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.earlier.index, c.invoke_index, c.complete_index, c.final_index, c.kept_index],
        sentence=say(
            "Process %s had value %s acknowledged, which is at offset %,d of %s; it sent value %s after "
            "that%s, but this value lies before the other, at offset %,d",
            *(process_label(c.process), value_label(c.earlier.value), c.earlier.offset, place(c)),
            *(value_label(c.value), sent_at, c.offset),
        ),
        around=Window(F.coalesce(c.invoke_ns, c.complete_ns), F.coalesce(c.complete_ns, c.invoke_ns)),
    )


@check(
    "wrong-offset",
    Family.ORDER,
    "–",
    "an ack or a poll names an offset at which the value is not: the final read has it elsewhere",
    breaks=Promise.LASTING_OFFSETS,
    marks=[ASTRAY],
    explained_by=IN_ANY_ORDER,
)
def wrong_offset(evidence: Evidence) -> Findings:
    """One finding for each place that was named. Of a compacted topic a copy may be all that is left."""
    rows = uncompacted_only(having(evidence, ASTRAY), evidence.tables)
    c = rows.c
    value = value_label(c.value)
    by_ack = say(
        "Value %s was acknowledged at offset %,d of %s at %s",
        value,
        c.offset,
        place(c),
        seconds(c.complete_ns),
    )
    by_poll = say(
        "A consumer read value %s at offset %,d of %s at %s", value, c.offset, place(c), seconds(c.poll_ns)
    )
    return findings(
        rows,
        "wrong-offset",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.poll_index, c.kept_index],
        where=F.when(c.acked, "ack").otherwise("poll"),
        sentence=F.concat(
            F.when(c.acked, by_ack).otherwise(by_poll),
            say("; the final read has the value at offset %,d instead", c.kept_offset),
        ),
        around=Window(F.coalesce(F.when(c.acked, c.complete_ns), c.poll_ns)),
    )


@check(
    "batch-order",
    Family.ORDER,
    "int-nonmonotonic-send",
    "records of one send are stored in another order than they were sent in",
    breaks=Promise.IDEMPOTENCE,
    marks=[SHUFFLED],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.ALL_SENT),
)
def batch_order(evidence: Evidence) -> Findings:
    rows = having(evidence, SHUFFLED)
    c = rows.c
    return findings(
        rows,
        "batch-order",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.final_index, c.kept_index],
        sentence=say(
            "Process %s sent value %s after value %s in one operation%s, but in %s it lies before the other: "
            "it is at offset %,d, and the other at offset %,d",
            *(process_label(c.process), value_label(c.value), value_label(c.earlier.value), _acked_at(c)),
            *(place(c), c.offset, c.earlier.offset),
        ),
        around=Window(F.coalesce(c.complete_ns, c.invoke_ns), F.coalesce(c.complete_ns, c.invoke_ns)),
    )


@check(
    "poll-skip",
    Family.ORDER,
    "int-/poll-skip",
    "a consumer jumped over offsets that held records, with no assignment or seek between",
    breaks=Promise.CONSUMERS_GET_ALL,
    marks=[JUMPED],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.AS_GIVEN),
)
def poll_skip(evidence: Evidence) -> Findings:
    """Not of a compacted topic: what the consumer passed over may have been gone by then."""
    rows = uncompacted_only(having(evidence, JUMPED), evidence.tables)
    c = rows.c
    return findings(
        rows,
        "poll-skip",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index],
        sentence=say(
            "Process %s stood at offset %,d of %s and read offset %,d next, at %s, so it passed over the "
            "record at offset %,d",
            *(process_label(c.process), c.offset, place(c), c.other_offset, seconds(c.complete_ns)),
            c.known_offset,
        ),
        around=Window(c.complete_ns, c.complete_ns),
    )


@check(
    "poll-rewind",
    Family.ORDER,
    "(int-)nonmonotonic-poll",
    "a consumer was given an offset again or an earlier one, with no assignment or seek between",
    breaks=Promise.CONSUMERS_GET_ALL,
    marks=[REWOUND],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.AS_GIVEN),
)
def poll_rewind(evidence: Evidence) -> Findings:
    rows = having(evidence, REWOUND)
    c = rows.c
    return findings(
        rows,
        "poll-rewind",
        at=c,
        offset=c.other_offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index],
        sentence=say(
            "Process %s stood at offset %,d of %s and read offset %,d next, at %s, though it was neither "
            "given partitions nor told to seek in between",
            *(process_label(c.process), c.offset, place(c), c.other_offset, seconds(c.complete_ns)),
        ),
        around=Window(c.complete_ns, c.complete_ns),
    )

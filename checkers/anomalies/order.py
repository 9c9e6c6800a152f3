"""Order (docs/anomalies.md section 3): of sends against real time and within a process, and of what a
consumer is given.

The order of sends is judged in the final read: a record that is gone from it was lost, which is reported as
that, and its offset is used again by records sent later.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import Window, findings, having, place, say, seconds, shown
from wrackline.checkers.anomalies.keys import uncompacted_only
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.engine.candidates import Candidate, Outcome, is_astray, is_kept, lt
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.inputs.arrays import Bools, Ints, bools


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


def _acked_at() -> Column:
    """ ", acked at 1.234 s", where it was."""
    told = say(", acked at %s", seconds("complete_ns"))
    unsure = F.col("outcome").isNotNull() & (F.col("outcome") != Outcome.ACKED)
    return F.when(unsure | F.col("complete_ns").isNull(), ", of unknown outcome").otherwise(told)


def _sent_at() -> Column:
    """ ", at 1.234 s", where that is known."""
    return F.when(F.col("invoke_ns").isNotNull(), say(", at %s", seconds("invoke_ns"))).otherwise("")


@check(
    "append-order",
    Family.ORDER,
    "G0-realtime",
    "one send completed before another was invoked, yet has the larger offset",
    marks=[OUT_OF_ORDER],
)
def append_order(evidence: Evidence) -> DataFrame:
    places = ("run", "log", "topic", "partition", "offset", "value")
    rows = having(evidence, OUT_OF_ORDER)
    others = [name for name in rows.columns if name not in places]
    first = F.min_by(F.struct(*others), F.struct("by_settled_ack", "by_settled_ack_offset")).alias("first")
    once = rows.groupBy(*places).agg(first).select(*places, "first.*")
    return findings(
        shown(once, "by_settled_ack"),
        "append-order",
        operations=["invoke_index", "complete_index", "final_index", "kept_index", "shown"],
        sentence=say(
            "value %d, at offset %d of %s, had been acked at %s; value %d was sent after that, at %s, and "
            "lies before it, at offset %d",
            *("shown_value", "shown_offset", place(), seconds("shown_ns")),
            *("value", seconds("invoke_ns"), "offset"),
        ),
        around=Window(F.col("shown_ns"), F.coalesce("complete_ns", "invoke_ns")),
    )


@check(
    "session-order",
    Family.ORDER,
    "nonmonotonic-send",
    "a later send of one process has the smaller offset",
    marks=[OUT_OF_SESSION],
)
def session_order(evidence: Evidence) -> DataFrame:
    """A process that goes on has its earlier sends acked, so this is a part of append-order."""
    return findings(
        having(evidence, OUT_OF_SESSION),
        "session-order",
        operations=["earlier_index", "invoke_index", "complete_index", "final_index", "kept_index"],
        sentence=say(
            "process %d had value %d, at offset %d of %s, acked, and sent value %d after that%s, which lies "
            "before it, at offset %d",
            *("process", "earlier_value", "earlier_offset", place(), "value"),
            *(_sent_at(), "offset"),
        ),
        around=Window(F.coalesce("invoke_ns", "complete_ns"), F.coalesce("complete_ns", "invoke_ns")),
    )


@check(
    "wrong-offset",
    Family.ORDER,
    "–",
    "an ack or a poll names an offset at which the value is not: the final read has it elsewhere",
    marks=[ASTRAY],
)
def wrong_offset(evidence: Evidence) -> DataFrame:
    """One finding for each place that was named. Of a compacted topic a copy may be all that is left."""
    acked = F.col("acked")
    by_ack = say(
        "value %d was acked at offset %d of %s at %s", "value", "offset", place(), seconds("complete_ns")
    )
    by_poll = say(
        "a consumer was given value %d at offset %d of %s at %s",
        "value",
        "offset",
        place(),
        seconds("poll_ns"),
    )
    return findings(
        uncompacted_only(having(evidence, ASTRAY), evidence.tables),
        "wrong-offset",
        operations=["invoke_index", "complete_index", "poll_index", "kept_index"],
        where=F.when(acked, "ack").otherwise("poll"),
        sentence=F.concat(
            F.when(acked, by_ack).otherwise(by_poll),
            say("; the final read has it at offset %d, and not there", "kept_offset"),
        ),
        around=Window(F.coalesce(F.when(acked, F.col("complete_ns")), "poll_ns")),
    )


@check(
    "batch-order",
    Family.ORDER,
    "int-nonmonotonic-send",
    "records of one send are stored in another order than they were sent in",
    marks=[SHUFFLED],
)
def batch_order(evidence: Evidence) -> DataFrame:
    return findings(
        having(evidence, SHUFFLED),
        "batch-order",
        operations=["invoke_index", "complete_index", "final_index", "kept_index"],
        sentence=say(
            "process %d sent value %d after value %d in one operation%s: in %s it lies before the other, at "
            "offset %d, and the other at offset %d",
            *("process", "value", "earlier_value", _acked_at(), place(), "offset", "earlier_offset"),
        ),
        around=Window(F.coalesce("complete_ns", "invoke_ns"), F.coalesce("complete_ns", "invoke_ns")),
    )


@check(
    "poll-skip",
    Family.ORDER,
    "int-/poll-skip",
    "a consumer jumped over offsets that held records, with no assignment or seek between",
    marks=[JUMPED],
)
def poll_skip(evidence: Evidence) -> DataFrame:
    """Not of a compacted topic: what was jumped over may have been gone by then."""
    return findings(
        uncompacted_only(having(evidence, JUMPED), evidence.tables),
        "poll-skip",
        operations=["invoke_index", "complete_index"],
        sentence=say(
            "the position of process %d was offset %d of %s and it was next given offset %d, at %s: it was "
            "never given offset %d",
            *("process", "offset", place(), "told", seconds("complete_ns"), "known_offset"),
        ),
        around=Window(F.col("complete_ns"), F.col("complete_ns")),
    )


@check(
    "poll-rewind",
    Family.ORDER,
    "(int-)nonmonotonic-poll",
    "a consumer was given an offset again or an earlier one, with no assignment or seek between",
    marks=[REWOUND],
)
def poll_rewind(evidence: Evidence) -> DataFrame:
    return findings(
        having(evidence, REWOUND),
        "poll-rewind",
        operations=["invoke_index", "complete_index"],
        offset=F.col("told"),
        sentence=say(
            "the position of process %d was offset %d of %s and it was next given offset %d, at %s, with no "
            "assignment between",
            *("process", "offset", place(), "told", seconds("complete_ns")),
        ),
        around=Window(F.col("complete_ns"), F.col("complete_ns")),
    )

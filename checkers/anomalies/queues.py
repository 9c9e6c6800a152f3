"""Queues on partitions (workload ``queue``): the sentences of findings. wrackline.checkers.exact.queue
decides, in pieces (wrackline.checkers.engine.object_values, wrackline.checkers.engine.object_times)."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import findings, place, say
from wrackline.checkers.anomalies.object_evidence import around, contradictions, every_call, indexes, moment
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.engine.object_values import QUEUE
from wrackline.checkers.exact.queue import Rule

mark(QUEUE)  # set where they are found (wrackline.checkers.engine.object_values.put_contradictions)


@check(
    "queue-not-linearizable",
    Family.QUEUES,
    "Knossos: fifo-queue",
    "what clients enqueued in and dequeued from a partition as a FIFO queue has no valid order",
    marks=[QUEUE],
)
def queue_not_linearizable(evidence: Evidence) -> DataFrame:
    """One per culprit: a value that came out wrongly or never, or an empty answer that was not true."""
    # Slots: enqueue and dequeue of one value, and those of another; the answer "empty" first.
    rows = contradictions(evidence, QUEUE).withColumn("calls", every_call())

    def did(what: str, call: str, when: str) -> Column:
        return say(f"{what} by process %d at %s", f"{call}.process", moment(call, when))

    got = say("value %d was dequeued", "value")
    sentences = {
        Rule.GARBAGE: F.concat(got, did("", "c1", "ret"), F.lit(", and nobody enqueued it")),
        Rule.TWICE: F.concat(got, did(" twice:", "c1", "ret"), did(" and", "c3", "ret")),
        Rule.ABORTED: F.concat(got, did("", "c1", "ret"), F.lit(", though its enqueue had failed")),
        Rule.FUTURE: F.concat(
            got, did("", "c1", "ret"), say(", before its enqueue was invoked at %s", moment("c0", "inv"))
        ),
        Rule.LOST: F.concat(
            say("value %d was in the queue at %s and never came out", "value", moment("c0", "ret")),
            say(", though value %d, enqueued later, came out at %s", "other", moment("c3", "ret")),
        ),
        Rule.OVERTAKEN: F.concat(
            say("value %d came out at %s", "value", moment("c3", "ret")),
            say(", before the dequeue of value %d began at %s", "other", moment("c1", "inv")),
            say(
                ", which was in the queue (%s) before the enqueue of the first began (%s)",
                moment("c0", "ret"),
                moment("c2", "inv"),
            ),
        ),
        Rule.NOT_EMPTY: F.concat(
            say("process %d found it empty at %s", "c0.process", moment("c0", "ret")),
            say(", though value %d had been in it since %s", "other", moment("c1", "ret")),
            F.when(F.col("contradicted") > 1, ", and others were in it before that came out").otherwise(""),
        ),
    }
    sentence = reduce(
        lambda text, rule: F.when(F.col("rule") == str(rule), sentences[rule]).otherwise(text),
        sentences,
        F.lit(""),
    )
    more = F.when(
        (F.col("rule") == str(Rule.OVERTAKEN)) & (F.col("contradicted") > 1),
        say(" (and of %d others)", F.col("contradicted") - 1),
    )
    return findings(
        rows,
        "queue-not-linearizable",
        operations=indexes(F.col("calls")),
        sentence=F.concat(
            place(), F.lit(" is no linearizable queue: "), sentence, F.coalesce(more, F.lit(""))
        ),
        around=around(F.col("calls")),
        where=F.col("rule"),
    )

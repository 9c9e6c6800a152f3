"""Queues on partitions (workload ``queue``): the sentences of findings. wrackline.checkers.exact.queue
decides, in pieces (wrackline.checkers.engine.object_values, wrackline.checkers.engine.object_times)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import findings, place, process_label, say, value_label
from wrackline.checkers.anomalies.explained_by import By, ExplainedBy
from wrackline.checkers.anomalies.object_evidence import around, at, by_rule, culprits, indexes
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.engine.object_facts import Call
from wrackline.checkers.engine.object_values import QUEUE
from wrackline.checkers.exact.queue import Rule
from wrackline.checkers.verdict.anomaly import Family, Promise

mark(QUEUE)  # set where they are found (wrackline.checkers.engine.object_values.put_contradictions)


@check(
    "queue-not-linearizable",
    Family.QUEUES,
    "Knossos: fifo-queue",
    "what clients enqueued in and dequeued from a partition as a FIFO queue has no valid order",
    breaks=Promise.LINEARIZABLE_OBJECTS,
    marks=[QUEUE],
    explained_by=ExplainedBy(By.QUEUE),
)
def queue_not_linearizable(evidence: Evidence) -> Findings:
    """One per culprit: a value that came out wrongly or never, or an empty answer that was not true."""
    rows = culprits(evidence, QUEUE)
    c, found = rows.c, rows.c.found
    # Slots: enqueue and dequeue of one value, and those of another; the answer "empty" first.
    put, got, other_put, other_got, *_ = found.calls
    value, other = value_label(found.value), value_label(found.other)

    def dequeued(call: Call[Column]) -> Column:
        return say("process %s dequeued value %s at %s", process_label(call.process), value, at(call.ret_ns))

    again = say("process %s dequeued it again at %s", process_label(other_got.process), at(other_got.ret_ns))
    several = F.when(c.contradicted > 1, say(" (and before those of %,d other values)", c.contradicted - 1))
    sentences = {
        Rule.GARBAGE: F.concat(dequeued(got), F.lit(", but nobody had enqueued it")),
        Rule.TWICE: F.concat(dequeued(got), F.lit(", and "), again),
        Rule.ABORTED: F.concat(dequeued(got), F.lit(", but its enqueue had failed")),
        Rule.FUTURE: F.concat(dequeued(got), say(", but its enqueue was only invoked at %s", at(put.inv_ns))),
        Rule.LOST: say(
            "value %s had been enqueued by %s and was never dequeued, but value %s, which was enqueued "
            "later, was dequeued at %s",
            *(value, at(put.ret_ns), other, at(other_got.ret_ns)),
        ),
        Rule.OVERTAKEN: F.concat(
            say(
                "value %s had been dequeued by %s, before the dequeue of value %s began at %s",
                *(value, at(other_got.ret_ns), other, at(got.inv_ns)),
            ),
            F.coalesce(several, F.lit("")),
            say(
                ", but value %s had been enqueued by %s, before the enqueue of value %s began at %s",
                *(other, at(put.ret_ns), value, at(other_put.inv_ns)),
            ),
        ),
        Rule.NOT_EMPTY: F.concat(
            say(
                "process %s found the queue empty at %s, but value %s had been in it since %s",
                *(process_label(put.process), at(put.ret_ns), other, at(got.ret_ns)),
            ),
            F.when(
                c.contradicted > 1, ", and other values were in it before that one was dequeued"
            ).otherwise(""),
        ),
    }
    return findings(
        rows,
        "queue-not-linearizable",
        at=c,
        value=found.value,
        operations=indexes(c.calls),
        sentence=F.concat(place(c), F.lit(" is not a linearizable queue: "), by_rule(c.rule, sentences)),
        around=around(c.calls),
        where=c.rule,
    )

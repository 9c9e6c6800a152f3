"""Queues on partitions (workload ``queue``): the sentences of findings. wrackline.checkers.exact.queue
decides, in pieces (wrackline.checkers.engine.objects.values, wrackline.checkers.engine.objects.times)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wrackline.checkers.anomalies.object_evidence import Culprit, culprits, when
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.explained_by import By, ExplainedBy
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.places import Places
from wrackline.checkers.checks.registry import check, mark
from wrackline.checkers.engine.object_facts import Call
from wrackline.checkers.engine.objects.values import QUEUE
from wrackline.checkers.exact.queue import Rule
from wrackline.checkers.verdict.anomaly import Family, Promise

mark(QUEUE)  # set where they are found (wrackline.checkers.engine.objects.values.put_contradictions)


@check(
    "queue-not-linearizable",
    Family.QUEUES,
    "Knossos: fifo-queue",
    "what clients enqueued in and dequeued from a partition as a FIFO queue has no valid order",
    breaks=Promise.LINEARIZABLE_OBJECTS,
    marks=[QUEUE],
    explained_by=ExplainedBy(By.QUEUE),
)
def queue_not_linearizable(at: Places) -> Iterator[Finding]:
    """One per culprit: a value that came out wrongly or never, or an empty answer that was not true."""
    for culprit in culprits(at, QUEUE):
        yield Finding(
            anomaly="queue-not-linearizable",
            log=at.log,
            value=culprit.found.value,
            operations=culprit.indexes,
            where=str(culprit.rule),
            sentence=f"{at.log} is not a linearizable queue: {_why(culprit, at.run)}",
            since_ns=culprit.begin_ns,
            until_ns=culprit.end_ns,
        )


def _why(culprit: Culprit, run: AboutRun) -> str:
    found, others = culprit.found, culprit.contradicted - 1
    # Slots: enqueue and dequeue of one value, and those of another; the answer "empty" first.
    put, got, other_put, other_got, *_ = found.calls
    value, other = run.value(found.value), run.value(found.other)

    def dequeued(call: Call[Any]) -> str:
        return f"process {run.process(call.process)} dequeued value {value} at {when(call.ret_ns)}"

    match culprit.rule:
        case Rule.GARBAGE:
            return f"{dequeued(got)}, but nobody had enqueued it"
        case Rule.TWICE:
            again = f"process {run.process(other_got.process)} dequeued it again at {when(other_got.ret_ns)}"
            return f"{dequeued(got)}, and {again}"
        case Rule.ABORTED:
            return f"{dequeued(got)}, but its enqueue had failed"
        case Rule.FUTURE:
            return f"{dequeued(got)}, but its enqueue was only invoked at {when(put.inv_ns)}"
        case Rule.LOST:
            return (
                f"value {value} had been enqueued by {when(put.ret_ns)} and was never dequeued, but value "
                f"{other}, which was enqueued later, was dequeued at {when(other_got.ret_ns)}"
            )
        case Rule.OVERTAKEN:
            several = f" (and before those of {others:,} other values)" if others else ""
            return (
                f"value {value} had been dequeued by {when(other_got.ret_ns)}, before the dequeue of value "
                f"{other} began at {when(got.inv_ns)}{several}, but value {other} had been enqueued by "
                f"{when(put.ret_ns)}, before the enqueue of value {value} began at {when(other_put.inv_ns)}"
            )
        case Rule.NOT_EMPTY:
            several = ", and other values were in it before that one was dequeued" if others else ""
            return (
                f"process {run.process(put.process)} found the queue empty at {when(put.ret_ns)}, but value "
                f"{other} had been in it since {when(got.ret_ns)}{several}"
            )
    raise ValueError(f"no sentence for {culprit.rule}")

"""Registers on partitions (workload ``register``): the sentences of findings.
wrackline.checkers.exact.register decides, in pieces (wrackline.checkers.engine.objects.values,
wrackline.checkers.engine.objects.times)."""

from __future__ import annotations

from collections.abc import Iterator

from wrackline.checkers.anomalies.object_evidence import Culprit, culprits, when
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.explained_by import By, ExplainedBy
from wrackline.checkers.checks.finding import Finding, least, seconds
from wrackline.checkers.checks.places import Places
from wrackline.checkers.checks.registry import check, mark
from wrackline.checkers.engine.objects.values import REGISTER
from wrackline.checkers.exact.operations import NOTHING
from wrackline.checkers.exact.register import Rule
from wrackline.checkers.verdict.anomaly import Family, Promise

mark(REGISTER)  # set where they are found (wrackline.checkers.engine.objects.values.put_contradictions)


@check(
    "register-not-linearizable",
    Family.REGISTERS,
    "Knossos: register",
    "what clients wrote to and read from a partition as a register has no valid order",
    breaks=Promise.LINEARIZABLE_OBJECTS,
    marks=[REGISTER],
    explained_by=ExplainedBy(By.REGISTER),
)
def register_not_linearizable(at: Places) -> Iterator[Finding]:
    """One per culprit: a value that was read and should not have been, or was held when another must have
    been."""
    for culprit in culprits(at, REGISTER):
        others = culprit.contradicted - 1
        like_it = f" ({others:,} other values contradict it too)" if others > 0 else ""
        yield Finding(
            anomaly="register-not-linearizable",
            log=at.log,
            value=culprit.found.value,
            operations=culprit.indexes,
            where=str(culprit.rule),
            sentence=f"{at.log} is not a linearizable register: {_why(culprit, at.run)}{like_it}",
            since_ns=culprit.begin_ns,
            until_ns=culprit.end_ns,
        )


def _why(culprit: Culprit, run: AboutRun) -> str:
    # Slots: write, first to return and last to start of one zone, and those of another.
    found = culprit.found
    _, first, last, _, other_first, other_last, *_ = found.calls
    one, other = _value(run, found.value), _value(run, found.other)
    read = f"process {run.process(first.process)} read {one} at {when(first.ret_ns)}"
    ends = other_first.ret_ns, other_last.inv_ns
    known = [end for end in ends if end is not None]
    begin, end = seconds(least(*ends)), seconds(max(known, default=None))
    held = f"it held {one} at least from {when(first.ret_ns)} until {when(last.inv_ns)}, but "
    match culprit.rule:
        case Rule.GARBAGE:
            return f"{read}, but nobody wrote it"
        case Rule.ABORTED:
            return f"{read}, but its write by process {run.process(other_first.process)} had failed"
        case Rule.FUTURE:
            return f"{read}, but its write was only invoked at {when(other_first.inv_ns)}"
        case Rule.TWO_AT_ONCE:
            return f"{held}it must also have held {other} from {begin} to {end}"
        case Rule.INSIDE:
            return f"{held}{other} was written and read between {begin} and {end}"
    raise ValueError(f"no sentence for {culprit.rule}")


def _value(run: AboutRun, value: int | None) -> str:
    return "nothing" if value == NOTHING else f"value {run.value(value)}"

"""Verdicts as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wrackline.checkers.exact.judgement import Answer
from wrackline.harness.check.elle import transaction
from wrackline.harness.check.results import CHECKER, LINEARIZABLE, Anomaly, Judged, Operation, Verdict, shown
from wrackline.history.wording import plural

_STATES_SHOWN = 3
_WAITING_SHOWN = 6


def headline(verdict: Verdict) -> str:
    """``key 3: not linearizable (exact, 12 operations)``."""
    of_one_object = verdict.promise == LINEARIZABLE or verdict.by == CHECKER
    many = plural(verdict.operations, "operation" if of_one_object else "transaction")
    return f"{verdict.name}: {answer(verdict)} ({verdict.by}, {many})"


def answer(verdict: Verdict) -> str:
    if verdict.answer is Answer.UNKNOWN:
        return f"unknown whether {verdict.promise}"
    return verdict.promise if verdict.answer is Answer.VALID else f"not {verdict.promise}"


def details(verdict: Verdict) -> Iterator[str]:
    """Yields the indented lines that follow the headline of a verdict."""
    if verdict.why:
        yield f"  {verdict.why}"
    for problem in verdict.problems:
        yield f"  {problem.rule}: {problem.about}".rstrip()
        yield from (f"    {one.line}" for one in problem.operations)
    if verdict.note:
        yield f"  {verdict.note}"
    if verdict.figures:
        yield f"  {figures(verdict)}"
    if verdict.stuck is not None:
        yield f"  there is no place for {verdict.stuck.operation.line}"
        for state in verdict.stuck.states[:_STATES_SHOWN]:
            yield f"    when the object holds {state.holds}, none of these can be next: {_few(state.waiting)}"
        more = len(verdict.stuck.states) - _STATES_SHOWN
        if more > 0:
            yield f"    and {more} more states"
    for anomaly in verdict.anomalies:
        yield from _of_anomaly(anomaly)
    if verdict.refuted:
        yield f"  not {', not '.join(verdict.refuted)}"


def figures(verdict: Verdict) -> str:
    """``added 12, lost 1, stable after (ms) 0 at 0.5, 3 at 1``."""
    return ", ".join(f"{name} {_figure(figure)}" for name, figure in verdict.figures.items())


def _figure(figure: Any) -> str:
    if isinstance(figure, Mapping):
        return ", ".join(f"{_figure(one)} at {point}" for point, one in figure.items())
    return (
        f"{figure:,}"
        if isinstance(figure, int)
        else f"{figure:g}"
        if isinstance(figure, float)
        else str(figure)
    )


def _few(operations: Sequence[Operation]) -> str:
    some = "; ".join(one.short for one in operations[:_WAITING_SHOWN])
    more = len(operations) - _WAITING_SHOWN
    return some + (f"; and {more} more" if more > 0 else "")


def _of_anomaly(anomaly: Anomaly) -> Iterator[str]:
    yield f"  {anomaly.count} {anomaly.type}"
    for example in anomaly.examples[:1]:
        if not example.links:
            yield f"    {example.sentence or example.words}"
            if example.names and not example.sentence:
                yield "    " + ", ".join(f"{n} is {shown(name)}" for n, name in example.names.items())
        else:
            for link in example.links:
                yield f"    {link.line}"
        for at, one in enumerate(example.transactions, 1):
            ends = f"operation {one.at}" + (f" to {one.until}" if one.until is not None else "")
            yield f"    T{at} is process {one.process} {transaction(one)} ({one.outcome}, {ends})"


def summary(files: Sequence[Judged], jvms: int) -> Iterator[str]:
    """Yields the summary of all files, if they hold more than one object, and what was left out of it."""
    verdicts = [one for file in files for one in file.verdicts]
    objects = sum(len({str(one.key) for one in file.verdicts}) for file in files)
    if objects > 1 or len(files) > 1:
        counts = Counter(answer(one) for one in verdicts)
        what = ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items()))
        broken = sum(bool(file.wrong) for file in files)
        unread = f"; {broken} of the files could not be judged" if broken else ""
        yield f"{objects:,} objects in {len(files):,} files: {what or 'none'}{unread}"
    left_out = sum(file.left_out for file in files)
    if left_out:
        yield f"left out: {plural(left_out, 'event')} of Jepsen's own processes, such as its nemesis"
    if jvms > 1:
        yield f"{jvms} JVMs were needed, one after another: one that is ended takes nothing else with it"

"""The leaders of the partitions of a run, and the changes of leader, as far as anybody wrote them down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.cluster_history import LeaderSpan, exact_spans, polled_spans
from wrackline.checkers.inputs.runs import Fault, Place, Run
from wrackline.checkers.inputs.table import NEVER, Ints
from wrackline.checkers.verdict.wording import partition_name
from wrackline.history.model import CONTROL, DIED, Event, Type

WRITTEN_DOWN_NS: Final = 100_000_000
"""A change that the system wrote down is known to within this: hosts' clocks differ."""
EFFECT_NS: Final = phases.RECOVERY_NS
"""Who was replaced, or cut off by a fault, may not know it yet for so long after that."""
POLLED_NS: Final = 1_500_000_000
"""A change that a poll of metadata showed may be older by this: brokers are asked once a second."""


ENDING: Final = ("kill", "oom-kill", "crash-loop", "power", DIED)
"""How the names of faults begin that end the process of a node without a shutdown."""
STOPPING: Final = (*ENDING, "pause", "freeze")
"""... and of those under which a node does nothing."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of leader. ``since_ns`` and ``until_ns``: it happened between them."""

    at_ns: int
    since_ns: int
    until_ns: int
    before: LeaderSpan
    after: LeaderSpan
    vacant: tuple[LeaderSpan, ...] = ()
    """Between the two, while nobody led."""
    is_exact: bool = True
    """The system wrote it down; False: polled metadata showed it, and what else happened since the last poll
    is not known."""

    @property
    def may_be_unclean(self) -> bool:
        """Tells whether the new leader was elected uncleanly, or whether nobody knows that it was not: it
        was in neither ISR nor ELR."""
        last = self.vacant[-1] if self.vacant else self.before
        clean = self.after.leader in (*last.isr, *last.elr)
        return self.after.recovering or not self.is_exact or not clean


@dataclass(frozen=True, slots=True)
class Leaders:
    """The leaders of one partition, as far as anybody wrote them down."""

    changes: tuple[Change, ...] = ()
    first: LeaderSpan | None = None
    """None: nobody wrote down who led."""
    spans: tuple[LeaderSpan, ...] = ()

    def surely_before(self, times: Ints) -> Ints:
        """Returns the number of changes that had certainly happened at each time."""
        ends = np.array([one.until_ns for one in self.changes], dtype=np.int64)
        return np.searchsorted(ends, times, side="right").astype(np.int64)

    def maybe_before(self, times: Ints) -> Ints:
        begins = np.array([one.since_ns for one in self.changes], dtype=np.int64)
        return np.searchsorted(begins, times, side="right").astype(np.int64)

    def of_epoch(self, epoch: int) -> int | None:
        """The change by which the leader of this epoch came, counted from 1; None also where several have it,
        as in a system without leader epochs."""
        led = [self.first, *(one.after for one in self.changes)]
        of = [number for number, one in enumerate(led) if one is not None and one.leader_epoch == epoch]
        return of[0] if len(of) == 1 and of[0] else None

    def at(self, time_ns: int) -> str | None:
        """Returns the leader at that time; None: nobody led, or nobody knows."""
        led = [one for one in self.spans if one.begin_ns <= time_ns < one.end_ns]
        return led[-1].leader if led else None

    def after(self, number: int) -> LeaderSpan | None:
        """Returns the leader's span after so many changes."""
        return self.changes[number - 1].after if number else self.first


class Leadership:
    """The leaders of the partitions of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._nodes = {str(node): host for node, host in run.nodes.items()}
        self._exact = exact_spans(run.changes, self._nodes, run.end_ns)
        self._known: dict[Place, Leaders] = {}

    def of(self, place: Place | None) -> Leaders:
        if place is None:
            return Leaders()
        if place not in self._known:
            label = partition_name(place)
            exact = self._exact.get(label)
            polled = polled_spans(self._answers(place), self._nodes, self._run.end_ns).get(label, [])
            self._known[place] = leaders_of(exact or polled, is_exact=exact is not None)
        return self._known[place]

    def before(self, place: Place, times: Ints) -> Ints:
        return self.of(place).surely_before(times)

    def known_by(self, change: Change) -> int:
        """When a change of leader is known to everybody: who is cut off by a fault learns of it after
        that."""
        end = change.until_ns + EFFECT_NS
        for begin, ended in sorted(phases.in_force(self._run, fault) for fault in self._run.faults):
            if begin <= end and ended >= change.until_ns:
                end = max(end, ended + EFFECT_NS)
        return end

    def may_act(self, change: Change, at_ns: int) -> bool:
        """Tells whether the leader before the change may have gone on until then: it may not know of the
        change yet, and no fault kept it from running."""
        before = change.before.leader
        if before == change.after.leader or not change.until_ns <= at_ns <= self.known_by(change):
            return False
        stopped = (one for one in self._run.faults if one.name.startswith(STOPPING) and before in one.targets)
        return not any(one.struck_ns <= at_ns <= _undone_ns(one) for one in stopped)

    def _answers(self, place: Place) -> Iterator[Event]:
        for sample in self._run.cluster.get(place, ()):
            row: Mapping[str, object] = {
                "topic": place[0],
                "partition": place[1],
                "leader": sample.leader,
                "leader_epoch": sample.leader_epoch,
                "isr": list(sample.isr),
                "elr": list(sample.elr),
                "replicas": list(sample.replicas),
            }
            yield Event(CONTROL, Type.INFO, "cluster", extra={"partitions": [row]}, time_ns=sample.time_ns)


def _undone_ns(fault: Fault) -> int:
    times = (fault.undo_ns, fault.ended_ns)
    return next((time for time in times if time is not None), NEVER)


def left_sets(vacant: Sequence[LeaderSpan]) -> Iterator[tuple[str, str, int]]:
    """(node, ``ISR`` or ``ELR``, when) of those who could have led and could no more, while nobody led."""
    for before, after in pairwise(vacant):
        for name, had, has in (("ISR", before.isr, after.isr), ("ELR", before.elr, after.elr)):
            yield from ((node, name, after.begin_ns) for node in had if node not in has)


def leaders_of(spans: Sequence[LeaderSpan], *, is_exact: bool) -> Leaders:
    """Times without a leader are between two leaders, and no change of their own."""
    early, late = (WRITTEN_DOWN_NS, WRITTEN_DOWN_NS) if is_exact else (POLLED_NS, 0)
    changes: list[Change] = []
    leading: LeaderSpan | None = None
    first: LeaderSpan | None = None
    vacant: list[LeaderSpan] = []
    for span in spans:
        if span.leader is None:
            vacant += [span] if leading is not None else []
            continue
        first = first or span
        if leading is not None and (leading.leader, leading.leader_epoch) != (span.leader, span.leader_epoch):
            at = span.begin_ns
            since = max(at - early, leading.begin_ns)
            changes.append(Change(at, since, at + late, leading, span, tuple(vacant), is_exact))
        leading, vacant = span, []
    return Leaders(tuple(changes), first, tuple(spans))

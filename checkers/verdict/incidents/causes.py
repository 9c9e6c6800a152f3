"""Which change of leader an incident came with: what of it the cluster's own history decides, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wrackline.checkers.inputs.arrays import Ints
from wrackline.checkers.inputs.cluster_history import LeaderSpan, exact_spans, polled_spans
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.parts import Part
from wrackline.history.model import CONTROL, Event, Type

WRITTEN_DOWN_NS: Final = 100_000_000
"""A change that the system wrote down is known to within this: hosts' clocks differ."""
POLLED_NS: Final = 1_500_000_000
"""A change that a poll of metadata showed may be older by this: brokers are asked once a second."""


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


@dataclass(frozen=True, slots=True)
class Leaders:
    """Who led one partition, as far as anybody wrote it down."""

    changes: tuple[Change, ...] = ()
    first: LeaderSpan | None = None

    def surely_before(self, times: Ints) -> Ints:
        """How many of the changes had certainly happened."""
        ends = np.array([one.until_ns for one in self.changes], dtype=np.int64)
        return np.searchsorted(ends, times, side="right").astype(np.int64)

    def maybe_before(self, times: Ints) -> Ints:
        begins = np.array([one.since_ns for one in self.changes], dtype=np.int64)
        return np.searchsorted(begins, times, side="right").astype(np.int64)

    def of_epoch(self, epoch: int) -> int | None:
        """The change by which the leader of this epoch came, counted from 1."""
        return next(
            (number for number, one in enumerate(self.changes, 1) if one.after.leader_epoch == epoch), None
        )


class Leadership:
    """Who led the partitions of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._nodes = {str(node): host for node, host in run.nodes.items()}
        self._exact = exact_spans(run.changes, self._nodes, run.end_ns)
        self._known: dict[Place, Leaders] = {}

    def of(self, place: Place | None) -> Leaders:
        if place is None:
            return Leaders()
        if place not in self._known:
            label = f"{place[0]}-{place[1]}"
            exact = self._exact.get(label)
            polled = polled_spans(self._answers(place), self._nodes, self._run.end_ns).get(label, [])
            self._known[place] = leaders_of(exact or polled, is_exact=exact is not None)
        return self._known[place]

    def before(self, place: Place, times: Ints) -> Ints:
        return self.of(place).surely_before(times)

    def limit(self, part: Part) -> None:
        """Between which changes of leader the cause of a part lies."""
        leaders = self.of(part.place)
        part.after, part.until = 0, len(leaders.changes)
        if part.first_ns is None or part.last_ns is None:
            return
        first, last = (np.array([time], dtype=np.int64) for time in (part.first_ns, part.last_ns))
        if part.anomaly.is_loss:
            part.after = int(leaders.surely_before(last)[0])
        elif part.anomaly.right_then_wrong:
            part.after = int(leaders.surely_before(first)[0])
            if not part.at_end:
                part.until = max(part.after, int(leaders.maybe_before(last)[0]))

    def between(self, incident: Joined) -> tuple[int, int]:
        """The changes of leader that an incident lies between: those that limit its cause, else those around
        the events that it cites."""
        if any(part.anomaly.is_loss or part.anomaly.right_then_wrong for part in incident.parts):
            return incident.after, incident.until
        leaders = self.of(incident.place)
        times = [
            time for part in incident.parts for time in (part.first_ns, part.last_ns) if time is not None
        ]
        if not times:
            return 0, len(leaders.changes)
        first, last = (np.array([time], dtype=np.int64) for time in (min(times), max(times)))
        after = int(leaders.surely_before(first)[0])
        return after, max(after, int(leaders.maybe_before(last)[0]))

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
            changes.append(Change(at, since, at + late, leading, span, tuple(vacant)))
        leading, vacant = span, []
    return Leaders(tuple(changes), first)

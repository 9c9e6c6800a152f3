"""Watches whether the cluster keeps its promises of liveness, and records each look at what does not move.
The judge decides by these rows alone (wrackline.checkers.anomalies.liveness)."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from wrackline.harness.run.liveness.look import NO_ANSWER, Look, NoReport, Starts, Subjects, Watched
from wrackline.harness.run.liveness.promises import PROMISES, Promise, Stall, When
from wrackline.history import RecordingFailed
from wrackline.history.model import CONTROL, DIED, LIVENESS, NEMESIS, Event, Type
from wrackline.systems.base import Reachable

EVERY_S = 0.5
"""So often the cluster is looked at."""
OF_DISKS = ("read-only", "disk-errors")
"""Faults under which a disk takes no writes."""
STOPS = ("kill", "pause", "power-cut")
"""Faults under which a node takes no messages, and which hinder nobody else."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Standstill:
    """A stall that is the same since a look, and until another, by the clock. What is recorded of
    these looks lies as far apart, or farther."""

    stall: Stall
    since_s: float
    """After the first was recorded ..."""
    until_s: float
    """... and before the last was."""

    def is_same(self, stall: Stall) -> bool:
        return (self.stall.still, bool(self.stall.excuse)) == (stall.still, bool(stall.excuse))


@dataclass(slots=True)
class _Course:
    """The course of one promise."""

    looks: int = 0
    kept: bool = False
    """As recorded last."""
    error: str = ""
    """Why nobody could tell, at the last look ..."""
    error_since_s: float = 0.0
    """... and since when that is so, by the clock."""
    standstills: dict[str, _Standstill] = field(default_factory=dict)
    """By subject."""


class Rows(Protocol):
    """The history, as far as it is written here. ``listeners`` hear of every row."""

    listeners: list[Callable[[Event], None]]

    def record(self, event: Event) -> object:
        """Raises RecordingFailed."""


class Liveness:
    """Asks for the promises of one run. ``watch`` returns when all that is asked for holds, or has been
    broken for as long as it may be."""

    def __init__(
        self,
        system: Watched,
        recorder: Rows,
        subjects: Subjects,
        bounds: Mapping[str, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``bounds``: by their keys, in seconds, as ``clock`` has them."""
        self._clock = clock
        self._system, self._recorder, self._subjects, self._bounds = system, recorder, subjects, bounds
        is_reachable = isinstance(system, Reachable)
        self._promises = [one for one in PROMISES if is_reachable or not one.by_broker]
        self._courses: dict[str, _Course] = defaultdict(_Course)
        self._mutex = threading.Lock()
        self._in_force: dict[str, tuple[str, tuple[str, ...]]] = {}
        """Id of each fault in force -> its name and hosts."""
        self._tries, self._began_s = subjects.tries(), clock()
        """When disks began to fail."""
        self._disks_fail = self._was_due = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch_faults, name="liveness", daemon=True)
        recorder.listeners.append(self._on_event)

    # --- after healing ------------------------------------------------------------------------------------

    def watch(
        self, *when: When, give_up: Callable[[float], bool], pause: Callable[[], None]
    ) -> Sequence[str]:
        """Looks again and again at the promises of these times until all are kept, or none can be waited for
        any longer. Returns a line for each thing that does not move. ``give_up`` is asked with the seconds
        since the beginning; ``pause`` is called between two looks. Raises RecordingFailed."""
        promises = [one for one in self._promises if one.when in when]
        began, tries, starts = self._clock(), self._subjects.tries(), dict[int, Starts]()
        longest_s = 2 * max(self._bounds[one.bound] for one in promises)
        while True:
            look = Look(self._system, self._subjects, tries, began, starts=starts, clock=self._clock)
            for promise in promises:
                self._ask(promise, look)
            elapsed_s = self._clock() - began
            if not any(map(self._is_awaited, promises)) or elapsed_s > longest_s or give_up(elapsed_s):
                return [line for one in promises for line in self._lines(one)]
            until = self._clock() + EVERY_S
            while self._clock() < until:
                pause()

    def _is_awaited(self, promise: Promise) -> bool:
        """Tells whether something may move yet, or has not stood still for as long as it may."""
        course, bound_s = self._courses[promise.name], self._bounds[promise.bound]
        lasted = [one.until_s - one.since_s for one in course.standstills.values()]
        if course.error:
            lasted.append(self._clock() - course.error_since_s)
        return any(one <= bound_s for one in lasted)

    def _lines(self, promise: Promise) -> list[str]:
        course = self._courses[promise.name]
        if course.error:
            return [f"{promise.name}: nobody could tell: {course.error}"]
        return [
            f"{promise.name}: {one.stall.subject}: {one.stall.excuse or one.stall.state}"
            for one in course.standstills.values()
        ]

    # --- while faults are in force ------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Idempotent."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch_faults(self) -> None:
        while not self._ended.wait(EVERY_S):
            try:
                self.look_at_faults()
            except RecordingFailed:
                return

    def look_at_faults(self) -> None:
        """Looks at what is promised while faults are in force. Raises RecordingFailed."""
        disks, down, hit = self._faults()
        if disks and not self._disks_fail:
            self._tries, self._began_s = self._subjects.tries(), self._clock()
        self._disks_fail = bool(disks)
        is_due = bool(disks or down)
        if is_due or self._was_due:  # once more when they are over
            look = Look(
                self._system, self._subjects, self._tries, self._began_s, disks, down, hit, clock=self._clock
            )
            for promise in self._promises:
                if promise.when is When.FAULT and promise.bound in self._bounds:
                    self._ask(promise, look)
        self._was_due = is_due

    def _on_event(self, event: Event) -> None:
        if event.process != NEMESIS or event.extra is None or event.f == DIED:
            return
        name, phase = str(event.extra.get("id")), event.extra.get("phase")
        with self._mutex:
            if phase == "active":
                self._in_force[name] = (event.f, tuple(event.extra.get("targets") or ()))
            elif phase in ("undo", "ended"):
                self._in_force.pop(name, None)

    def _faults(self) -> tuple[Mapping[str, str], Mapping[str, str], Collection[str]]:
        """Returns host -> the fault of its disk in force there, host -> the fault that keeps its node from
        taking messages (none where any other fault is in force), and the hosts under any fault."""
        with self._mutex:
            every = list(self._in_force.values())
        disks = {host: name for name, hosts in every if name in OF_DISKS for host in hosts}
        down = {host: name for name, hosts in every if name in STOPS for host in hosts}
        is_alone = all(name in STOPS for name, _ in every)
        return disks, down if is_alone else {}, {host for _, hosts in every for host in hosts}

    # --- a look -------------------------------------------------------------------------------------------

    def _ask(self, promise: Promise, look: Look) -> None:
        course = self._courses[promise.name]
        course.looks += 1
        try:
            stalls = {one.subject: one for one in promise.stalls(look)}
        except (*NO_ANSWER, NoReport) as error:
            log.info("%s: %s", promise.name, error)
            course.error_since_s = course.error_since_s if course.error else self._clock()
            course.error, course.kept, course.standstills = str(error), False, {}
            self._record(promise, course, {"error": str(error)})
            return
        course.error = ""
        before = course.standstills
        course.standstills = {}
        for subject, stall in stalls.items():
            earlier, until_s = before.get(subject), self._clock()
            self._record_stall(promise, course, stall)
            is_same = earlier is not None and earlier.is_same(stall)
            since_s = earlier.since_s if earlier is not None and is_same else self._clock()
            course.standstills[subject] = _Standstill(stall, since_s, until_s)
        if not stalls and not course.kept:
            self._record(promise, course, {"kept": True})
        course.kept = not stalls

    def _record_stall(self, promise: Promise, course: _Course, stall: Stall) -> None:
        extra = {
            "kept": False,
            "subject": stall.subject,
            "state": stall.state,
            "still": stall.still,
            "bound_s": self._bounds[promise.bound],
            "excuse": stall.excuse,
        }
        topic, partition = stall.place or (None, None)
        self._record(promise, course, extra, topic=topic, partition=partition, node=stall.node)

    def _record(self, promise: Promise, course: _Course, extra: Mapping[str, Any], **columns: Any) -> None:
        row = {"promise": promise.name, "look": course.looks, **extra}
        self._recorder.record(Event(CONTROL, Type.INFO, LIVENESS, extra=row, **columns))

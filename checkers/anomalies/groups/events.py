"""Events of each group in a run: what was committed and asked for, and who was given what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import COMMIT, COMMITTED, SUBSCRIBE, EventBatch, GroupEvent, Groups
from wrackline.checkers.inputs.table import NEVER


@dataclass(slots=True, eq=False)
class Operation:
    """A ``commit`` or ``committed``, of one partition."""

    log: AboutLog
    offset: int
    """-1 where nothing was committed."""
    event: GroupEvent
    """The event that says most of it."""
    since: int
    """Index of the invocation."""
    done: GroupEvent | None
    """The completion; None: it never completed."""
    until: int
    """Index until when it may take effect: that of its completion where it succeeded."""
    fence: GroupEvent | None = None
    """What ends that."""
    is_dead: bool = False
    """It never took effect: whoever fenced its member was not shown it."""
    is_shown: bool = False
    """Its outcome is unknown, and ``done`` the answer that shows that it took effect."""

    def shown_by(self, answer: Operation) -> Operation:
        return replace(self, done=answer.done, until=answer.until, is_shown=True)

    @property
    def succeeded(self) -> bool:
        return self.done is not None and self.done.type == "ok"

    @property
    def may_count(self) -> bool:
        """Tells whether the operation took effect, or may have. Of a transaction of which nothing but its
        abort was asked for it may not."""
        return (self.done is None or self.done.type != "fail") and self.event.asked != "abort"

    @property
    def keeps_generation(self) -> bool:
        """Tells whether the operation took effect under the generation that it names, or not at all: an
        asynchronous one may be sent later than it is asked for, and the offsets of a transaction become
        visible when it has ended."""
        return self.event.generation >= 0 and not self.event.is_async and self.event.txn < 0


class GroupEvents(Groups):
    """All that a run says of groups."""

    def __init__(self, about: AboutRun) -> None:
        super().__init__()
        self._about = about
        self.joined: dict[int, int] = {}
        """Process -> index at which it subscribed first."""
        self.committing: dict[int, set[str]] = defaultdict(set)
        """Log -> groups whose commits have succeeded."""
        self.moves: list[GroupEvent] = []
        """Who was given partitions, by itself or by its group, or crashed."""

    def moves_in(self, events: EventBatch) -> list[GroupEvent]:
        """Takes up events; returns the moves among them."""
        known = len(self.moves)
        for event in events.group_events():
            request = self.take(event)
            if request is not None and event.f == COMMIT and event.type == "ok":
                for log in request.event.offsets:
                    self.committing[log].add(request.event.of)
            elif event.f == SUBSCRIBE:
                self.joined.setdefault(event.process, event.index)
            elif event.f not in (COMMIT, COMMITTED) and event.type == "ok":
                self.moves.append(event)
        return self.moves[known:]

    def operations(self, f: str) -> dict[str, list[Operation]]:
        """The commits, or answers, of each group in the order of their invocations."""
        result: dict[str, list[Operation]] = defaultdict(list)
        for one in self.requests:
            until = NEVER if one.done is None or one.type != "ok" else one.done.index
            if one.event.f == f and (f == COMMIT or until != NEVER):
                result[one.event.of] += [
                    Operation(self._about.of_number[log], offset, one.event, one.since, one.done, until)
                    for log, offset in one.event.offsets.items()
                ]
        return result

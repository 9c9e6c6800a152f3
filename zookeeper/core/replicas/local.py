"""One replica on this broker in profile zk08: its role, what a leader keeps beside ``LeaderState``, and the
questions and timers of a role, which end with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.coordination import Operation, Outcome
from wrackline.broker.model.types import NodeId
from wrackline.zookeeper.core.coordination import Coordination, OnAnswer

NOT_READ = -2
UNKNOWN = (Outcome.CONNECTION_LOSS, Outcome.SESSION_EXPIRED)
"""Nobody knows whether the operation was carried out."""


class Phase(Enum):
    IDLE = "idle"
    """There is no leader, or none that this replica knows; it waits for the leader's node to come or go."""
    RUNNING = "running"
    """It takes part in an election."""
    FOLLOWING = "following"
    OPENING = "opening"
    """It has won, and waits for the members of the ISR."""
    LEADING = "leading"


@dataclass(slots=True)
class Commits:
    """The commitQ: the log's end after each produce request, in order (Z40, Z52)."""

    ends: deque[int] = field(default_factory=deque)
    last: int = -1
    """The end of the newest request."""
    head_since_ms: float = 0.0
    """When the oldest one that is not committed became the oldest."""


@dataclass(slots=True)
class Local:
    replica: Replica
    phase: Phase = Phase.IDLE
    followed: int = -1
    """The creation of the leader's node that this replica follows or has won: what tells one leader from the
    next, on this broker alone."""
    term: int = 0
    """Rises whenever the role changes: an answer to a question of an earlier role is not acted upon."""
    isr_version: int = NOT_READ
    """Of the ISR's node, as this leader has read or written it; -1: there is none."""
    writing: bool = False
    """A write of the ISR is under way."""
    assigned: tuple[NodeId, ...] = ()
    """AR; the replica's own ``replicas`` have RAR too, who fetch as well."""
    target: tuple[NodeId, ...] = ()
    """RAR: what the partition is reassigned to; empty when it is not."""
    yielding: bool = False
    """It gives the leadership away after a reassignment: clients are served no more."""
    resigned: int = -1
    """The creation of the node that this replica has given up, which may be there still."""
    has_epoch: bool = False
    """Of a leader: it has been elected where leaders have epochs."""
    commits: Commits = field(default_factory=Commits)

    @property
    def leads(self) -> bool:
        return self.phase in (Phase.OPENING, Phase.LEADING)


class Terms:
    """Questions and timers of a replica's role: an answer that comes, or a timer that fires, in another term
    is ignored."""

    def __init__(self, ctx: Context, coordination: Coordination) -> None:
        self._ctx = ctx
        self._coordination = coordination

    def ask(self, local: Local, operation: Operation, on_answer: OnAnswer) -> None:
        term = local.term
        self._coordination.ask(operation, lambda answer: on_answer(answer) if local.term == term else None)

    def within(self, local: Local, then: Callable[[], None]) -> Callable[[], None]:
        """Returns ``then``, unless the term of now is over when it is called."""
        term = local.term
        return lambda: then() if local.term == term else None

    def later(self, local: Local, what: str, ms: float, then: Callable[[], None]) -> None:
        """Calls ``then`` later, if the term goes on. ``what`` names the timer; each partition has its own."""
        self.wait(local, what, ms, self.within(local, then))

    def wait(self, local: Local, what: str, ms: float, then: Callable[[], None]) -> None:
        """Does as ``later``, in whatever term."""
        self._ctx.set_timer(f"{what}:{local.replica.tp}", self._ctx.now_ms + ms, then)

    def cancel(self, local: Local, what: str) -> None:
        self._ctx.cancel_timer(f"{what}:{local.replica.tp}")

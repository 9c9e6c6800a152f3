"""A record of a share group: who has it, how often it was delivered, and what became of it.

KIP-932 has the states, their transitions and the delivery limit; KIP-1222 has ``renew``. Brokers confirm the
acknowledgement of a record below the start offset of the group to anybody, so a confirmation proves nothing
once the lock of its member may have ended.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import ClassVar, NamedTuple

from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    ModelError,
    Operation,
    Outcome,
    Refused,
    frozen,
    in_words,
    unreadable,
)

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "available", "acquired", "acknowledged", "archived"
FINAL = {"accept": ACKNOWLEDGED, "reject": ARCHIVED}
EXPIRE = "expire"


class Lock(NamedTuple):
    """A delivery to a member."""

    member: Hashable
    deliveries: int | None
    """The delivery count; None where nobody knows it."""
    renewals: int = 0
    ended: bool = False


class Shared(NamedTuple):
    """A state of a record."""

    status: str
    member: Hashable = None
    """Who has it."""
    deliveries: int | None = 0
    """Of the last delivery; None where nobody knows it."""
    recorded: int = 0
    """The highest count that a confirmed release has put on record."""
    locks: frozenset[Lock] = frozenset()
    """The last one of each member; without faults that of ``member`` alone."""

    def lock_of(self, member: Hashable) -> Lock | None:
        return next((one for one in self.locks if one.member == member), None)

    def with_lock(self, lock: Lock) -> frozenset[Lock]:
        return frozenset({lock, *(one for one in self.locks if one.member != lock.member)})


class Share(Model[Shared]):
    """Records of a share group, each for itself."""

    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire -> {:record r, :member m, :count n}: r was available and is m's, the n-th time",
        "accept": "accept {:record r, :member m}: r was m's and is acknowledged",
        "reject": "reject {:record r, :member m}: r was m's and is archived",
        "release": "release {:record r, :member m}: r was m's; available, or archived if n is the limit",
        "renew": "renew {:record r, :member m}: r was m's and is, and its lock begins again",
        "expire": "expire {:record r, :member m, :count n}: m's lock ended; then as release",
    }
    _timed = True
    """Whether the history says when a lock may have ended: it has ``expire``."""

    def __init__(self, limit: int = 5, faults: bool = False) -> None:
        """``limit``: how often a record is delivered at most, ``group.share.delivery.count.limit``; 0 for any
        number. ``faults``: connections may break, members may crash and leaders may change, and then a
        delivery is taken back or reaches nobody. Raises ModelError."""
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise ModelError(f"the limit is a whole number from 0 on, not {in_words(limit)}")
        self._limit, self._faults = limit, bool(faults)

    def initial(self) -> Shared:
        return Shared(AVAILABLE)

    def partition(self, operation: Operation) -> Hashable:
        value = operation.argument if operation.outcome is not Outcome.OK else operation.result
        record: Hashable = frozen(value.get("record")) if isinstance(value, Mapping) else None
        return record

    def narrowed(self, operations: Sequence[Operation]) -> Share:
        same = copy(self)
        same._timed = any(one.f == EXPIRE for one in operations)
        return same

    def step(self, state: Shared, operation: Operation) -> Shared | Refused:
        value = operation.value
        if not isinstance(value, Mapping) or value.get("member") is None:
            raise unreadable(operation, "{:member m}", value)
        member = frozen(value["member"])
        lock = state.lock_of(member)
        if operation.f == "acquire":
            return self._acquired(state, member, _number(operation, "count"))
        if lock is None:
            return REFUSED  # it has not got this record, or under faults never had it
        if operation.f == EXPIRE:
            return self._expired(state, lock, operation)
        if state.status in FINAL.values():
            return state if self._faults and (lock.ended or not self._timed) else REFUSED
        has_it = state.status == ACQUIRED and state.member == member
        if operation.f == "renew":
            renewed = lock._replace(renewals=lock.renewals + 1, ended=False)
            # Where another had it, or nobody, the member was given it again and was not told yet.
            count = state.deliveries if has_it else None
            return state._replace(
                status=ACQUIRED, member=member, deliveries=count, locks=state.with_lock(renewed)
            )
        if operation.f == "release":
            recorded = state.recorded
            if has_it and operation.outcome is Outcome.OK:
                recorded = max(recorded, state.deliveries or 0)
            return self._let_go(state._replace(recorded=recorded), archives=has_it)
        return self._without(state, FINAL[operation.f])

    def _acquired(self, state: Shared, member: Hashable, count: int | None) -> Shared | Refused:
        if state.status in FINAL.values():
            return REFUSED
        expected = (state.deliveries or 0) + 1
        if self._limit and (count or (1 if self._faults else expected)) > self._limit:
            return REFUSED
        held = state.status == ACQUIRED and self._timed
        grown = None not in (count, state.deliveries) and (count or 0) > (state.deliveries or 0)
        if self._faults:
            if (held and grown) or (count is not None and count <= state.recorded):
                return REFUSED
        elif held or count not in (None, expected):
            return REFUSED
        else:
            count = expected
        lock = Lock(member, count)
        if not self._faults:
            return Shared(ACQUIRED, member, count, state.recorded, frozenset({lock}))
        if state.locks and not grown:  # a delivery was taken back, and nothing proves whose
            ended = frozenset(one._replace(ended=True) for one in state.locks)
            state = state._replace(locks=ended)
            lock = lock._replace(ended=state.lock_of(member) is not None)
        locks = state.with_lock(lock)
        return Shared(ACQUIRED, member, count, state.recorded, locks)

    def _expired(self, state: Shared, lock: Lock, operation: Operation) -> Shared | Refused:
        renewals = _number(operation, "renewals") or 0
        if lock.deliveries != _number(operation, "count") or lock.renewals > renewals:
            return REFUSED  # of another delivery, or of the time before it was renewed
        after = state._replace(locks=state.with_lock(lock._replace(ended=True)))
        if state.status != ACQUIRED or state.member != lock.member:
            return after
        return self._let_go(after, archives=not self._faults)

    def _let_go(self, state: Shared, *, archives: bool) -> Shared:
        """``archives``: whether the last delivery that is allowed was the last one for certain."""
        last = self._limit and (state.deliveries or 0) >= self._limit
        return self._without(state, ARCHIVED if archives and last else AVAILABLE)

    def _without(self, state: Shared, status: str) -> Shared:
        locks = state.locks if self._faults else frozenset()
        return state._replace(status=status, member=None, locks=locks)

    def describe_state(self, state: Shared) -> str:
        owner = f" by {in_words(state.member)}" if state.member is not None else ""
        times = "?" if state.deliveries is None else state.deliveries
        return f"{state.status}{owner}, delivered {times} times"


def _number(operation: Operation, name: str) -> int | None:
    number = operation.value.get(name)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise unreadable(operation, f"a number as :{name}", number)
    return number

"""Locks and permits that have owners, as Hazelcast's tests with Jepsen have them.

The owner of an operation is the ``:client`` of its value, ``{:client c, :fence n}``; where it has none, that
of the other operations of the same process; where these have none either, the process itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple

from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    ModelError,
    OneOf,
    Operation,
    Outcome,
    Refused,
    frozen,
    in_words,
    unreadable,
)

FREE, HELD = "free", "held"


class Mutex(Model[str]):
    """A lock that one client holds at a time. A state is FREE or HELD: who holds it is not looked at."""

    jepsen: ClassVar[str] = "knossos.model/mutex"
    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire: the lock was free and is held now",
        "release": "release: the lock was held and is free now",
    }

    def initial(self) -> str:
        return FREE

    def step(self, state: str, operation: Operation) -> str | Refused:
        before, after = (FREE, HELD) if operation.f == "acquire" else (HELD, FREE)
        return after if state == before else REFUSED

    def describe_state(self, state: str) -> str:
        return str(state)


class Owners:
    """The owner of each operation."""

    def __init__(self, operations: Sequence[Operation] = ()) -> None:
        self._of_process: dict[int, dict[Hashable, None]] = {}
        for one in operations:
            client = _client(one)
            if client is not None:
                self._of_process.setdefault(one.process, {})[client] = None
        self._clients = dict.fromkeys(client for every in self._of_process.values() for client in every)

    def of(self, operation: Operation) -> tuple[Hashable, ...]:
        """The owner, or all that it may be."""
        client = _client(operation)
        if client is not None:
            return (client,)
        if operation.process in self._of_process:
            return tuple(self._of_process[operation.process])
        if self._clients:  # owners have names here, and nobody knows this one's
            return (*self._clients, ("the client of process", operation.process))
        return (operation.process,)


def _client(operation: Operation) -> Hashable:
    for value in (operation.result, operation.argument):
        if isinstance(value, Mapping) and value.get("client") is not None:
            client: Hashable = frozen(value["client"])
            return client
    return None


class Held(NamedTuple):
    """A state of a lock."""

    owner: Hashable
    """None where it is free."""
    times: int
    """How often the owner has acquired it and not released it."""
    fence: int
    """That of this hold; 0 where nobody was told it."""
    highest: int
    """The highest fence that anybody was told."""


class _Lock(Model[Held]):
    names_process: ClassVar[bool] = True
    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire -> {:client c}: the lock was free and is c's",
        "release": "release -> {:client c}: the lock was c's and is free",
    }
    _fenced: ClassVar[bool] = False
    _limit = 1
    """How often an owner may hold it at once; 0 for any number."""
    _owners = Owners()

    def initial(self) -> Held:
        return Held(None, 0, 0, 0)

    def narrowed(self, operations: Sequence[Operation]) -> _Lock:
        same = copy(self)
        same._owners = Owners(operations)
        return same

    def step(self, state: Held, operation: Operation) -> Held | OneOf[Held] | Refused:
        after = [
            one
            for owner in self._owners.of(operation)
            if (
                one := self._acquired(state, owner, operation)
                if operation.f == "acquire"
                else self._released(state, owner)
            )
            is not None
        ]
        if not after:
            return REFUSED
        return after[0] if len(after) == 1 else OneOf(dict.fromkeys(after))

    def _acquired(self, state: Held, owner: Hashable, operation: Operation) -> Held | None:
        again = state.owner is not None
        if again and (state.owner != owner or 0 < self._limit <= state.times):
            return None
        fence = _fence(operation) if self._fenced else 0
        if not fence:
            return Held(owner, state.times + 1, state.fence, state.highest)
        if again and state.fence:
            return Held(owner, state.times + 1, fence, state.highest) if fence == state.fence else None
        return Held(owner, state.times + 1, fence, fence) if fence > state.highest else None

    def _released(self, state: Held, owner: Hashable) -> Held | None:
        if state.owner != owner or state.owner is None:
            return None
        if state.times == 1:
            return Held(None, 0, 0, state.highest)
        return state._replace(times=state.times - 1)

    def describe_state(self, state: Held) -> str:
        return ", ".join(self._parts(state))

    def _parts(self, state: Held) -> Iterator[str]:
        most = f" of {self._limit}" if self._limit else ""
        times = f" {state.times} times{most}" if self._limit != 1 else ""
        yield "no owner" if state.owner is None else f"owner {_name(state.owner)}{times}"
        if state.fence:
            yield f"fence {state.fence}"
        if state.highest != state.fence:
            yield f"highest fence {state.highest}"


class OwnerAwareMutex(_Lock):
    """A lock that one client holds at a time, and that only this client releases."""

    jepsen: ClassVar[str] = "jepsen.hazelcast/OwnerAwareMutex"


class ReentrantMutex(_Lock):
    """A lock that its owner may acquire again, up to a limit, and releases as often."""

    jepsen: ClassVar[str] = "jepsen.hazelcast/ReentrantMutex"

    def __init__(self, limit: int = 2) -> None:
        """``limit``: how often the owner may hold it at once, 2 in Hazelcast's test; 0 for any number. Raises
        ModelError."""
        self._limit = _whole("limit", limit, 0)


class FencedMutex(_Lock):
    """A lock with an owner whose fences rise from one hold to the next."""

    jepsen: ClassVar[str] = "jepsen.hazelcast/FencedMutex"
    _fenced: ClassVar[bool] = True
    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire -> {:client c, :fence n}: the lock was free and is c's; n is the highest fence",
        "release": "release -> {:client c}: the lock was c's and is free",
    }


class ReentrantFencedMutex(_Lock):
    """A lock with an owner who may acquire it again, and then gets the fence of this hold."""

    jepsen: ClassVar[str] = "jepsen.hazelcast/ReentrantFencedMutex"
    _fenced: ClassVar[bool] = True
    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire -> {:client c, :fence n}: the lock was free or c's, and is c's",
        "release": "release -> {:client c}: c holds the lock once less",
    }

    def __init__(self, limit: int = 2) -> None:
        """``limit``: how often the owner may hold it at once, 2 in Hazelcast's test; 0 for any number. Raises
        ModelError."""
        self._limit = _whole("limit", limit, 0)


class Semaphore(Model[frozenset[tuple[Hashable, int]]]):
    """Permits that clients acquire and give back. A state is a frozenset of (owner, permits)."""

    names_process: ClassVar[bool] = True
    jepsen: ClassVar[str] = "jepsen.hazelcast/AcquiredPermitsModel"
    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire -> {:client c}: a permit was left and is c's",
        "release": "release -> {:client c}: c had a permit and gives it back",
    }
    _owners = Owners()

    def __init__(self, permits: int = 2) -> None:
        """``permits``: how many there are, as in Hazelcast's test. Raises ModelError."""
        self._permits = _whole("number of permits", permits, 1)

    def initial(self) -> frozenset[tuple[Hashable, int]]:
        return frozenset()

    def narrowed(self, operations: Sequence[Operation]) -> Semaphore:
        same = copy(self)
        same._owners = Owners(operations)
        return same

    def step(
        self, state: frozenset[tuple[Hashable, int]], operation: Operation
    ) -> frozenset[tuple[Hashable, int]] | OneOf[frozenset[tuple[Hashable, int]]] | Refused:
        held = dict(state)
        change = 1 if operation.f == "acquire" else -1
        if sum(held.values()) + change > self._permits:
            return REFUSED
        after = [
            frozenset((other, number) for other, number in changed.items() if number)
            for owner in self._owners.of(operation)
            if (changed := {**held, owner: held.get(owner, 0) + change})[owner] >= 0
        ]
        if not after:
            return REFUSED
        return after[0] if len(after) == 1 else OneOf(dict.fromkeys(after))

    def describe_state(self, state: frozenset[tuple[Hashable, int]]) -> str:
        held = ", ".join(sorted(f"{number} of {_name(owner)}" for owner, number in state))
        return f"{held or 'no permits'} (of {self._permits})"


def _fence(operation: Operation) -> int:
    """The fence that the client was told; 0 where it was told none."""
    value = operation.result if operation.outcome is Outcome.OK else None
    fence = value.get("fence") if isinstance(value, Mapping) else None
    if fence is None:
        return 0
    if not isinstance(fence, int) or isinstance(fence, bool):
        raise unreadable(operation, "a number as :fence", fence)
    return max(fence, 0)


def _whole(what: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ModelError(f"the {what} is a whole number from {least} on, not {in_words(value)}")
    return value


def _name(owner: Hashable) -> str:
    if isinstance(owner, int):
        return f"process {owner}"
    return " ".join(map(str, owner)) if isinstance(owner, tuple) else str(owner)

"""Objects of several keys at once: registers in transactions, and accounts between which money is moved."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, TypeAlias

from wrackline.checkers.models.observability import Unobservable
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
from wrackline.values import Initial, key_of

Held: TypeAlias = frozenset[tuple[Hashable, Any]]
"""Keys, and what each has now."""
_READS, _WRITES = ("r", "read"), ("w", "write")


class MultiRegister(Model[Held]):
    """Registers that are read and written several at a time. A state is a frozenset of (key, value), without
    those that hold what they held at first."""

    jepsen: ClassVar[str] = "knossos.model/multi-register"
    operations: ClassVar[Mapping[str, str]] = {
        "txn": "txn [[:r k nil] [:w k v] ..] -> [[:r k v] ..]: all of it at once, one after another"
    }

    def __init__(self, initial: Any = None) -> None:
        """``initial``: what each register holds at first, or a map of keys to it."""
        self._initial = Initial(initial)
        self._read: frozenset[tuple[Hashable, Hashable]] | None = None

    def initial(self) -> Held:
        return frozenset()

    def narrowed(self, operations: Sequence[Operation]) -> MultiRegister:
        """A register need not remember which value it holds if it is none that was read there."""
        same = copy(self)
        same._read = frozenset(
            (key, value)
            for one in operations
            if one.outcome is Outcome.OK
            for f, key, value in _micro_operations(one, one.result)
            if f in _READS
        )
        return same

    def step(self, state: Held, operation: Operation) -> Held | Refused:
        known = operation.outcome is Outcome.OK
        changed: dict[Hashable, Hashable] = {}
        before = dict(state)
        for f, key, value in _micro_operations(operation, operation.result if known else operation.argument):
            if f in _WRITES:
                remembered = self._read is None or (key, value) in self._read
                changed[key] = value if remembered else Unobservable.UNOBSERVABLE
            elif known:
                held = changed[key] if key in changed else before.get(key, self._initial(key))
                if held != value:
                    return REFUSED
        if not changed:
            return state
        after = {**before, **changed}
        return frozenset((key, value) for key, value in after.items() if value != self._initial(key))

    def observes(self, operation: Operation) -> bool:
        return all(f in _READS for f, _, _ in _micro_operations(operation, operation.argument))

    def describe_state(self, state: Held) -> str:
        return _in_words(state)


class Bank(Model[Held]):
    """Accounts with money that is moved between them: what is taken from one is given to the other at once. A
    state is a frozenset of (account, balance), without those that have what they had at first.

    Arguments are as in Jepsen's bank test: ``transfer {:from a :to b :amount n}``, ``read -> {a n, b m}``."""

    puts = ("transfer",)
    operations: ClassVar[Mapping[str, str]] = {
        "transfer": "transfer {:from a :to b :amount n}: a has n less and b has n more",
        "read": "read -> {a n, b m ..}: the balances of these accounts",
    }

    def __init__(self, initial: Any = None, *, negative: bool = False) -> None:
        """``initial``: the balance of each account at first, or a map of accounts to balances; 10 by default,
        as in Jepsen's test. ``negative``: whether a balance may be below 0."""
        self._initial = Initial(initial, 10)
        self._negative = negative

    def initial(self) -> Held:
        return frozenset()

    def step(self, state: Held, operation: Operation) -> Held | Refused:
        balances = dict(state)
        if operation.f == "read":
            shown = _map(operation, operation.result)
            right = all(
                balances.get(account, self._initial(account)) == balance
                for account, balance in ((key_of(name), balance) for name, balance in shown.items())
            )
            return state if right else REFUSED
        moved = _map(operation, operation.argument)
        try:
            source, target, amount = key_of(moved["from"]), key_of(moved["to"]), moved["amount"]
        except KeyError as error:
            raise ModelError(f":transfer needs :from, :to and :amount, not {in_words(moved, 60)}") from error
        balances[source] = balances.get(source, self._initial(source)) - amount
        balances[target] = balances.get(target, self._initial(target)) + amount
        if balances[source] < 0 and not self._negative:
            return REFUSED
        return frozenset(one for one in balances.items() if one[1] != self._initial(one[0]))

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"

    def describe_state(self, state: Held) -> str:
        return _in_words(state)


def _micro_operations(operation: Operation, value: Any) -> list[tuple[str, Hashable, Hashable]]:
    result = []
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, list | tuple) and len(one) == 2 and one[0] in _READS:
            one = (*one, None)
        if not (isinstance(one, list | tuple) and len(one) == 3 and one[0] in (*_READS, *_WRITES)):
            raise unreadable(operation, "[[:r k v] [:w k v] ..]", value, 60)
        result.append((one[0], frozen(one[1]), frozen(one[2])))
    return result


def _map(operation: Operation, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise unreadable(operation, "a map", value, 60)
    return value


def _in_words(state: Any) -> str:
    inside = ", ".join(sorted(f"{key!r}: {value!r}" for key, value in state))
    return "{" + inside + "}" if inside else "as at first"

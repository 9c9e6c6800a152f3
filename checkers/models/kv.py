"""A map of keys to values, each key for itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    ModelError,
    Operation,
    Outcome,
    Refused,
    frozen,
    in_words,
)
from wrackline.checkers.models.registers import UNOBSERVABLE, Value, held
from wrackline.values import Initial


class Beginnings:
    """Texts are kept sorted: one that is the beginning of others stands right before them. Lists are kept as
    a tree."""

    def __init__(self, values: Iterable[Hashable]) -> None:
        seen = set(values)
        self._texts = sorted(one for one in seen if isinstance(one, str))
        self._others = {one for one in seen if not isinstance(one, str | tuple)}
        self._tree: dict[Hashable, Any] = {}
        for one in seen:
            if isinstance(one, tuple):
                node = self._tree
                for each in one:
                    node = node.setdefault(each, {})

    def has(self, value: Hashable) -> bool:
        """Tells whether ``value`` is one of the values, or the beginning of one."""
        if isinstance(value, str):
            at = bisect_left(self._texts, value)
            return at < len(self._texts) and self._texts[at].startswith(value)
        if not isinstance(value, tuple):
            return value in self._others
        node: Any = self._tree
        for each in value:
            node = node.get(each)
            if node is None:
                return False
        return True


class Kv(Model[Value]):
    """A map. Its keys are decided one by one, so a state is the value of one key, in a tuple.

    Argument and result are ``[key value]``, also of ``get`` and ``delete``, whose argument is ``[key
    nil]``."""

    operations: ClassVar[Mapping[str, str]] = {
        "get": "get [k nil] -> [k v]: the key's value; nil where it has none",
        "put": "put [k v]: the key's value is v",
        "append": "append [k v]: v is put behind the text or list that is the key's value",
        "cas": "cas [k [old new]]: the key's value was old, and is new",
        "delete": "delete [k nil]: the key has no value",
    }

    puts = ("put", "append", "cas")

    def __init__(self, initial: Any = None) -> None:
        """``initial``: the value of each key at first, or a map of keys to it."""
        self._first = Initial(initial)
        self._initial: Value = (None if isinstance(initial, Mapping) else self._first(None),)
        self._beginnings: Beginnings | None = None

    def initial(self) -> Value:
        return self._initial

    def narrowed(self, operations: Sequence[Operation]) -> Kv:
        """A value that is not the beginning of any that was seen will not become one by ``append``, so one
        state stands for all of these."""
        same = copy(self)
        same._beginnings = Beginnings(_seen(operations))
        if operations:
            same._initial = (self._first(self.partition(operations[0])),)
        return same

    def partition(self, operation: Operation) -> Hashable:
        key: Hashable = frozen(_key_value(operation, operation.argument)[0])
        return key

    def step(self, state: Value, operation: Operation) -> Value | Refused:
        value = frozen(_key_value(operation, operation.argument)[1])
        match operation.f:
            case "get":
                return state if (frozen(_key_value(operation, operation.result)[1]),) == state else REFUSED
            case "put":
                return self._holding(value)
            case "append":
                return self._holding(_appended(state[0], value)) if state else state
            case "cas":
                old, new = _pair(operation)
                return self._holding(new) if state == (old,) else REFUSED
            case "delete":
                return (None,)
        return REFUSED

    def _holding(self, value: Hashable) -> Value:
        if self._beginnings is None or value is None or self._beginnings.has(value):
            return (value,)
        return UNOBSERVABLE

    def observes(self, operation: Operation) -> bool:
        return operation.f == "get"

    def describe_state(self, state: Value) -> str:
        return held(state)


def _seen(operations: Sequence[Operation]) -> Iterator[Hashable]:
    for one in operations:
        if one.f == "get" and one.outcome is Outcome.OK:
            yield frozen(_key_value(one, one.result)[1])
        elif one.f == "cas":
            yield _pair(one)[0]


def _key_value(operation: Operation, value: Any) -> tuple[Any, Any]:
    if isinstance(value, list | tuple) and len(value) == 2:
        return value[0], value[1]
    if operation.outcome is Outcome.OK or value is not None:
        raise ModelError(
            f":{operation.f} needs [key value], not {in_words(value)} (process {operation.process}, invoked "
            f"at {operation.inv})"
        )
    return None, None


def _pair(operation: Operation) -> tuple[Hashable, Hashable]:
    value = frozen(_key_value(operation, operation.argument)[1])
    if not (isinstance(value, tuple) and len(value) == 2):
        raise ModelError(f":cas needs [key [old new]], not {in_words(operation.argument)}")
    return value[0], value[1]


def _appended(before: Any, value: Any) -> Hashable:
    if before is None:
        return value if isinstance(value, str) else (value,)
    if isinstance(before, str) and isinstance(value, str):
        return before + value
    if isinstance(before, tuple):
        return (*before, value)
    raise ModelError(f":append of {value!r:.40} to {before!r:.40}, which is neither text nor a list")

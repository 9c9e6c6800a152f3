"""An append-only log with offsets from 0 on, as a partition of Kafka is. Values may repeat."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from wrackline.checkers.models.observability import Unobservable
from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    Operation,
    Outcome,
    Refused,
    frozen,
    unreadable,
)

Record: TypeAlias = tuple[int, Hashable]
"""(offset, value)."""


class Log(Model[Any]):
    """A log. A state is the values in it, in order; of a narrowed model, how many they are."""

    operations: ClassVar[Mapping[str, str]] = {
        "append": "append v -> [offset v]: v is there, at the end; nil as offset: nobody was told where",
        "read": "read -> [[offset v] ..]: these records are there; others may be too",
        "end": "end -> offset: the next record will be there",
    }

    def initial(self) -> Any:
        return ()

    def narrowed(self, operations: Sequence[Operation]) -> Model[Any]:
        return _Shown(operations)

    def step(self, state: tuple[Hashable, ...], operation: Operation) -> tuple[Hashable, ...] | Refused:
        match operation.f:
            case "append":
                offset, value = _appended(operation)
                return (*state, value) if offset in (None, len(state)) else REFUSED
            case "read":
                there = all(o < len(state) and state[o] == value for o, value in _records(operation))
                return state if there else REFUSED
            case "end":
                return state if operation.result == len(state) else REFUSED
        return REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.f != "append"


class _Shown(Model[int]):
    """A log of which it is known what these operations show of it: nothing is ever put in a place where
    another value was shown, and nothing but what its client was told is there. So what a log of some length
    holds is known wherever it matters, and a state is the length alone."""

    operations = Log.operations

    def __init__(self, operations: Sequence[Operation]) -> None:
        appends = [one for one in operations if one.f == "append"]
        done = sorted((one for one in operations if one.outcome is Outcome.OK), key=lambda one: one.ret or 0)
        values = {_appended(one)[1] for one in appends}
        self._told = {_appended(one)[0] for one in done if one.f == "append"} - {None}
        """Offsets whose append is known."""
        self._shown: dict[int, Hashable] = {}
        """Offset -> value. Of several that were shown it is the first; who shows another has no place."""
        for one in done:
            for offset, value in _shown(one):
                if value in values:
                    self._shown.setdefault(offset, value)

    def initial(self) -> int:
        return 0

    def step(self, state: int, operation: Operation) -> int | Refused:
        match operation.f:
            case "append":
                offset, value = _appended(operation)
                fits = offset == state if offset is not None else state not in self._told
                return state + 1 if fits and self._shown.get(state, value) == value else REFUSED
            case "read":
                there = all(
                    o < state and self._shown.get(o, Unobservable.UNOBSERVABLE) == value
                    for o, value in _records(operation)
                )
                return state if there else REFUSED
            case "end":
                return state if operation.result == state else REFUSED
        return REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.f != "append"

    def describe_state(self, state: int) -> str:
        seen = f" ({self._shown[state]!r} was seen at {state})" if state in self._shown else ""
        return f"{state} record{'s' * (state != 1)}{seen}"


def alike(operations: Sequence[Operation]) -> list[Operation]:
    """The same operations on a log, where those appends that nobody knows the place of and whose value nobody
    read are appends of one value. They can be exchanged for each other, and the search tries only one of
    those that are equal."""
    read = {value for one in operations if one.f == "read" for _, value in _shown(one)}
    found = []
    for one in operations:
        if one.f == "append":
            offset, value = _appended(one)
            if offset is None and value not in read:
                result = None if one.result is None else (None, Unobservable.UNOBSERVABLE)
                one = replace(one, argument=Unobservable.UNOBSERVABLE, result=result)
        found.append(one)
    return found


def _shown(one: Operation) -> Iterable[Record]:
    """The records that an operation of known outcome shows."""
    if one.outcome is not Outcome.OK or one.f == "end":
        return ()
    if one.f == "read":
        return _records(one)
    offset, value = _appended(one)
    return () if offset is None else ((offset, value),)


def _appended(one: Operation) -> tuple[int | None, Hashable]:
    """(offset, value). Raises ModelError."""
    if one.outcome is not Outcome.OK:
        return None, frozen(one.argument)
    match one.result:
        case [int() | None as offset, value]:
            return offset, frozen(value)
    raise unreadable(one, "[offset value]", one.result)


def _records(one: Operation) -> list[Record]:
    """Returns the records of a read. Raises ModelError."""
    found: list[Record] = []
    for record in one.result if isinstance(one.result, list | tuple) else [one.result]:
        match record:
            case [int(offset), value]:
                found.append((offset, frozen(value)))
            case _:
                raise unreadable(one, "[[offset value] ..]", one.result)
    return found

"""Histories of one object, or of transactions, in Jepsen's words: as the columns that checks and searches
read.

A register has ``:write v`` and ``:read v`` (and ``:cas [old new]``), a queue ``:enqueue v`` and ``:dequeue
v``, a set ``:add v`` and ``:read #{..}``, a mutex ``:acquire`` and ``:release``; Elle's histories have ``:txn
[[f k v] ..]``. With ``independent`` keys every value is a pair [key value], and each key is an object of its
own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, columns
from wrackline.checkers.jvm.calls import (
    EMPTY,
    NIL,
    SHAPES,
    Act,
    Calls,
    Model,
    Outcome,
    Shape,
    Transactions,
    TransactionsBuilder,
)
from wrackline.history.jepsen.text import Operation, TextError

ELLE_MODELS = ("list-append", "rw-register")
_REGISTERS = (Model.REGISTER, Model.CAS_REGISTER)
_WRITES = {"r": False, "read": False, "w": True, "write": True}
_PUTS = ("write", "enqueue")
_TAKES = ("read", "dequeue")


@dataclass(slots=True)
class Done:
    """An invocation with what became of it. ``ret`` is NEVER where nobody knows."""

    process: int
    f: str
    value: Any
    """Of the completion where it is ok, else of the invocation."""
    inv: int
    ret: int
    outcome: Outcome
    at: int
    """Place of the invocation in the file, from 1."""
    argument: Any = None
    """Value of the invocation."""


@dataclass(slots=True)
class Subject:
    """One object's operations. ``initial``: what a register holds at first."""

    key: Any
    done: list[Done] = field(default_factory=list)
    _ids: dict[Hashable, int] = field(default_factory=dict)

    def calls(self, model: Model, initial: Any = None) -> Calls:
        """The calls for Knossos' search. Raises TextError for an operation that the model does not have."""
        shapes = SHAPES[model]
        names = list(shapes)
        flat = self._first(initial) if model is Model.MULTI_REGISTER else []
        registers = len(flat) // 2
        rows = []
        for one in self.possible():
            if one.f not in shapes:
                raise TextError(
                    f"operation {one.at}: {model} has no :{one.f}, only {', '.join(':' + n for n in names)}"
                )
            a, b = self._words(shapes[one.f], one, flat)
            rows.append((names.index(one.f), a, b, one.inv, one.ret))
        f, first, second, inv, ret = (
            np.ascontiguousarray(c) for c in np.array(rows, np.int64).reshape(-1, 5).T
        )
        start = registers if model is Model.MULTI_REGISTER else None
        if model in _REGISTERS:
            start = self._id(initial)
        return Calls(model, f, first, second, inv, ret, np.array(flat, dtype=np.int64), start)

    def _first(self, initial: Any) -> list[int]:
        """Each key of several registers, and what it holds at first."""
        of_key = {frozen(key): value for key, value in initial.items()} if isinstance(initial, dict) else None
        txns = [one for one in self.possible() if one.f == "txn"]
        keys = {frozen(key): None for one in txns for _, key, _ in self._micro_operations(one)}
        held = [(key, initial if of_key is None else of_key.get(key)) for key in keys]
        return [self._id(word) for pair in held for word in pair]

    def _micro_operations(self, one: Done) -> list[tuple[bool, Any, Any]]:
        """(whether it writes, key, value) of each in a transaction. Raises TextError."""
        found: list[tuple[bool, Any, Any]] = []
        for mop in one.value if isinstance(one.value, list) else [one.value]:
            match mop:
                case [str(f), key, value] if f in _WRITES:
                    found.append((_WRITES[f], key, value))
                case _:
                    needs = "[[:r k v] [:w k v] ..]"
                    raise TextError(f"operation {one.at}: :txn needs {needs}, not {one.value!r:.40}")
        return found

    def possible(self) -> list[Done]:
        """The operations that may have happened; a read that gave nothing back is left out."""
        return [
            one
            for one in self.done
            if one.outcome is not Outcome.FAIL and not (one.f == "read" and one.outcome is not Outcome.OK)
        ]

    def _words(self, shape: Shape, one: Done, flat: list[int]) -> tuple[int, int]:
        match shape:
            case Shape.NONE:
                return NIL, NIL
            case Shape.PAIR:
                if not (isinstance(one.value, list) and len(one.value) == 2):
                    raise TextError(f"operation {one.at}: :{one.f} needs [old new], not {one.value!r:.40}")
                return self._id(one.value[0]), self._id(one.value[1])
            case Shape.TXN:
                begin = len(flat)
                for writes, key, value in self._micro_operations(one):
                    known = writes or one.outcome is Outcome.OK
                    flat += (int(writes), self._id(key), self._id(value) if known else NIL)
                return begin, len(flat)
            case Shape.ELEMENTS:
                if not isinstance(one.value, list | None):
                    raise TextError(f"operation {one.at}: :{one.f} needs a set, not {one.value!r:.40}")
                begin = len(flat)
                flat += [self._id(element) for element in one.value or ()]
                return begin, len(flat)
        if one.f == "dequeue" and one.value in (None, "empty"):
            return (NIL if one.outcome is not Outcome.OK else EMPTY), NIL
        # A read of nil is a value like any other here: Knossos would take it as unknown and let it pass.
        return self._id(one.value), NIL

    def _id(self, value: Any) -> int:
        key = frozen(value)
        return self._ids.setdefault(key, len(self._ids) + 1)

    def value(self, number: int) -> Any:
        """The value that this number stands for."""
        return next(value for value, known in self._ids.items() if known == number)

    def exact(self, initial: Any = None) -> Columns:
        """The columns that the exact checks of a register or a FIFO queue read. The initial value is NOTHING.
        Raises TextError for an operation that neither of them has."""
        rows = []
        self._ids.setdefault(frozen(initial), NOTHING)
        for one in self.done:
            puts = one.f in _PUTS
            if not puts and one.f not in _TAKES:
                has = ", ".join(f":{f}" for f in (*_PUTS, *_TAKES))
                raise TextError(f"operation {one.at}: a register or queue has no :{one.f}, only {has}")
            if not puts and one.outcome is not Outcome.OK and one.f == "read":
                continue
            nothing = one.f == "dequeue" and one.value in (None, "empty")
            value = NOTHING if nothing else self._id(one.value)
            rows.append((puts, value, one.inv, one.ret, one.outcome is Outcome.FAIL))
        return columns(rows)

    def rows_of_exact(self) -> list[Done]:
        """The operation of each row of ``exact``."""
        return [one for one in self.done if one.f != "read" or one.outcome is Outcome.OK]


def subjects(operations: Iterable[Operation], *, independent: bool = False) -> list[Subject]:
    """One subject, or one per key. Raises TextError."""
    found: dict[Hashable, Subject] = defaultdict(lambda: Subject(None))
    for one in paired(operations):
        key: Any = None
        if independent:
            if not (isinstance(one.value, list) and len(one.value) == 2):
                raise TextError(
                    f"operation {one.at}: with --independent a value is [key value], not {one.value!r:.40}"
                )
            key, one.value = one.value
            if isinstance(one.argument, list) and len(one.argument) == 2:
                one.argument = one.argument[1]
        subject = found[frozen(key)]
        subject.key = key
        subject.done.append(one)
    return list(found.values())


def paired(operations: Iterable[Operation]) -> Iterator[Done]:
    """Invocations with their completions, those of clients alone, in order of invocation. Times are places in
    the file. Raises TextError."""
    done: list[Done] = []
    open_of: dict[int, Done] = {}
    for at, operation in enumerate(operations, 1):
        process = operation.get("process")
        if not isinstance(process, int):
            continue
        kind, f = operation.get("type"), operation.get("f")
        if kind == "invoke":
            if process in open_of:
                raise TextError(
                    f"operation {at}: process {process} invokes again "
                    f"before operation {open_of[process].at} completed"
                )
            value = operation.get("value")
            open_of[process] = Done(process, str(f), value, at, NEVER, Outcome.INFO, at, value)
            done.append(open_of[process])
            continue
        if kind not in ("ok", "fail", "info"):
            raise TextError(f"operation {at}: :type is {kind!r}, not one of invoke, ok, fail, info")
        if process not in open_of:
            raise TextError(f"operation {at}: process {process} completes what it did not invoke")
        one = open_of.pop(process)
        one.outcome = Outcome[kind.upper()]
        if one.outcome is not Outcome.INFO:
            one.ret = at
        if one.outcome is Outcome.OK:
            one.value = operation.get("value")
    yield from done


@dataclass(slots=True)
class Numbers:
    """Keys and values as numbers: those that are some already stay as they are, others become -1, -2, ..."""

    names: dict[int, Any] = field(default_factory=dict)
    _ids: dict[Hashable, int] = field(default_factory=dict)

    def of(self, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62:
            return value
        key = frozen(value)
        if key not in self._ids:
            self._ids[key] = -1 - len(self._ids)
            self.names[self._ids[key]] = value
        return self._ids[key]


def transactions(
    operations: Iterable[Operation], model: str
) -> tuple[Transactions, Mapping[int, Any], list[Done]]:
    """The transactions for Elle, the keys and values behind negative numbers, and the operation of each
    transaction. Raises TextError."""
    builder = TransactionsBuilder()
    numbers = Numbers()
    done = list(paired(operations))
    for one in done:
        if not isinstance(one.value, list):
            raise TextError(
                f"operation {one.at}: a transaction's value is a list of [f k v], not {one.value!r:.40}"
            )
        mops = [_micro(one, mop, model, numbers.of) for mop in one.value]
        builder.add(one.process, one.inv, one.ret, one.outcome, mops)
    return builder.build(), numbers.names, done


def _micro(
    one: Done, mop: Any, model: str, number: Callable[[Any], int]
) -> tuple[Act, int, int | list[int] | None]:
    acts: Mapping[str, Act] = (
        {"append": Act.APPEND, "r": Act.READ_LIST}
        if model == "list-append"
        else {"w": Act.WRITE, "r": Act.READ}
    )
    if not (isinstance(mop, list) and len(mop) == 3 and mop[0] in acts):
        raise TextError(f"operation {one.at}: {model} has no micro-operation {mop!r:.40}")
    act, key, value = acts[mop[0]], number(mop[1]), mop[2]
    if value is None:
        return act, key, None
    if act is Act.READ_LIST and not isinstance(value, list):
        raise TextError(f"operation {one.at}: a read gives a list, not {value!r:.40}")
    return act, key, [number(each) for each in value] if act is Act.READ_LIST else number(value)


def frozen(value: Any) -> Hashable:
    """The same value as a key."""
    if isinstance(value, list):
        return tuple(frozen(each) for each in value)
    if isinstance(value, dict):
        return tuple(sorted((str(k), frozen(v)) for k, v in value.items()))
    return value if isinstance(value, Hashable) else str(value)

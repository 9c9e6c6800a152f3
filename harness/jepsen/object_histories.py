"""Operations on one object, or transactions, in the words of a model: as the columns that checks and searches
read.

A register has ``:write v`` and ``:read v`` (and ``:cas [old new]``), a queue ``:enqueue v`` and ``:dequeue
v``, a set ``:add v`` and ``:read #{..}``, a mutex ``:acquire`` and ``:release``; transactions are lists of
``[f k v]``, whatever the operation is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wrackline.checkers.exact.operations import NOTHING, Columns, columns
from wrackline.checkers.exact.transactions.columns import NIL, Act, Transactions, TransactionsBuilder
from wrackline.checkers.jvm.calls import EMPTY, SHAPES, Calls, Model, Shape
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import known, maker
from wrackline.checkers.models.protocol import Model as AnyModel
from wrackline.checkers.models.protocol import ModelError, Operation, Outcome
from wrackline.checkers.models.queues import NOTHING as FOUND_NOTHING
from wrackline.harness.jepsen.operations import completion_of
from wrackline.history.jepsen.foreign import TransactionName
from wrackline.history.jepsen.text import TextError
from wrackline.values import Initial, Text, Truth, spelt

ELLE_MODELS = ("list-append", "rw-register")
_REGISTERS = (Model.REGISTER, Model.CAS_REGISTER)
_QUEUES = (Model.FIFO_QUEUE, Model.UNORDERED_QUEUE, "queue", "total-queue")
_WRITES = {"r": False, "read": False, "w": True, "write": True}
_OF_REGISTERS = {"r": "read", "w": "write"}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "register": _OF_REGISTERS,
    "cas-register": _OF_REGISTERS,
    "strict-cas-register": _OF_REGISTERS,
}
"""Words that others have for a model's operations."""
_SUCCESSORS = 1 << 41
"""The numbers of processes that go on after an operation of unknown outcome begin here."""
_PUTS = ("write", "enqueue")


def _home_of(f: str) -> str:
    """Returns who knows such an operation, as the end of a sentence; empty where nobody does."""
    result = []
    for name in known():
        with suppress(ModelError):  # what others installed may be broken
            result += [name] if f in getattr(maker(name), "operations", ()) else []
    return f"; :{f} is of {', '.join(result)}" if result else ""


def asked(done: Sequence[Operation], name: str, model: AnyModel[Any] | Checker) -> list[Operation]:
    """The same operations in the model's own words, each with what it did: what was put is what the
    completion says of it. Raises TextError for an operation that the model has no words for."""
    words, has, puts = _WORDS.get(name, {}), frozenset(model.operations), frozenset(model.puts)
    transactions, sets = name == Model.MULTI_REGISTER, name == Model.SET
    found = []
    for one in done:
        f = words.get(one.f, one.f)
        if transactions and _is_transaction(one.argument):
            f = "txn"
        if f not in has and has:
            names = ", ".join(f":{f}" for f in model.operations)
            raise TextError(f"operation {one.at}: {name} has no :{one.f}, only {names}{_home_of(one.f)}")
        if sets and f == "read" and one.outcome is Outcome.OK:
            _refuse_no_set(one)
        put = one.argument
        if f in puts and one.outcome is Outcome.OK and one.result != put:
            put = _put(one)
        found.append(one if f == one.f and put is one.argument else replace(one, f=f, argument=put))
    return _with_words_as_elements(found) if name in _QUEUES else found


def _is_transaction(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(mop, tuple) for mop in value)


def _refuse_no_set(one: Operation) -> None:
    if not isinstance(one.result, tuple | frozenset):
        raise TextError(f"operation {one.until}: :read needs a set, not {spelt(one.result):.40}")


def _put(one: Operation) -> Any:
    """Returns the value of an operation whose completion says something else than its invocation. Raises
    TextError."""
    if one.result is None:
        raise TextError(
            f"operation {one.until}: this :ok of :{one.f} {spelt(one.argument):.40} has no :value, so it "
            "says that nil was put there; write there what was"
        )
    if _is_plain(one.result) and _is_plain(one.argument):
        raise TextError(
            f"operation {one.until}: this :ok of :{one.f} {spelt(one.argument):.40} says "
            f"{spelt(one.result):.40}; which of them was put there?"
        )
    return one.result


def untold(done: Sequence[Operation], asked: Sequence[Operation], puts: Collection[str]) -> Operation | None:
    """An operation of unknown outcome of which nobody knows what it put there: others tell that the server
    puts something else there than it was asked to."""
    both = zip(done, asked, strict=True)
    told = {words.f for one, words in both if words is not one and words.argument != one.argument}
    unknown = (one for one in asked if one.outcome is Outcome.INFO and one.f in puts and one.f in told)
    return next(unknown, None) if told else None


def _is_plain(value: Any) -> bool:
    return value is not None and isinstance(value, int | float | str | Truth)


def _with_words_as_elements(found: list[Operation]) -> list[Operation]:
    """JSON has one word for a text that is an element and for :empty. It is an element where one was put."""
    if not any(one.f == "enqueue" and type(one.argument) is str and one.argument == "empty" for one in found):
        return found

    def element(value: Any) -> Any:
        return Text(value) if type(value) is str else value

    return [replace(one, argument=element(one.argument), result=element(one.result)) for one in found]


@dataclass(slots=True)
class Subject:
    """One object's operations, ``done`` as the file has them, ``asked`` in the model's words."""

    key: Any
    done: Sequence[Operation]
    asked: Sequence[Operation]
    _ids: dict[Hashable, int] = field(default_factory=dict)

    def calls(self, model: Model, initial: Any = None) -> Calls:
        """The calls for Knossos' search. Raises TextError for an operation that the model does not have."""
        shapes = SHAPES[model]
        names = list(shapes)
        flat = self._first(initial) if model is Model.MULTI_REGISTER else []
        registers = len(flat) // 2
        rows = []
        for one in _possible(self.asked):
            if one.f not in shapes:
                raise TextError(
                    f"operation {one.at}: {model} has no :{one.f}, only {', '.join(':' + n for n in names)}"
                )
            a, b = self._words(shapes[one.f], one, flat)
            rows.append((names.index(one.f), a, b, one.inv, completion_of(one)))
        f, first, second, inv, ret = (
            np.ascontiguousarray(c) for c in np.array(rows, np.int64).reshape(-1, 5).T
        )
        start = registers if model is Model.MULTI_REGISTER else None
        if model in _REGISTERS:
            start = self._id(initial)
        return Calls(model, f, first, second, inv, ret, np.array(flat, dtype=np.int64), start)

    def rows_of_calls(self) -> list[Operation]:
        """The operation of each row of ``calls``."""
        return _possible(self.done, self.asked)

    def _first(self, initial: Any) -> list[int]:
        """Each key of several registers, and what it holds at first."""
        held = Initial(initial)
        txns = [one for one in _possible(self.asked) if one.f == "txn"]
        keys = {key: None for one in txns for _, key, _ in _micro_operations(one)}
        return [self._id(word) for key in keys for word in (key, held(key))]

    def _words(self, shape: Shape, one: Operation, flat: list[int]) -> tuple[int, int]:
        value = one.argument if one.f in _PUTS else one.value
        match shape:
            case Shape.NONE:
                return NIL, NIL
            case Shape.PAIR:
                if not (isinstance(one.argument, tuple) and len(one.argument) == 2):
                    raise TextError(f"operation {one.at}: :{one.f} needs [old new], not {spelt(value):.40}")
                return self._id(one.argument[0]), self._id(one.argument[1])
            case Shape.TXN:
                begin = len(flat)
                for writes, key, held in _micro_operations(one):
                    known = writes or one.outcome is Outcome.OK
                    flat += (int(writes), self._id(key), self._id(held) if known else NIL)
                return begin, len(flat)
            case Shape.ELEMENTS:
                begin = len(flat)
                flat += [self._id(element) for element in value or ()]
                return begin, len(flat)
        if one.f == "dequeue" and value in FOUND_NOTHING:
            return (NIL if one.outcome is not Outcome.OK else EMPTY), NIL
        # A read of nil is a value like any other here: Knossos would take it as unknown and let it pass.
        return self._id(value), NIL

    def _id(self, value: Any) -> int:
        return self._ids.setdefault(value, len(self._ids) + 1)

    def value(self, number: int) -> Any:
        """The value that this number stands for."""
        return next(value for value, known in self._ids.items() if known == number)

    def exact(self, initial: Any = None) -> Columns:
        """The columns that the exact checks of a register or a FIFO queue read. The initial value is
        NOTHING."""
        rows = []
        ids = self._ids
        ids.setdefault(initial, NOTHING)
        for one in self.asked:
            puts = one.f in _PUTS
            if not puts and one.outcome is not Outcome.OK and one.f == "read":
                continue
            value = one.argument if puts else one.result
            nothing = one.f == "dequeue" and value in FOUND_NOTHING
            number = NOTHING if nothing else ids.setdefault(value, len(ids) + 1)
            rows.append((puts, number, one.inv, completion_of(one), one.outcome is Outcome.FAIL))
        return columns(rows)

    def rows_of_exact(self) -> list[Operation]:
        """The operation of each row of ``exact``."""
        return [
            one
            for one, asked in zip(self.done, self.asked, strict=True)
            if asked.f != "read" or one.outcome is Outcome.OK
        ]


def _possible(done: Sequence[Operation], asked: Sequence[Operation] | None = None) -> list[Operation]:
    """The operations that may have happened; a read that gave nothing back is left out."""
    return [
        one
        for one, words in zip(done, asked or done, strict=True)
        if one.outcome is not Outcome.FAIL and not (words.f == "read" and one.outcome is not Outcome.OK)
    ]


def _micro_operations(one: Operation) -> list[tuple[bool, Any, Any]]:
    """Returns (whether it writes, key, value) of each micro-operation of a transaction. Raises TextError."""
    result: list[tuple[bool, Any, Any]] = []
    for mop in one.value if isinstance(one.value, tuple) else (one.value,):
        match mop:
            case (str(f), key, value) if f in _WRITES:
                result.append((_WRITES[f], key, value))
            case (str(f), key) if f in _WRITES and not _WRITES[f]:
                result.append((False, key, None))
            case _:
                needs = "[[:r k v] [:w k v] ..]"
                raise TextError(f"operation {one.at}: :txn needs {needs}, not {spelt(one.value):.40}")
    return result


@dataclass(slots=True)
class Numbers:
    """Keys and values as numbers: those that are some already stay as they are, others become -1, -2, ..."""

    names: dict[int, Any] = field(default_factory=dict)
    _ids: dict[Hashable, int] = field(default_factory=dict)

    def of(self, value: Any) -> int:
        if isinstance(value, int) and 0 <= value < 1 << 62:
            return value
        if value not in self._ids:
            self._ids[value] = -1 - len(self._ids)
            self.names[self._ids[value]] = value
        return self._ids[value]


@dataclass(frozen=True, slots=True)
class Asked:
    """Transactions for Elle."""

    transactions: Transactions
    names: Mapping[int, Any]
    """The keys and values behind negative numbers."""
    done: Sequence[Operation]
    """The operation of each transaction."""
    foreign: Sequence[Operation]
    """Operations that are no transactions."""


def transactions(operations: Iterable[Operation], model: str) -> Asked:
    """Raises TextError."""
    builder, numbers = TransactionsBuilder(), Numbers()
    done: list[Operation] = []
    foreign = []
    successor: dict[int, int] = {}
    for one in operations:
        if not _is_transaction(one.value):
            foreign.append(one)
            continue
        mops = [_micro(one, mop, model) for mop in one.value]
        name = getattr(one.process, "name", None)
        process = name.session if isinstance(name, TransactionName) else one.process
        process = successor.get(process, process)
        if one.outcome is Outcome.INFO:
            # What nobody knows the end of stays open, so Jepsen's process would go on under another number.
            successor[process] = _SUCCESSORS + len(done)
        builder.add(
            process, one.inv, completion_of(one), one.outcome, [_numbered(mop, numbers.of) for mop in mops]
        )
        done.append(one)
    return Asked(builder.build(), numbers.names, done, foreign)


def _micro(one: Operation, mop: Any, model: str) -> tuple[Act, Any, Any]:
    acts: Mapping[str, Act] = (
        {"append": Act.APPEND, "r": Act.READ_LIST}
        if model == "list-append"
        else {"w": Act.WRITE, "r": Act.READ}
    )
    if len(mop) == 2 and mop[0] == "r":
        mop = (*mop, None)
    if not (len(mop) == 3 and isinstance(mop[0], str) and mop[0] in acts):
        raise TextError(f"operation {one.at}: {model} has no micro-operation {spelt(mop):.40}")
    act, value = acts[mop[0]], mop[2]
    if act is Act.READ_LIST and not isinstance(value, tuple | None):
        raise TextError(f"operation {one.at}: a read gives a list, not {spelt(value):.40}")
    return act, mop[1], value


def _numbered(
    mop: tuple[Act, Any, Any], number: Callable[[Any], int]
) -> tuple[Act, int, int | list[int] | None]:
    act, key, value = mop
    if value is None:
        return act, number(key), None
    return act, number(key), [number(each) for each in value] if act is Act.READ_LIST else number(value)

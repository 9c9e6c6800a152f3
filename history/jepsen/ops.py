"""A history's operations in the order in which they happened, with what every reader of them must know: who,
what, when.

Jepsen writes an operation (``jepsen.history.Op``) when it is invoked and again when it completes. Their order
is that of ``:index``, else that of the file; ``:time`` without an index must not go back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from wrackline.history.jepsen.edn import keyword
from wrackline.history.jepsen.text import Operation, TextError, read
from wrackline.history.model import Type
from wrackline.values import Keyword, spelt

Used = TypeVar("Used")
_JEPSENS = frozenset({"nemesis", ":nemesis"})
"""Processes that are Jepsen's own."""
_NAMED_FROM = 1 << 40
"""The numbers of processes whose names are none begin here."""
_TYPES = ("invoke", "ok", "fail", "info")
_WRAPPED = ("history", "ops", "operations", "events")


@dataclass(frozen=True, slots=True)
class _Names:
    """The words of an operation as a file has them: the very objects, by which a dict finds them sooner."""

    keys: Sequence[str]
    value: str
    types: Mapping[str, Type]


def _names(word: Callable[[str], str]) -> _Names:
    keys = tuple(map(word, ("process", "type", "f", "time", "index")))
    return _Names(keys, word("value"), {word(kind): Type(kind) for kind in _TYPES})


_KEYWORDS, _TEXTS = _names(keyword), _names(str)


class NamedProcess(int):
    """The number of a process that has a name. It prints as its name."""

    name: Any

    def __str__(self) -> str:
        return str(self.name)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


@dataclass(slots=True)
class Op:
    """One event of a history: an invocation or a completion."""

    at: int
    """Place in the file, from 1: its name."""
    process: int | None
    """None of Jepsen's own, such as its nemesis."""
    type: Type
    f: str
    """"" where there is none."""
    value: Any
    time_ns: int | None
    index: int | None
    """``:index``; Jepsen writes -1 where it gave none."""
    said: Operation
    """All that the file says of it."""


@dataclass(slots=True)
class Processes:
    """Numbers for processes: those that are numbers keep theirs, names get new ones."""

    _named: dict[Any, NamedProcess] = field(default_factory=dict)

    def number(self, name: Any) -> int | None:
        """Returns the process number; None of Jepsen's own."""
        if type(name) is int:
            return name
        if name in _JEPSENS:
            return None
        if isinstance(name, float) and name.is_integer():
            return int(name)
        if name not in self._named:
            self._named[name] = NamedProcess(_NAMED_FROM + len(self._named))
            self._named[name].name = name
        return self._named[name]


def read_in_order(
    path: Path, use: Callable[[Iterator[Op]], Used], progress: Callable[[int], None] = lambda _done: None
) -> Used:
    """Returns the result of ``use`` for the events of a file in their order. It is called again where the
    order turns out not to be the file's, so it must begin anew each time. Raises TextError, OSError."""
    try:
        return _used(path, use, progress)
    except TextError as error:
        if str(error).startswith(str(path)):
            raise
        raise TextError(f"{path}: {error}") from error


def _used(path: Path, use: Callable[[Iterator[Op]], Used], progress: Callable[[int], None]) -> Used:
    try:
        return use(_in_order(typed(read(path, progress))))
    except _OutOfOrder:
        pass
    except TextError:
        # A completion before its invocation, say, may be an invocation that comes later in the file.
        if not _out_of_order(path):
            raise
    return use(iter(_by_index(typed(read(path, progress)))))


def _out_of_order(path: Path) -> bool:
    try:
        for _ in _in_order(typed(read(path))):
            pass
    except _OutOfOrder:
        return True
    except TextError:
        pass
    return False


class _OutOfOrder(Exception):
    """An index is smaller than the one before it."""


def typed(operations: Iterable[Operation]) -> Iterator[Op]:
    """The same with all that is needed of each. Raises TextError."""
    processes, words = Processes(), dict[str, str]()
    for at, said in enumerate(operations, 1):
        names = _KEYWORDS if type(next(iter(said), None)) is Keyword else _TEXTS
        name, kind, f, time, index = map(said.get, names.keys)
        type_ = names.types.get(kind) if isinstance(kind, str) else None
        if type_ is None and isinstance(kind, str):
            type_ = _TEXTS.types.get(kind.removeprefix(":").lower())
        process = name if type(name) is int else None if name is None else processes.number(name)
        if name is None and type_ is not Type.INFO:
            raise TextError(_without_process(at, said))
        if type_ is None:
            if name is not None and process is None:
                continue  # Jepsen's own need not be operations
            raise TextError(f"operation {at}: :type is {spelt(kind)}, not one of {', '.join(_TYPES)}")
        if type(time) is not int and time is not None:
            time = _whole(time, at, "time", "a number of nanoseconds")
        if type(index) is not int and index is not None:
            index = _whole(index, at, "index", "a number")
        word = "" if f is None else words.get(f) or words.setdefault(f, str(f).removeprefix(":"))
        yield Op(at, process, type_, word, said.get(names.value), time, None if index == -1 else index, said)


def _whole(value: Any, at: int, name: str, what: str) -> int:
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    raise TextError(f"operation {at}: :{name} is {spelt(value):.40}, not {what}")


def _without_process(at: int, said: Operation) -> str:
    for name in _WRAPPED:
        if "type" not in said and isinstance(said.get(name), tuple):
            return f"the operations are inside of :{name}; write what it holds alone into a file"
    has = ", ".join(f":{key}" for key in [key for key in said if key != "process"][:8])
    return (
        f"operation {at} has no :process, the number or name of its client, which does one after another; "
        f"it has {has or 'nothing'}"
    )


def _in_order(events: Iterable[Op]) -> Iterator[Op]:
    """Raises TextError, _OutOfOrder."""
    last: int | None = None
    time: int | None = None
    for one in events:
        index = one.index
        if index is not None:
            if last is not None and index <= last:
                raise _OutOfOrder
            last = index
        elif one.process is not None and one.time_ns is not None and last is None:
            if time is not None and one.time_ns < time:
                raise TextError(
                    f"operation {one.at}: :time goes back from {time} to {one.time_ns}, and no :index "
                    "says which order is right; sort the file, or number its operations"
                )
            time = one.time_ns
        yield one


def _by_index(events: Iterable[Op]) -> list[Op]:
    """Raises TextError."""
    result: dict[int, Op] = {}
    for one in events:
        index = one.index
        if index is None:
            raise TextError(
                f"operation {one.at} has no :index, and those of the others are not in the order of the file"
            )
        if index in result:
            raise TextError(f"operation {one.at} has the :index {index} of operation {result[index].at}")
        result[index] = one
    return [result[index] for index in sorted(result)]

"""A history's operations in the order in which they happened, with what every reader of them must know: who,
what, when.

Jepsen writes an operation (``jepsen.history.Op``) when it is invoked and again when it completes. Their order
is that of ``:index``, else that of the file; ``:time`` without an index must not go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from wrackline.history.jepsen.text import Operation, TextError, read
from wrackline.history.model import Type

Used = TypeVar("Used")
_JEPSENS = frozenset({"nemesis", ":nemesis"})
"""Processes that are Jepsen's own."""
_NAMED_FROM = 1 << 40
"""The numbers of processes whose names are none begin here."""
_TYPES = {kind: Type(kind) for kind in ("invoke", "ok", "fail", "info")}
_WRAPPED = ("history", "ops", "operations", "events")


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
    said: Operation
    """All that the file says of it."""


@dataclass(slots=True)
class Processes:
    """Numbers for processes: those that are numbers keep theirs, names get new ones."""

    _named: dict[Any, NamedProcess] = field(default_factory=dict)

    def number(self, name: Any) -> int | None:
        """None of Jepsen's own."""
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
    """What ``use`` makes of the events of a file in their order. It is called again where the order turns out
    not to be the file's, so it must begin anew each time. Raises TextError, OSError."""
    try:
        try:
            return use(_in_order(typed(read(path, progress))))
        except _OutOfOrder:
            return use(iter(_by_index(typed(read(path, progress)))))
    except TextError as wrong:
        if str(wrong).startswith(str(path)):
            raise
        raise TextError(f"{path}: {wrong}") from wrong


class _OutOfOrder(Exception):
    """An index is smaller than the one before it."""


def typed(operations: Iterable[Operation]) -> Iterator[Op]:
    """The same with all that is needed of each. Raises TextError."""
    processes, words = Processes(), dict[str, str]()
    for at, said in enumerate(operations, 1):
        name, kind, f = said.get("process"), said.get("type"), said.get("f")
        type_ = _TYPES.get(kind) if isinstance(kind, str) else None
        process = None if name is None else processes.number(name)
        if name is None and type_ is not Type.INFO:
            raise TextError(_without_process(at, said))
        if type_ is None:
            if name is not None and process is None:
                continue  # Jepsen's own need not be operations
            raise TextError(f"operation {at}: :type is {kind!r}, not one of {', '.join(_TYPES)}")
        time = said.get("time")
        if time is not None and not isinstance(time, int | float):
            raise TextError(f"operation {at}: :time is {time!r:.40}, not a number of nanoseconds")
        word = (
            "" if f is None else words.get(f) or words.setdefault(f, str(f)) if isinstance(f, str) else str(f)
        )
        yield Op(at, process, type_, word, said.get("value"), None if time is None else int(time), said)


def _without_process(at: int, said: Operation) -> str:
    for name in _WRAPPED:
        if "type" not in said and isinstance(said.get(name), tuple):
            return f"the operations are inside of :{name}; write what it holds alone into a file"
    has = ", ".join(f":{key}" for key in list(said)[:8])
    return (
        f"operation {at} has no :process, the number or name of its client, which does one after another; "
        f"it has {has or 'nothing'}"
    )


def _in_order(events: Iterable[Op]) -> Iterator[Op]:
    """Raises TextError, _OutOfOrder."""
    last: int | None = None
    time: int | None = None
    for one in events:
        index = _index(one)
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
    found: dict[int, Op] = {}
    for one in events:
        index = _index(one)
        if index is None:
            raise TextError(
                f"operation {one.at} has no :index, and those of the others are not in the order of the file"
            )
        if index in found:
            raise TextError(f"operation {one.at} has the :index {index} of operation {found[index].at}")
        found[index] = one
    return [found[index] for index in sorted(found)]


def _index(one: Op) -> int | None:
    """Jepsen writes -1 where it gave none. Raises TextError."""
    index = one.said.get("index")
    if index is None or index == -1:
        return None
    if not isinstance(index, int):
        raise TextError(f"operation {one.at}: :index is {index!r:.40}, not a number")
    return index

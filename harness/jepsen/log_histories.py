"""Histories of append-only logs in Jepsen's words, for ``wrackline check --model log``.

==========================  ==============================================================================
``:append v``               ok: ``[offset v]``; an offset of nil is an acknowledgement without one
``:read``                   ok: ``[[offset v] ...]``, some records that are there
``:end``                    ok: the offset that the next record will get
``:send``, ``:poll``,       as ``jepsen.tests.kafka`` records them and ``wrackline history export`` writes
``:txn``                    them: lists of ``[:send k v]`` (ok: ``[:send k [offset v]]``) and
                            ``[:poll {k [[offset v] ...]}]``
==========================  ==============================================================================

The first three are of one log, or of one per key with ``independent`` (values are then ``[key value]``); of
the others each key is a log of its own. What a consumer does besides (``:assign``, ``:subscribe``,
``:crash``) says nothing here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wrackline.checkers.exact.log import NOWHERE, Append, End, Read, Rule, Violation, check_log
from wrackline.checkers.exact.operations import refuse_repeats
from wrackline.checkers.jvm.calls import Calls, Model
from wrackline.checkers.jvm.log_calls import LogCalls
from wrackline.checkers.models.log import alike
from wrackline.checkers.models.protocol import Operation, Outcome
from wrackline.harness.jepsen.operations import as_pair, completion_of, without_key
from wrackline.history.jepsen.text import TextError
from wrackline.values import key_of, spelt

OF_VALUES = (Rule.TWO_OFFSETS, Rule.GARBAGE, Rule.ABORTED, Rule.NO_PLACE)
_OF_KAFKA = ("send", "poll", "txn")
_OF_ONE_LOG = ("append", "read", "end")
_SILENT = ("assign", "subscribe", "crash", "debug-topic-partitions")
Part = tuple[str, Any, Operation]
"""(append, read or end; its value; the operation)."""


@dataclass(slots=True)
class Log:
    key: Any
    parts: list[Part] = field(default_factory=list)
    transactions: bool = False
    """Markers of transactions take offsets, so that offsets without a record are no loss."""
    _ids: dict[Hashable, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.parts)

    def violations(self, *, holes: bool) -> list[tuple[Violation, list[Operation]]]:
        """Returns what is wrong, each with some operations that speak of it. ``holes``: offsets without a
        record are wrong. No value may have been appended twice (``refuse_repeats``). Raises TextError."""
        appends: list[Append] = []
        reads: list[Read] = []
        ends: list[End] = []
        about: dict[tuple[bool, int], list[Operation]] = defaultdict(list)
        for what, value, one in self.parts:
            match what:
                case "append":
                    offset, number = self._placed(value, one)
                    failed = one.outcome is Outcome.FAIL
                    place = NOWHERE if offset is None else offset
                    appends.append(Append(number, one.inv, completion_of(one), place, failed))
                    placed = [(offset, number)]
                case "read":
                    placed = [self._placed(record, one) for record in value]
                    reads += [
                        Read(completion_of(one), offset, number)
                        for offset, number in placed
                        if offset is not None
                    ]
                case _:
                    ends.append(End(one.inv, completion_of(one), _offset(value, one)))
                    placed = [(value, NOWHERE)]
            for offset, number in placed:
                about[True, number].append(one)
                if offset is not None:
                    about[False, offset].append(one)
        result = check_log(appends, reads, ends, holes=holes)
        return [(wrong, about[wrong.rule in OF_VALUES, wrong.offset]) for wrong in result]

    def refuse_repeats(self) -> None:
        """Raises RepeatedValue, TextError."""
        values = [self._placed(value, one)[1] for what, value, one in self.parts if what == "append"]
        refuse_repeats(np.array(values, dtype=np.int64))

    def operations(self) -> tuple[list[Operation], list[Operation]]:
        """The operations for our own search, and what each of them is a part of. Raises TextError."""
        found = []
        for what, value, one in self.parts:
            argument: Any = None
            result: Any = None
            known = one.outcome is Outcome.OK
            match what:
                case "append":
                    offset, argument = _record(value, one)
                    result = (offset, argument) if known else None
                case "read":
                    records = [_record(record, one) for record in value]
                    result = [record for record in records if record[0] is not None]
                case _:
                    result = _offset(value, one)
            found.append(replace(one, f=what, argument=argument, result=result))
        return alike(found), [one for _, _, one in self.parts]

    def calls(self, *, holes: bool) -> tuple[Calls, list[Operation]]:
        """The calls for a search by Knossos, and the operation of each of its rows. Raises TextError."""
        result = LogCalls()
        rows = []
        for what, value, one in self.parts:
            match what:
                case "append":
                    offset, number = self._placed(value, one)
                    if one.outcome is Outcome.FAIL:
                        result.failed(number)
                        continue
                    result.append(number, one.inv, completion_of(one), offset)
                case "read":
                    records = [self._placed(record, one) for record in value]
                    result.read(
                        [(o, number) for o, number in records if o is not None], one.inv, completion_of(one)
                    )
                case _:
                    result.end(_offset(value, one), one.inv, completion_of(one))
            rows.append(one)
        return result.build(Model.LOG if holes else Model.SOME_OF_LOG), rows

    def value(self, number: int) -> Any:
        """The value that this number stands for."""
        return next(value for value, known in self._ids.items() if known == number)

    def _placed(self, value: Any, one: Operation) -> tuple[int | None, int]:
        """(offset, number of the value) of [offset v], or of a value alone."""
        offset, value = _record(value, one)
        return offset, self._ids.setdefault(value, len(self._ids) + 1)


def _record(value: Any, one: Operation) -> tuple[int | None, Hashable]:
    """(offset, value) of [offset v], or of a value alone."""
    if one.outcome is not Outcome.OK or not isinstance(value, tuple):
        return None, value
    if len(value) != 2:
        raise TextError(f"operation {one.at}: a record is [offset value], not {spelt(value):.40}")
    offset, value = value
    return (None if offset is None else _offset(offset, one)), value


def _offset(value: Any, one: Operation) -> int:
    if isinstance(value, int) and 0 <= value < 1 << 62:
        return value
    raise TextError(f"operation {one.at}: an offset is a number from 0 on, not {spelt(value):.40}")


@dataclass(frozen=True, slots=True)
class Logs:
    each: list[Log] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """A line for each operation that is of none of them."""


def logs(operations: Iterable[Operation], *, independent: bool = False) -> Logs:
    """Raises TextError."""
    result: dict[Hashable, Log] = {}
    refused = []
    for one in operations:
        if independent and one.f in _OF_ONE_LOG and as_pair(one.value) is None:
            refused.append(without_key(one))
        elif one.f in _OF_ONE_LOG or one.f in _OF_KAFKA:
            for key, part in _parts(one, independent):
                log = result.setdefault(key, Log(key))
                log.transactions |= one.f == "txn"
                log.parts.append(part)
        elif one.f not in _SILENT:
            has = "only :append, :read, :end, or :send, :poll, :txn"
            refused.append(f"operation {one.at}: a log has no :{one.f}, {has}")
    if refused and list(result) == [None]:
        raise TextError(refused[0])  # it may have changed the one log that there is
    return Logs(list(result.values()), refused)


def _parts(one: Operation, independent: bool) -> Iterator[tuple[Any, Part]]:
    known = one.outcome is Outcome.OK
    if one.f in _OF_KAFKA:
        yield from _of_kafka(one, known)
        return
    key, value = (as_pair(one.value) or (None, None)) if independent else (None, one.value)
    if one.f == "read" and known and not isinstance(value, tuple):
        raise TextError(f"operation {one.at}: a read gives [[offset value] ...], not {spelt(value):.40}")
    if one.f == "append" or known:
        yield key, (one.f, value, one)


def _of_kafka(one: Operation, known: bool) -> Iterator[tuple[Any, Part]]:
    if not isinstance(one.value, tuple):
        raise TextError(
            f"operation {one.at}: :{one.f} has a list of [:send k v] and [:poll ..], not "
            f"{spelt(one.value):.40}"
        )
    for mop in one.value:
        match mop:
            case ("send", key, value):
                # In a send that is ok a value without [offset v] is a record whose own outcome is not known.
                lost = known and not isinstance(value, tuple)
                sent = replace(one, ret=None, outcome=Outcome.INFO) if lost else one
                yield key_of(key), ("append", value, sent)
            case ("poll", dict() as polled) if known:
                for key, records in polled.items():
                    yield key_of(key), ("read", records or (), one)
            case ("poll", *_):
                pass
            case _:
                raise TextError(f"operation {one.at}: no [:send k v] and no [:poll ..] but {spelt(mop):.40}")

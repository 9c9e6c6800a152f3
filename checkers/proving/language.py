"""A language for histories written by hand: a case is a line, a step of it a few words. ``|`` or a new line
parts steps.

==========================  ==================================================================================
``p: a@0 b@1``              process p sends a and b; both acked, at offsets 0 and 1
``p: a? b! c+``             outcome unknown, certainly failed, acked without an offset
``p: (a b``                 only the invocation ...
``p: a@0 b@1)``             ... and its completion, later; without one the send never completes
``p: a@1/0``                partition 1, offset 0 (also below); ``a@1/?``: of unknown outcome, sent to
                            partition 1
``c: from 3``               consumer c is assigned partition 0 at offset 3; ``from 0 1/5``: both partitions
``c: got a@0 b@1``          a poll gives these; ``(got`` and ``got a@0)`` are its two events
``e: end 2``                the end offset is told to be 2; ``end 1/2`` of partition 1; ``(end`` and
                            ``end 2)``
``r: read a@0``             a read of a register; ``read nothing``, ``read 1/ nothing``: nothing is written in
                            partition 1; ``(read``, ``(read 1/`` and ``read a@0)``: its two events;
                            ``dequeue``: of a queue; ``read !`` failed. A case with one of these words is a
                            run of that workload
``c: gen 2 from 0 1/5``     a rebalance: c is told of its group's generation 2, with partitions 0 and 1, which
                            begin there; ``1/?`` where nobody told; ``gen 2`` alone: without partitions
``c: commit 3 1/5``         c commits 3 and 5, under the generation it was told last; ``commit 3 gen 1``:
                            under another; ``commit 3 !``: refused; ``commit 3 ?``: outcome unknown;
                            ``(commit 3`` and ``commit 3)``
``o: committed 3 1/none``   somebody asks what is committed, and is told that; ``(committed`` and
                            ``committed 3)``
``p: txn 1 a@0 got b@1/0``  transaction 1: p sends a, its consumer is given b; ``(txn 1 a got`` and
                            ``txn 1 a@0 got b@1/0)``; without ``got`` it does not poll; where all outcomes are
                            ``!`` it aborted
``final a@0 b@1``           the final read, complete; ``final a@0 to 3 short``: end offset 3, not reached;
                            ``final 1/``
``n2 holds a@0^4 hw 1``     host n2's own log, leader epoch 4, high watermark 1; ``out``: not in the ISR;
                            ``part``
==========================  ==================================================================================

Commits are those of group g; ``in h`` (also after ``gen ... from ...``) is another. Values are letters or
words, unique in the run; ``#`` is a payload with a wrong checksum, ``~`` one of another run. ``^4`` after an
offset is the leader epoch of a record read (0 when not said). Processes are words, numbered as they come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from wrackline.checkers.proving.readers import CONSUMERS
from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    CORRUPT,
    FAILED,
    FOREIGN,
    REPLICA,
    UNKNOWN,
    Event,
    Record,
    RunInfo,
    TopicInfo,
    Type,
    value_of,
)

TOPIC = "log"
STEP_NS = 1_000_000
_READER = 900
_WORKLOADS = {"read": "register", "dequeue": "queue"}
_HOSTS = {"1": "n1", "2": "n2", "3": "n3"}
_STEP = re.compile(r"(?:(?P<who>\w+):|(?P<host>n[123]) holds|(?P<final>final))(?P<rest>.*)\Z", re.DOTALL)
_RECORD = re.compile(
    r"(?P<value>\w+|#|~)(?:@(?:(?P<part>\d+)/)?(?P<offset>\d+|\?)(?:\^(?P<epoch>\d+))?)?(?P<mark>[?!+]?)\Z"
)
_OFFSET = re.compile(r"(?:(\d+)/)?(\d+|\?|none)\Z")
_COMMITS = {"!": (Type.FAIL, "ILLEGAL_GENERATION"), "?": (Type.INFO, "_TIMED_OUT")}
_CODES = {"?": UNKNOWN, "!": FAILED, "+": ACKED_WITHOUT_OFFSET}


class CaseError(ValueError):
    """A case that makes no sense. One line: which step, what is wrong with it."""


@dataclass
class Case:
    """Events of a case as they are parsed."""

    test_id: str
    idempotence: bool = True
    workload: str = "log"
    events: list[Event] = field(default_factory=list)
    _processes: dict[str, int] = field(default_factory=dict)
    _values: dict[str, int] = field(default_factory=dict)
    _generations: dict[int, int] = field(default_factory=dict)
    """Process -> the one it was told last."""
    _partitions: int = 1

    @property
    def info(self) -> RunInfo:
        return RunInfo(
            test_id=self.test_id,
            name="case",
            seed=0,
            started_at="2026-01-01T00:00:00Z",
            system="wrackline",
            workload=self.workload,
            acks="all",
            idempotence=self.idempotence,
            reads="" if self.workload == "log" else "marker",
            topics=(TopicInfo(TOPIC, self._partitions, 3, 2),),
            nodes=_HOSTS,
        )

    # --- steps ---------------------------------------------------------------------------------------------

    def take(self, step: str) -> None:
        found = _STEP.match(step)
        if found is None:
            raise CaseError(f"{step!r}: neither 'process: ...' nor 'n1 holds ...' nor 'final ...'")
        rest = found["rest"].strip()
        if found["host"]:
            self._holds(found["host"], rest.split(), step)
        elif found["final"]:
            self._final(rest.split(), step)
        else:
            self._client(found["who"], rest, step)

    def _client(self, who: str, rest: str, step: str) -> None:
        process = self._processes.setdefault(who, len(self._processes) + 1)
        opens, closes = rest.startswith("("), rest.endswith(")")
        words = rest.strip("()").split()
        invoke, complete = not closes, not opens
        kind = words[0] if words else ""
        if kind == "end":
            self._end(process, words[1:], invoke, complete, step)
        elif kind == "got" or (opens and kind == "poll"):
            self._got(process, words[1:], invoke, complete, step)
        elif kind in _WORKLOADS:
            self._get(process, kind, words[1:], invoke, complete, step)
        elif kind == "from":
            self._from(process, words[1:], step)
        elif kind == "gen":
            self._rebalance(process, words, step)
        elif kind == "commit":
            self._commit(process, words[1:], invoke, complete, step)
        elif kind == "committed":
            self._committed(process, words[1:], invoke, complete, step)
        elif kind == "txn":
            self._transaction(process, words, invoke, complete, step)
        elif words:
            self._send(process, words, invoke, complete, step)
        else:
            raise CaseError(f"{step!r}: {who} does nothing")

    def _send(
        self,
        process: int,
        words: list[str],
        invoke: bool,
        complete: bool,
        step: str,
        extra: dict[str, object] | None = None,
    ) -> None:
        told = [self._record(word, step, sent=True) for word in words]
        partition = told[0].partition
        if invoke:
            asked = tuple(record._replace(offset=UNKNOWN) for record in told)
            self._event(process, Type.INVOKE, "send", partition=partition, records=asked, extra=extra)
        if complete:
            codes = [record.offset for record in told]
            kind = Type.OK if UNKNOWN not in codes and FAILED not in codes else Type.INFO
            kind = Type.FAIL if all(code == FAILED for code in codes) else kind
            error = None if kind is Type.OK else "_TIMED_OUT" if kind is Type.INFO else "MSG_SIZE_TOO_LARGE"
            self._event(
                process, kind, "send", partition=partition, records=tuple(told), error=error, extra=extra
            )

    def _transaction(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, flags = self._flags(words, ("txn",), (), step)
        extra: dict[str, object] = {"txn": flags["txn"]}
        at = words.index("got") if "got" in words else len(words)
        sent, given = words[:at], words[at + 1 :]
        if not sent:
            raise CaseError(f"{step!r}: a transaction sends something (txn 1 a@0 got b@1/0)")
        consumer = process + CONSUMERS
        if invoke:
            self._send(process, sent, True, False, step, extra)
            if at < len(words):
                self._event(consumer, Type.INVOKE, "poll", extra=extra)
        if complete:
            self._send(process, sent, False, True, step, extra)
            kind = self.events[-1].type
            if at < len(words):
                records = tuple(self._record(word, step, epoch=-1) for word in given)
                self._event(consumer, kind, "poll", records=records, extra=extra)

    def _in_group(self, words: list[str], step: str) -> tuple[list[str], dict[str, object]]:
        """The words without ``in h``, and the group."""
        if "in" not in words:
            return words, {"group": "g"}
        at = words.index("in")
        if at + 2 != len(words):
            raise CaseError(f"{step!r}: a group's name must follow 'in', and nothing else")
        return words[:at], {"group": words[-1]}

    def _rebalance(self, process: int, words: list[str], step: str) -> None:
        words, extra = self._in_group(words, step)
        words, flags = self._flags(words, ("gen",), ("from",), step)
        places = dict(self._offset(word, step) for word in words)
        self._generations[process] = flags["gen"]
        extra |= {"member": f"m{process}", "generation": flags["gen"], "partitions": list(places)}
        known = {str(partition): start for partition, start in places.items() if start is not None}
        if known:
            extra["positions"] = known
        self._event(process, Type.OK, "rebalance", extra=extra)

    def _commit(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, extra = self._in_group(words, step)
        words, flags = self._flags(words, ("gen",), ("!", "?"), step)
        extra["offsets"] = {str(p): offset for p, offset in self._offsets(words, step)}
        generation = flags.get("gen", self._generations.get(process))
        if generation is not None:
            extra |= {"member": f"m{process}", "generation": generation}
        kind, error = next((_COMMITS[mark] for mark in _COMMITS if mark in flags), (Type.OK, None))
        if invoke:
            self._event(process, Type.INVOKE, "commit", extra=extra)
        if complete:
            self._event(process, kind, "commit", extra=extra, error=error)

    def _committed(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, extra = self._in_group(words, step)
        if invoke:
            self._event(process, Type.INVOKE, "committed", extra=extra)
        if complete:
            told = {str(p): offset for p, offset in self._offsets(words, step)}
            self._event(process, Type.OK, "committed", extra={**extra, "offsets": told})

    def _from(self, process: int, words: list[str], step: str) -> None:
        places = [self._place(word, step) for word in words]
        extra = {"positions": {str(partition): offset for partition, offset in places}}
        for kind in (Type.INVOKE, Type.OK):
            self._event(process, kind, "assign", extra=extra)

    def _got(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        if invoke:
            self._event(process, Type.INVOKE, "poll")
        if complete:
            given = tuple(self._record(word, step, epoch=-1) for word in words)
            bad = [
                {"partition": r.partition, "offset": r.offset, "detail": "a wrong checksum"}
                for r in given
                if r.value == CORRUPT
            ]
            self._event(process, Type.OK, "poll", records=given, extra={"corrupt": bad} if bad else None)

    def _get(self, process: int, f: str, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        self.workload = _WORKLOADS[f]
        place = words.pop(0)[:-1] if words and re.fullmatch(r"\d+/", words[0]) else "0"
        if len(words) != complete:
            raise CaseError(f"{step!r}: {f!r} gives one record (a@0), 'nothing' or '!' where it ends")
        record = self._record(words[0], step) if complete and words[0] not in ("nothing", "!") else None
        partition = record.partition if record else int(place)
        self._partitions = max(self._partitions, partition + 1)
        if invoke:
            self._event(process, Type.INVOKE, f, partition=partition)
        if complete and words[0] == "!":
            self._event(process, Type.FAIL, f, partition=partition, error="_TIMED_OUT")
        elif complete:
            self._event(process, Type.OK, f, partition=partition, records=(record,) if record else ())

    def _end(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        if len(words) != 1:
            raise CaseError(f"{step!r}: 'end' wants one offset (also when it is only asked for)")
        partition, told = self._place(words[0], step)
        if invoke:
            self._event(process, Type.INVOKE, "end", partition=partition)
        if complete:
            self._event(process, Type.OK, "end", partition=partition, high_watermark=told)

    def _final(self, words: list[str], step: str) -> None:
        words, flags = self._flags(words, ("to",), ("short",), step)
        partition = int(words.pop(0)[:-1]) if words and re.fullmatch(r"\d+/", words[0]) else None
        held = tuple(self._record(word, step) for word in words)
        partition = partition if partition is not None else held[0].partition if held else 0
        end = flags.get("to", held[-1].offset + 1 if held else 0)
        reader = _READER + partition
        self._event(reader, Type.INVOKE, "drain", partition=partition)
        self._event(
            reader,
            Type.OK,
            "drain",
            partition=partition,
            offset=0,
            high_watermark=end,
            records=held,
            extra={} if "short" in flags else {"complete": True},
        )

    def _holds(self, host: str, words: list[str], step: str) -> None:
        words, flags = self._flags(words, ("hw",), ("out", "part"), step)
        held = tuple(self._record(word, step) for word in words)
        leo = held[-1].offset + 1 if held else 0
        self._event(
            REPLICA,
            Type.OK,
            "replica",
            partition=held[0].partition if held else 0,
            node=host,
            offset=0,
            high_watermark=leo,
            records=held,
            extra={"in_isr": "out" not in flags, "complete": "part" not in flags, "hw": flags.get("hw", leo)},
        )

    # --- words ---------------------------------------------------------------------------------------------

    def _flags(
        self, words: list[str], valued: tuple[str, ...], bare: tuple[str, ...], step: str
    ) -> tuple[list[str], dict[str, int]]:
        rest, flags, at = [], {}, iter(words)
        for word in at:
            if word in valued:
                number = next(at, "")
                if not number.isdigit():
                    raise CaseError(f"{step!r}: a number must follow {word!r}")
                flags[word] = int(number)
            elif word in bare:
                flags[word] = 1
            else:
                rest.append(word)
        return rest, flags

    def _offsets(self, words: list[str], step: str) -> list[tuple[int, int]]:
        """(partition, offset) of each word; ``none`` is -1."""
        found = [self._offset(word, step) for word in words]
        if not found or any(offset is None for _, offset in found):
            raise CaseError(f"{step!r}: an offset must follow (3, 1/5, 1/none)")
        return [(partition, offset) for partition, offset in found if offset is not None]

    def _offset(self, word: str, step: str) -> tuple[int, int | None]:
        found = _OFFSET.match(word)
        if found is None:
            raise CaseError(f"{step!r}: {word!r} is no offset (7, or 1/7 in partition 1)")
        partition = int(found[1] or 0)
        self._partitions = max(self._partitions, partition + 1)
        return partition, {"?": None, "none": -1}[found[2]] if not found[2].isdigit() else int(found[2])

    def _place(self, word: str, step: str) -> tuple[int, int]:
        found = re.fullmatch(r"(?:(\d+)/)?(\d+)", word)
        if found is None:
            raise CaseError(f"{step!r}: {word!r} is no offset (7, or 1/7 in partition 1)")
        partition = int(found[1] or 0)
        self._partitions = max(self._partitions, partition + 1)
        return partition, int(found[2])

    def _record(self, word: str, step: str, *, sent: bool = False, epoch: int = 0) -> Record:
        found = _RECORD.match(word)
        if found is None:
            raise CaseError(f"{step!r}: {word!r} is no record (a@0, a@1/0, a@0^3, a?, a!, a+)")
        partition = int(found["part"] or 0)
        self._partitions = max(self._partitions, partition + 1)
        if found["offset"] not in (None, "?"):
            offset = int(found["offset"])
        elif sent:
            offset = _CODES.get(found["mark"], UNKNOWN)
        else:
            raise CaseError(f"{step!r}: {word!r} was read, so it has an offset")
        return Record(partition, offset, self._value(found["value"]), int(found["epoch"] or epoch))

    def _value(self, name: str) -> int:
        if name in ("#", "~"):
            return CORRUPT if name == "#" else FOREIGN
        return self._values.setdefault(name, value_of(1, len(self._values)))

    def _event(self, process: int, kind: Type, f: str, **columns: object) -> None:
        index = len(self.events)
        time = (index + 1) * STEP_NS
        made = Event(process, kind, f, topic=TOPIC, index=index, time_ns=time, **columns)  # type: ignore[arg-type]
        self.events.append(made)


def steps(text: str) -> Iterator[str]:
    yield from (step.strip() for step in re.split(r"[|\n]", text) if step.strip())


def parse(text: str, test_id: str = "case", *, idempotence: bool = True) -> Case:
    """The history that a case describes. Raises CaseError."""
    case = Case(test_id, idempotence)
    for step in steps(text):
        case.take(step)
    return case

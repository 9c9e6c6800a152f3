"""A language for histories written by hand: a case is a line, a step of it a few words. ``|`` or a new line
parts steps.

==========================  ==================================================================================
``p: a@0 b@1``              process p sends a and b; both acked, at offsets 0 and 1
``p: a? b! c+``             outcome unknown, certainly failed, acked without an offset
``p: (a b``                 only the invocation ...
``p: a@0 b@1)``             ... and its completion, later; without one the send never completes; ``p: )``:
                            of unknown outcome, without its records
``p: a@1/0``                partition 1, offset 0 (also below); ``a@1/?``: of unknown outcome, sent to
                            partition 1
``c: from 3``               consumer c is assigned partition 0 at offset 3; ``from 0 1/5``: both partitions;
                            ``from 3 in g``: it reads for this group without being a member; ``from 0
                            latest``: what its position is reset to
``c: got a@0 b@1``          a poll gives these; ``(got`` and ``got a@0)`` are its two events; ``got a@0
                            undone``: to a transaction that was aborted; ``got a@0 at 2 1/5``: it says that it
                            stands at these offsets then
``e: end 2``                the end offset is told to be 2; ``end 1/2`` of partition 1; ``(end`` and
                            ``end 2)``; ``end 2 from 1``: and that the log begins at 1
``d: delete 2``             DeleteRecords below offset 2 of partition 0; ``delete 2 low 1``: answered with
                            that low watermark; ``delete 2 ?``: no answer; ``(delete 2`` and ``delete 2)``
``r: read a@0``             a read of a register; ``read nothing``, ``read 1/ nothing``: nothing is written in
                            partition 1; ``(read``, ``(read 1/`` and ``read a@0)``: its two events;
                            ``dequeue``: of a queue; ``read !`` failed. A case with one of these words is a
                            run of that workload
``c: gen 2 from 0 1/5``     a rebalance: c is told of its group's generation 2, with partitions 0 and 1, which
                            begin there; ``1/?`` where nobody told; ``gen 2`` alone: without partitions;
                            ``gen 2 from 0 eager``, ``cooperative``, ``consumer``: by that protocol;
                            ``gen 2 lost``: what it had is another's already
``c: crash``                c ends without leaving its group
``c: commit 3 1/5``         c commits 3 and 5, under the generation it was told last; ``commit 3 gen 1``:
                            under another; ``commit 3 !``: refused; ``commit 3 ?``: outcome unknown;
                            ``(commit 3`` and ``commit 3)``
``o: committed 3 1/none``   somebody asks what is committed, and is told that; ``(committed`` and
                            ``committed 3)``; ``committed 3 stable``: consumers of the case read at
                            ``read_committed``, so the answer waits for the ends of transactions
``n2 coordinates``          from then on metadata say that n2 coordinates all groups, as leader of their
                            partition of __consumer_offsets; ``committed 3 by n1``: n1 gave that answer
``c: joins limit 3 lock 9``  c joins a share group with this delivery limit and locks of so many ms; ``session
                            5``: its members are put out after so many ms
``c: acquired a@0 count 2``  a poll gives a of the group, with this delivery count (1 where it is not said);
                            ``(acquired`` and ``acquired a@0)``; ``acquired`` alone: nothing; ``buffered``:
                            nobody knows since when; ``renewed``: it had it, and renewed the lock
``c: accepts 0 1/5``        c accepts these offsets, which is confirmed; ``releases``, ``rejects`` and
                            ``renews``; ``accepts 0 ?``: outcome unknown; ``(accepts 0`` and ``accepts 0)``
``c: leaves``               c leaves its share group
``o: lag 3 1/0 past 2``     the share group has these numbers of records left, of partitions 0 and 1, from
                            offset 2 on
``p: txn 1 a@0 got b@1/0``  transaction 1: p sends a, its consumer is given b; ``(txn 1 a got`` and
                            ``txn 1 a@0 got b@1/0)``; without ``got`` it does not poll; where all outcomes are
                            ``!`` it aborted. ``txn 1 commit a@0``: its commit was asked for, right before
                            this event; ``abort``: its abort; ``c: commit 3 txn 1``: its offsets (``abort``
                            where that was asked for)
``p: txn 1 by x a@0``       its transactional id is x
``p: a@0 of x``             a has the key x. The topic is then a compacted one
``q: a'@out-0/?+``         what an application of the run makes of a; ``final a'@out-0/0=2``: with the state 2
``q: b@log-1-0/2``          a step of another topic, ``log-1``: its partition 0, offset 2 (also below)
``watch: stuck-lso log-0``  a look at a promise of liveness: log-0 does not move; ``watch: stuck-lso``: all
                            does. ``still 5``: by the change of which it would have moved; ``of 9``: it may
                            stand still for 9 s, and without that for no time at all; ``excused``: the cluster
                            cannot help it
``final a@0 b@1``           the final read, complete; ``final a@0 to 3 short``: end offset 3, not reached;
                            ``final 1/``; ``from 3``: the log begins there
``n2 holds a@0^4 hw 1``     host n2's own log, leader epoch 4, high watermark 1; ``out``: not in the ISR;
                            ``part``: not read whole; ``from 3``: the log begins there; ``twice``: in two log
                            directories
==========================  ==================================================================================

Commits are those of group g; ``in h`` (also after ``gen ... from ...``) is another. Values are letters or
words, unique in the run; one that begins with ``null`` is of a tombstone. ``#`` is a payload with a wrong
checksum, ``~`` one of another run. ``^4`` after an offset is the leader epoch of a record read (0 when not
said), ``^-`` one that the client does not tell.
Processes are words, numbered as they come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.cases.words import PART, STEP_NS, TOPIC, CaseError, Words
from wrackline.history.labels import CONSUMERS
from wrackline.history.model import (
    CONTROL,
    CORRUPT,
    FAILED,
    LIVENESS,
    REPLICA,
    UNKNOWN,
    Record,
    RunInfo,
    TopicInfo,
    Type,
)

__all__ = ["STEP_NS", "TOPIC", "Case", "CaseError", "parse", "steps"]

_READER, _MOST = 900, 20
"""The first process of final reads, and of how many partitions of a topic there may be some."""
_WORKLOADS = {"read": "register", "dequeue": "queue"}
_HOSTS = {"1": "n1", "2": "n2", "3": "n3"}
_OF_SHARE_GROUPS = ("joins", "acquired", "accepts", "releases", "rejects", "renews", "lag")
_PROTOCOLS = ("eager", "cooperative", "consumer")
_STEP = re.compile(
    r"(?:(?P<who>\w+):|(?P<host>n[123]) holds|(?P<leads>n[123]) coordinates|(?P<final>final))(?P<rest>.*)\Z",
    re.DOTALL,
)
_COMMITS = {"!": (Type.FAIL, "ILLEGAL_GENERATION"), "?": (Type.INFO, "_TIMED_OUT")}


@dataclass
class Case(Words):
    """Events of a case as they are parsed."""

    test_id: str
    idempotence: bool = True
    workload: str = "log"
    _processes: dict[str, int] = field(default_factory=dict)
    _generations: dict[int, int] = field(default_factory=dict)
    """Process -> the one it was told last."""
    _ends: dict[int, dict[str, object]] = field(default_factory=dict)
    """Transaction -> what was asked for, and when."""
    _compacted: bool = False
    _isolation: str = ""
    _epochs: int = 0
    """Coordinators so far."""
    _looks: dict[str, int] = field(default_factory=dict)
    """Promise of liveness -> how often it was looked at."""
    _reset: str = ""

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
            isolation=self._isolation,
            reset=self._reset,
            topics=tuple(
                TopicInfo(
                    *(name, partitions, 3, 2),
                    contiguous=not self._compacted,
                    compacted=self._compacted,
                    source=TOPIC if name in self._made else "",
                )
                for name, partitions in self._topics.items()
            ),
            nodes=_HOSTS,
        )

    # --- steps ---------------------------------------------------------------------------------------------

    def take(self, step: str) -> None:
        result = _STEP.match(step)
        if result is None:
            raise CaseError(f"{step!r}: neither 'process: ...' nor 'n1 holds ...' nor 'final ...'")
        rest = result["rest"].strip()
        self._of_topic(rest)
        if result["host"]:
            self._holds(result["host"], rest.split(), step)
        elif result["leads"]:
            self._coordinates(int(result["leads"][1:]))
        elif result["final"]:
            self._final(rest.split(), step)
        elif result["who"] == "watch":
            self._look(rest.split(), step)
        else:
            self._client(result["who"], rest, step)

    def _client(self, who: str, rest: str, step: str) -> None:
        process = self._processes.setdefault(who, len(self._processes) + 1)
        opens, closes = rest.startswith("("), rest.endswith(")")
        words = rest.strip("()").split()
        invoke, complete = not closes, not opens
        kind = words[0] if words else ""
        if kind == "end":
            self._end(process, words[1:], invoke, complete, step)
        elif kind == "delete":
            self._delete(process, words[1:], invoke, complete, step)
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
        elif kind in ("crash", "leaves"):
            self._event(process, Type.OK, "crash", extra={"group": "g", "left": kind == "leaves"})
        elif kind in _OF_SHARE_GROUPS:
            self._of_a_share_group(process, kind, words[1:], invoke, complete, step)
        elif words:
            self._send(process, words, invoke, complete, step)
        elif rest == ")":
            self._event(process, Type.INFO, "send", partition=0, error="_TIMED_OUT")
        else:
            raise CaseError(f"{step!r}: {who} does nothing")

    def _look(self, words: list[str], step: str) -> None:
        if not words:
            raise CaseError(f"{step!r}: which promise of liveness is looked at?")
        promise, words = words[0], words[1:]
        look = self._looks[promise] = self._looks.get(promise, 0) + 1
        row: dict[str, object] = {"promise": promise, "look": look}
        if not words:
            self._event(CONTROL, Type.INFO, LIVENESS, extra=row | {"kept": True})
            return
        pairs = [word for word in words[1:] if word != "excused"]
        starts = dict(zip(pairs[::2], pairs[1::2], strict=True))
        row |= {"kept": False, "subject": words[0], "state": "it does not move"}
        row |= {"still": starts.get("still", ""), "bound_s": float(starts.get("of", 0))}
        row |= {"excuse": "a node is down" if "excused" in words else ""}
        self._event(CONTROL, Type.INFO, LIVENESS, extra=row)

    def _send(
        self,
        process: int,
        words: list[str],
        invoke: bool,
        complete: bool,
        step: str,
        extra: dict[str, object] | None = None,
    ) -> None:
        key = None
        if "of" in words[1:-1]:
            *words, _, key = words
            self._compacted = True
        named = [self._record(word, step, sent=True) for word in words]
        partition = named[0].partition
        if invoke:
            records = tuple(record._replace(offset=UNKNOWN) for record in named)
            self._event(
                process, Type.INVOKE, "send", partition=partition, key=key, records=records, extra=extra
            )
        if complete:
            codes = [record.offset for record in named]
            kind = Type.OK if UNKNOWN not in codes and FAILED not in codes else Type.INFO
            kind = Type.FAIL if all(code == FAILED for code in codes) else kind
            error = None if kind is Type.OK else "_TIMED_OUT" if kind is Type.INFO else "MSG_SIZE_TOO_LARGE"
            whole = {"partition": partition, "key": key, "records": tuple(named)}
            self._event(process, kind, "send", error=error, extra=extra, **whole)

    def _transaction(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, flags = self._flags(words, ("txn",), ("commit", "abort"), step)
        extra: dict[str, object] = {"txn": flags["txn"]}
        named: dict[str, object] = {}
        if "by" in words[:-1]:
            at = words.index("by")
            named = {"transactional_id": words[at + 1]}
            words = words[:at] + words[at + 2 :]
        for end in flags.keys() - {"txn"}:
            self._ends[flags["txn"]] = {"asked": end, "end_ns": (len(self.events) + 1) * STEP_NS}
        at = words.index("got") if "got" in words else len(words)
        sent, polled = words[:at], words[at + 1 :]
        if not sent:
            raise CaseError(f"{step!r}: a transaction sends something (txn 1 a@0 got b@1/0)")
        consumer = process + CONSUMERS
        if invoke:
            self._send(process, sent, True, False, step, extra | named)
            if at < len(words):
                self._event(consumer, Type.INVOKE, "poll", extra=extra)
        if complete:
            extra = extra | self._ends.get(flags["txn"], {})
            self._send(process, sent, False, True, step, extra)
            kind = self.events[-1].type
            if at < len(words):
                records = tuple(self._record(word, step, epoch=-1) for word in polled)
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
        words, flags = self._flags(words, ("gen",), ("from", "lost", *_PROTOCOLS), step)
        places = dict(self._offset(word, step) for word in words)
        self._generations[process] = flags["gen"]
        extra |= {"member": f"m{process}", "generation": flags["gen"], "partitions": list(places)}
        starts = {str(partition): start for partition, start in places.items() if start is not None}
        if starts:
            extra["positions"] = starts
        if "lost" in flags:
            extra["lost"] = True
        for protocol in flags.keys() & set(_PROTOCOLS):
            extra["protocol"] = protocol
        self._event(process, Type.OK, "rebalance", extra=extra)

    def _commit(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, extra = self._in_group(words, step)
        words, flags = self._flags(words, ("gen", "txn"), ("!", "?", "abort"), step)
        if "txn" in flags:
            extra |= {"txn": flags["txn"], "asked": "abort" if "abort" in flags else "commit"}
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
        words, flags = self._flags(words, (), ("stable",), step)
        if flags:
            self._isolation = "read_committed"
            extra["stable"] = True
        if "by" in words[:-1]:
            at = words.index("by")
            extra |= {"coordinator": int(words[at + 1][1:]), "coordinator_by": "connection"}
            words = words[:at] + words[at + 2 :]
        if invoke:
            self._event(process, Type.INVOKE, "committed", extra=extra)
        if complete:
            named = {str(p): offset for p, offset in self._offsets(words, step)}
            self._event(process, Type.OK, "committed", extra={**extra, "offsets": named})

    def _coordinates(self, node: int) -> None:
        self._epochs += 1
        place = {"topic": "__consumer_offsets", "partition": 0}
        partition = {**place, "leader": node, "leader_epoch": self._epochs, "isr": [1, 2, 3]}
        self._event(CONTROL, Type.INFO, "cluster", extra={"partitions": [partition]})

    def _from(self, process: int, words: list[str], step: str) -> None:
        resets = [word for word in words if word in ("earliest", "latest")]
        words = [word for word in words if word not in resets]
        words, group = self._in_group(words, step) if "in" in words else (words, {})
        places = [self._place(word, step) for word in words]
        extra = {"positions": {str(partition): offset for partition, offset in places}} | group
        if resets:
            extra["reset"] = self._reset = resets[0]
        for kind in (Type.INVOKE, Type.OK):
            self._event(process, kind, "assign", extra=extra)

    def _got(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        if invoke:
            self._event(process, Type.INVOKE, "poll")
        if complete:
            words, flags = self._flags(words, (), ("undone",), step)
            at = words.index("at") if "at" in words else len(words)
            words, stands = words[:at], words[at + 1 :]
            given = tuple(self._record(word, step, epoch=-1) for word in words)
            bad = [
                {"partition": r.partition, "offset": r.offset, "detail": "a wrong checksum"}
                for r in given
                if r.value == CORRUPT
            ]
            extra: dict[str, object] = {"corrupt": bad} if bad else {}
            extra |= {"aborted": "fail"} if flags else {}
            if stands:
                extra["positions"] = {str(p): offset for p, offset in self._offsets(stands, step)}
            self._event(process, Type.OK, "poll", records=given, extra=extra or None)

    def _of_a_share_group(
        self, process: int, kind: str, words: list[str], invoke: bool, complete: bool, step: str
    ) -> None:
        words, extra = self._in_group(words, step)
        words, flags = self._flags(
            words, ("limit", "lock", "session", "count", "past"), ("?", "buffered", "renewed"), step
        )
        records: tuple[Record, ...] = ()
        if kind == "joins":
            f, ms = "subscribe", {name: flags.get(name, 0) for name in ("lock", "session")}
            extra["share"] = {"limit": flags.get("limit", 0), **{f"{name}_ms": n for name, n in ms.items()}}
        elif kind == "acquired":
            f, records = "acquire", tuple(self._record(word, step, epoch=-1) for word in words)
            extra["counts"] = [flags.get("count", 1)] * len(records)
            extra |= {"since_ns": 0} if "buffered" in flags else {}
            extra |= {"renewed": [[r.partition, r.offset] for r in records]} if "renewed" in flags else {}
        elif kind == "lag":
            f, lags = "lag", {str(p): lag for p, lag in self._offsets(words, step)}
            extra |= {"lags": lags, "starts": dict.fromkeys(lags, flags.get("past", 0))}
        else:
            named: dict[str, list[int]] = {}
            for partition, offset in self._offsets(words, step):
                named.setdefault(str(partition), []).append(offset)
            f, extra["acks"] = "acknowledge", {kind[:-1]: named}
        if invoke:
            self._event(process, Type.INVOKE, f, extra=extra if f != "acquire" else None)
        if complete and "?" in flags:
            self._event(process, Type.INFO, f, extra={**extra, "acks": {}}, error="_TIMED_OUT")
        elif complete:
            self._event(process, Type.OK, f, records=records, extra=extra)

    def _get(self, process: int, f: str, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        self.workload = _WORKLOADS[f]
        place = words.pop(0)[:-1] if words and re.fullmatch(r"\d+/", words[0]) else "0"
        if len(words) != complete:
            raise CaseError(f"{step!r}: {f!r} gives one record (a@0), 'nothing' or '!' where it ends")
        record = self._record(words[0], step) if complete and words[0] not in ("nothing", "!") else None
        partition = record.partition if record else int(place)
        self._part(str(partition))
        if invoke:
            self._event(process, Type.INVOKE, f, partition=partition)
        if complete and words[0] == "!":
            self._event(process, Type.FAIL, f, partition=partition, error="_TIMED_OUT")
        elif complete:
            self._event(process, Type.OK, f, partition=partition, records=(record,) if record else ())

    def _delete(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, flags = self._flags(words, ("low",), ("?",), step)
        if len(words) != 1:
            raise CaseError(f"{step!r}: 'delete' wants one offset (also when it is only asked for)")
        partition, before = self._place(words[0], step)
        place: dict[str, Any] = {"partition": partition, "offset": before}
        if invoke:
            self._event(process, Type.INVOKE, "delete", **place)
        if complete and "?" in flags:
            self._event(process, Type.INFO, "delete", **place, error="_TIMED_OUT")
        elif complete:
            low = {"low_watermark": flags.get("low", before)}
            self._event(process, Type.OK, "delete", **place, extra=low)

    def _end(self, process: int, words: list[str], invoke: bool, complete: bool, step: str) -> None:
        words, flags = self._flags(words, ("from",), (), step)
        if len(words) != 1:
            raise CaseError(f"{step!r}: 'end' wants one offset (also when it is only asked for)")
        partition, end = self._place(words[0], step)
        if invoke:
            self._event(process, Type.INVOKE, "end", partition=partition)
        if complete:
            start = flags.get("from")
            self._event(process, Type.OK, "end", partition=partition, offset=start, high_watermark=end)

    def _final(self, words: list[str], step: str) -> None:
        words, flags = self._flags(words, ("to", "from"), ("short",), step)
        named = re.fullmatch(PART, words[0]) if words else None
        partition = None if named is None else self._part(named["part"])
        words = words if named is None else words[1:]
        held = tuple(self._record(word, step) for word in words)
        partition = partition if partition is not None else held[0].partition if held else 0
        start = flags.get("from", 0)
        end = flags.get("to", held[-1].offset + 1 if held else start)
        reader = _READER + partition + _MOST * list(self._topics).index(self._topic)
        whole = "short" not in flags
        reached = max(end if whole else start, *(record.offset + 1 for record in held), start)
        extra: dict[str, object] = {"positions": {str(partition): reached}, "asked": True}
        extra |= {"complete": True} if whole else {}
        extra |= self._states(words)
        self._event(reader, Type.INVOKE, "drain", partition=partition)
        self._event(
            reader,
            Type.OK,
            "drain",
            partition=partition,
            offset=start,
            high_watermark=end,
            records=held,
            extra=extra,
        )

    def _holds(self, host: str, words: list[str], step: str) -> None:
        words, flags = self._flags(words, ("hw", "from"), ("out", "part", "twice"), step)
        held = tuple(self._record(word, step) for word in words)
        start = flags.get("from", 0)
        leo = held[-1].offset + 1 if held else start
        self._event(
            REPLICA,
            Type.OK,
            "replica",
            partition=held[0].partition if held else 0,
            node=host,
            offset=start,
            high_watermark=leo,
            records=held,
            extra={
                "in_isr": "out" not in flags,
                "complete": "part" not in flags,
                "hw": flags.get("hw", leo),
                **({"log_dirs": ["/data/broker", "/data2/broker"]} if "twice" in flags else {}),
            },
        )


def steps(text: str) -> Iterator[str]:
    yield from (step.strip() for step in re.split(r"[|\n]", text) if step.strip())


def parse(text: str, test_id: str = "case", *, idempotence: bool = True) -> Case:
    """The history that a case describes. Raises CaseError."""
    case = Case(test_id, idempotence)
    for step in steps(text):
        case.take(step)
    return case

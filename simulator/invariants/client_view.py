"""The clients' view, judged in the process: the cheap half of the history checks (docs/anomalies.md).

The judge looks at the same history (docs/checkers.md); these find the same classes of wrong within a search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.history.model import FAILED, Event, Record, Type, parts_of
from wrackline.simulator.clients.client import PROCESS_STRIDE

_OK: Final = Type.OK
_FAIL: Final = Type.FAIL
_MOST_AHEAD_MS: Final = 3_600_000
"""The default of ``message.timestamp.after.max.ms``."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that must not be. ``oracle`` is its class (an invariant's id, or a name from
    docs/anomalies.md)."""

    oracle: str
    text: str
    at_ms: float = 0.0
    step: int = 0


class ClientView:
    """Looks at the history row by row; ``look`` gives what the new rows prove. ``loss_allowed``: the contract
    is off (acks=1, unclean election, more lossy shutdowns than promised), so only certain failures that are
    read count."""

    def __init__(
        self,
        *,
        acks: int,
        idempotent: bool,
        loss_allowed: bool,
        plain: frozenset[int] = frozenset(),
        log_start: Callable[[int], int] = lambda partition: 0,  # noqa: ARG005
    ) -> None:
        """``plain``: numbers of clients that are not idempotent where the others are. ``log_start``: of a
        partition, what retention has made of it; a broker that was started since does not know the producers
        of what lies below, as in Kafka, and takes such a batch again."""
        self._acks = acks
        self._plain = plain
        self._log_start = log_start
        self._idempotent = idempotent
        self.loss_allowed = loss_allowed
        self._at = 0
        self._found: list[Violation] = []
        self._now_ms = 0.0
        self._acked: dict[int, tuple[int, int, int]] = {}
        """value -> (partition, offset, process)"""
        self._failed: set[int] = set()
        self._read: set[int] = set()
        self._values: dict[tuple[int, int], int] = {}
        """place -> the first value seen there"""
        self._places: dict[int, tuple[int, int]] = {}
        """value -> the first place it was seen at"""
        self._due: dict[tuple[int, int], int] = {}
        """(process, partition) -> the offset its next poll must begin with"""

    def look(self, events: Sequence[Event]) -> list[Violation]:
        """``events``: the whole history so far; only what is new is looked at."""
        for at in range(self._at, len(events)):
            self._take(events[at])
        self._at = len(events)
        result, self._found = self._found, []
        return result

    def final(
        self,
        records: Mapping[int, Sequence[Record]],
        starts: Mapping[int, int],
        deleted: Mapping[int, int],
    ) -> list[Violation]:
        """Checks, after the final read has come to its end, that what was acknowledged is in it. ``starts``:
        where each partition began; ``deleted``: the highest start that anybody has asked for."""
        for partition, start in starts.items():
            if start > deleted.get(partition, 0):
                asked = f"{deleted.get(partition, 0)} was asked for at most"
                return [
                    Violation("log-start", f"partition {partition} begins at {start}, {asked}", self._now_ms)
                ]
        if self._acks != -1 or self.loss_allowed:
            return []
        there = {record.value for read in records.values() for record in read}
        missing = sorted(
            value
            for value, (partition, offset, _) in self._acked.items()
            if value not in there and offset >= starts.get(partition, 0)
        )
        if not missing:
            return []
        partition, offset, process = self._acked[missing[0]]
        text = (
            f"{len(missing)} acknowledged values are not in the final read; the first is {missing[0]} of "
            "process "
            f"{process}, acknowledged at {partition}@{offset}"
        )
        return [Violation("lost-write", text, self._now_ms)]

    def _say(self, oracle: str, text: str) -> None:
        self._found.append(Violation(oracle, text, self._now_ms))

    def _take(self, event: Event) -> None:
        self._now_ms = event.time_ns / 1e6
        if event.type is _OK:
            match event.f:
                case "send":
                    self._stamped(event)
                    for record in event.records:
                        self._acked[record.value] = record.partition, record.offset, event.process
                    self._seen_at(event, "an ack to")
                case "poll":
                    self._seen_at(event, "a poll of")
                    self._reads(event)
                    self._in_turn(event)
                case "drain":
                    self._seen_at(event, "the final read,")
                    self._reads(event)
                case "assign":
                    for partition, offset in (event.extra or {}).get("positions", {}).items():
                        self._due[event.process, int(partition)] = offset
        elif event.type is _FAIL and event.f == "send":
            if (
                event.error == "invalid_timestamp"
                and (event.extra or {}).get("time_off_ms", 0) < _MOST_AHEAD_MS
            ):
                self._say("wrong-time", f"process {event.process}: records with a possible time were refused")
            self._failed |= {record.value for record in event.records if record.offset == FAILED}

    def _seen_at(self, event: Event, who: str) -> None:
        """One value at a place, for ever; one place for a value, with idempotence."""
        if self.loss_allowed:
            return
        for record in event.records:
            place = record.partition, record.offset
            first = self._values.setdefault(place, record.value)
            if first != record.value:
                self._say(
                    "inconsistent-offsets",
                    f"{place[0]}@{place[1]} held {first}, and {who} process {event.process} says "
                    f"{record.value}",
                )
            where = self._places.setdefault(record.value, place)
            twice = where != place and self._idempotent and not self._is_plain(record.value)
            if twice and where[1] >= self._log_start(where[0]):
                self._say("duplicate", f"value {record.value} is at {where} and at {place}")

    def _stamped(self, event: Event) -> None:
        """A broker refuses records whose time is too far ahead of its own (KIP-1030)."""
        ahead_ms = (event.extra or {}).get("time_off_ms", 0)
        if ahead_ms > 2 * _MOST_AHEAD_MS:
            value = event.records[0].value
            self._say("wrong-time", f"value {value} was appended, {ahead_ms} ms ahead of its broker's clock")

    def _is_plain(self, value: int) -> bool:
        return bool(self._plain) and parts_of(value)[0] // PROCESS_STRIDE in self._plain

    def _reads(self, event: Event) -> None:
        for record in event.records:
            if record.value in self._failed:
                self._say(
                    "read-of-failed-write", f"value {record.value} was certainly not appended, and was read"
                )
            self._read.add(record.value)

    def _in_turn(self, event: Event) -> None:
        """A consumer is given every offset in turn between two assigns, but for those that its broker had
        deleted by then."""
        for record in event.records:
            key = event.process, record.partition
            due = self._due.get(key, record.offset)
            deleted = due < record.offset <= self._log_start(record.partition)
            if record.offset != due and not deleted and not self.loss_allowed:
                what = "poll-skip" if record.offset > due else "nonmonotonic-poll"
                where = f"{record.partition}@{record.offset}"
                self._say(what, f"process {event.process} was given {where}, {due} was due")
            self._due[key] = record.offset + 1

"""The words of a case (see ``language``): records, offsets, places, and what stands beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    CORRUPT,
    FAILED,
    FOREIGN,
    TOMBSTONE,
    UNKNOWN,
    Event,
    Record,
    Type,
    output_of,
    value_of,
)

TOPIC = "log"
STEP_NS = 1_000_000
PART = r"(?:[a-z][\w.-]*-)?(?P<part>\d+)/"
"""A partition, of another topic where one is named."""
_NAMED = re.compile(r"(?:^|[@ (])([a-z][\w.-]*)-\d+/")
_RECORD = re.compile(
    rf"(?P<value>\w+'?|#|~)(?:@(?:{PART})?(?P<offset>\d+|\?)(?:\^(?P<epoch>\d+|-))?(?:=(?P<state>\d+))?)?"
    r"(?P<mark>[?!+]?)\Z"
)
_OFFSET = re.compile(rf"(?:{PART})?(?P<offset>\d+|\?|none)\Z")
_CODES = {"?": UNKNOWN, "!": FAILED, "+": ACKED_WITHOUT_OFFSET}


class CaseError(ValueError):
    """A case that makes no sense. One line: which step, what is wrong with it."""


@dataclass
class Words:
    """The meaning of words in a case: the events so far, and names that were given."""

    events: list[Event] = field(default_factory=list, kw_only=True)
    _values: dict[str, int] = field(default_factory=dict, kw_only=True)
    _topic: str = field(default=TOPIC, kw_only=True)
    """Of the step."""
    _topics: dict[str, int] = field(default_factory=lambda: {TOPIC: 1}, kw_only=True)
    """Name -> partitions."""
    _made: set[str] = field(default_factory=set, kw_only=True)
    """Topics that an application makes of the first one."""

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
        result = [self._offset(word, step) for word in words]
        if not result or any(offset is None for _, offset in result):
            raise CaseError(f"{step!r}: an offset must follow (3, 1/5, 1/none)")
        return [(partition, offset) for partition, offset in result if offset is not None]

    def _of_topic(self, step: str) -> None:
        """The topic that the step is about: the one that it names, which is one at most. Raises CaseError."""
        named = set(_NAMED.findall(step)) or {TOPIC}
        if len(named) > 1:
            raise CaseError(f"{step!r}: an event is of one topic, not of {' and '.join(sorted(named))}")
        self._topic = named.pop()

    def _part(self, number: str | None) -> int:
        """The partition of the step's topic, noted down."""
        partition = int(number or 0)
        self._topics[self._topic] = max(self._topics.get(self._topic, 1), partition + 1)
        return partition

    def _offset(self, word: str, step: str) -> tuple[int, int | None]:
        result = _OFFSET.match(word)
        if result is None:
            raise CaseError(f"{step!r}: {word!r} is no offset (7, or 1/7 in partition 1)")
        partition, at = self._part(result["part"]), result["offset"]
        return partition, {"?": None, "none": -1}[at] if not at.isdigit() else int(at)

    def _place(self, word: str, step: str) -> tuple[int, int]:
        partition, offset = self._offset(word, step)
        if offset is None or offset < 0:
            raise CaseError(f"{step!r}: {word!r} is no offset (7, or 1/7 in partition 1)")
        return partition, offset

    def _record(self, word: str, step: str, *, sent: bool = False, epoch: int = 0) -> Record:
        result = _RECORD.match(word)
        if result is None:
            raise CaseError(f"{step!r}: {word!r} is no record (a@0, a@1/0, a@0^3, a?, a!, a+)")
        partition = self._part(result["part"])
        if result["offset"] not in (None, "?"):
            offset = int(result["offset"])
        elif sent:
            offset = _CODES.get(result["mark"], UNKNOWN)
        else:
            raise CaseError(f"{step!r}: {word!r} was read, so it has an offset")
        leader_epoch = -1 if result["epoch"] == "-" else int(result["epoch"] or epoch)
        return Record(partition, offset, self._value(result["value"]), leader_epoch)

    def _states(self, words: list[str]) -> dict[str, object]:
        """Says which state an application gave each of the records, if it gave any."""
        named = [found["state"] for word in words if (found := _RECORD.match(word))]
        return {"states": [int(state or -1) for state in named]} if any(named) else {}

    def _value(self, name: str) -> int:
        if name in ("#", "~"):
            return CORRUPT if name == "#" else FOREIGN
        if name.endswith("'"):
            self._made.add(self._topic)
            return output_of(self._value(name[:-1]))
        attempt = TOMBSTONE if name.startswith("null") else 0
        return self._values.setdefault(name, value_of(1, len(self._values), attempt))

    def _event(self, process: int, kind: Type, f: str, **columns: object) -> None:
        index = len(self.events)
        time = (index + 1) * STEP_NS
        made = Event(process, kind, f, topic=self._topic, index=index, time_ns=time, **columns)  # type: ignore[arg-type]
        self.events.append(made)

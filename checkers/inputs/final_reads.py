"""The final reads and how far they came: of each partition by its clients, and of each replica's own log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.inputs.table import NEVER, NONE
from wrackline.history.offsets import Intervals


@dataclass(frozen=True, slots=True)
class ReportedEnd:
    """An answer to who asked where the log ends."""

    end: int
    process: int
    invoke_index: int
    invoke_ns: int
    complete_index: int
    complete_ns: int


@dataclass(slots=True)
class FinalRead:
    """The final read of one partition and how far it came."""

    log_start: int = 0
    end: int = -1
    """Where the log ends: as it was told, or behind the last record that was read where that lies further
    on."""
    complete: bool = False
    """It was read to its end offset."""
    derived: bool = False
    """Nobody made one: it is what polls together gave, and nothing is known of offsets from ``end`` on."""
    unseen: int = 0
    """Of a derived one: records that were acknowledged where nobody read."""
    unreadable: Sequence[tuple[int, int]] = ()
    """First and last of offsets that nobody could be given, while those behind them could."""
    late_ns: int | None = None
    """When a client learnt of this partition last, if that was after the final read had begun."""
    began: int | None = None
    """Index of its first invocation."""
    first_shown: dict[int, int] = field(default_factory=dict)
    """End offset -> index of the invocation of the first operation that was shown it, or came to it."""
    reported_ends: list[ReportedEnd] = field(default_factory=list)
    """Every answer of the leader to this read, in their order."""
    _begun: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Process -> (index, time_ns) of its last invocation."""

    @property
    def deleted_below(self) -> int:
        """Returns the offset below which everything was deleted, so that nothing can be said of it: by the
        word of the leader, whom the followers' log starts follow. Polls tell nothing of a log's beginning."""
        return 0 if self.derived else max(self.log_start, 0)

    @property
    def is_evidence(self) -> bool:
        """Tells whether records that the read lacks are gone: it reached its end, and nobody was told of
        more behind its beginning."""
        return self.complete and self.late_ns is None

    @property
    def asked(self) -> int:
        """When ``end`` was asked for: whatever completed before that index saw the log as it was before."""
        return self.first_shown.get(self.end, NONE)

    @property
    def stale_end(self) -> int | None:
        """The end offset that the leader told last, where the read had come further; else None."""
        return (
            self.reported_ends[-1].end
            if self.reported_ends and self.reported_ends[-1].end < self.end
            else None
        )

    def take(self, row: Mapping[str, Any]) -> None:
        """Takes up any event of a drain."""
        if row["type"] == "invoke":
            self._begun[row["process"]] = (row["index"], row["time_ns"])
            self.began = row["index"] if self.began is None else self.began
        if row["high_watermark"] is not None:
            self.first_shown.setdefault(row["high_watermark"], self._since(row)[0])
        if row["type"] == "ok":
            self._take_answer(row)

    def _since(self, row: Mapping[str, Any]) -> tuple[int, int]:
        return self._begun.get(row["process"], (row["index"], row["time_ns"]))

    def _take_answer(self, row: Mapping[str, Any]) -> None:
        derived = bool(row["extra"].get("derived"))
        if row["offset"] is not None:
            self.log_start = row["offset"]
        if (end := row["high_watermark"]) is not None and end >= 0:
            since = self._since(row)
            # Older histories do not say who asked: each end is told to the first that knows it.
            if not derived and (
                row["extra"].get("asked") or all(one.end != end for one in self.reported_ends)
            ):
                self.reported_ends.append(
                    ReportedEnd(end, row["process"], *since, row["index"], row["time_ns"])
                )
            reached = (row["extra"].get("positions") or {}).get(str(row["partition"]), -1)
            self.end = end if derived else max(end, int(reached))
            self.first_shown.setdefault(self.end, since[0])
        if row["extra"].get("complete") is True:
            self.complete = self.end >= 0
            self.unreadable = tuple((int(a), int(b)) for a, b in row["extra"].get("unreadable", ()))
        self.derived = self.derived or derived
        self.unseen = int(row["extra"].get("unseen", self.unseen))


@dataclass(frozen=True, slots=True)
class SecondReading:
    """The result of asking a witness again, since it lacked records that others had."""

    host: str
    """Whose log it is of; empty: the final read."""
    lacked: Intervals
    found: Intervals
    """Of these offsets those at which the second reader found a record: the first one slipped."""
    witnesses: tuple[str, ...]
    """Who has the records: hosts, ``clients``, ``the final read``."""
    problem: str
    """Why there was no answer; empty: there was one."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SecondReading:
        """Raises LookupError, TypeError or ValueError where the row makes no sense."""
        extra = row["extra"]
        lacked, result = (
            [[int(first), int(last)] for first, last in extra[name]] for name in ("lacked", "found")
        )
        witnesses = tuple(map(str, extra["witnesses"]))
        return cls(str(row["node"] or ""), lacked, result, witnesses, str(row["error"] or ""))


@dataclass(slots=True)
class ReplicaRead:
    """The read of one replica's own log and how far it came."""

    log_start: int = 0
    leo: int = -1
    hw: int = -1
    in_isr: bool = False
    complete: bool = False
    problem: str = ""
    tiered: bool = False
    """What lies before its files may be in a remote tier: it was not deleted."""
    log_dirs: Sequence[str] = ()
    """The log directories that have the partition, where several do."""
    index: int = NEVER
    """Of its first row."""

    def take(self, row: Mapping[str, Any]) -> None:
        """Takes up what a read of this replica's log gave."""
        extra = row["extra"]
        self.index = min(self.index, row["index"])
        self.log_start = row["offset"] if row["offset"] is not None else self.log_start
        self.leo = row["high_watermark"] if row["high_watermark"] is not None else self.leo
        self.hw = int(extra.get("hw", self.hw))
        self.in_isr = extra.get("in_isr") is True
        self.tiered = extra.get("tiered") is True
        self.log_dirs = tuple(map(str, extra.get("log_dirs", ())))
        self.complete = self.complete or extra.get("complete") is True
        self.problem = str(row["error"] or self.problem)

"""How far the final reads came: of each partition by its clients, and of each replica's own log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.inputs.arrays import NEVER, NONE


@dataclass(slots=True)
class FinalRead:
    """How far the final read of one partition came."""

    log_start: int = 0
    end: int = -1
    complete: bool = False
    """It was read to its end offset."""
    derived: bool = False
    """Nobody made one: it is what polls together gave, and nothing is known of offsets from ``end`` on."""
    unseen: int = 0
    """Of a derived one: records that were acknowledged where nobody read."""
    late_ns: int | None = None
    """When a client learnt of this partition last, if that was after the final read had begun."""
    began: int | None = None
    """Index of its first invocation."""
    first_shown: dict[int, int] = field(default_factory=dict)
    """End offset -> index of the invocation of the first operation that was shown it."""
    _begun: dict[int, int] = field(default_factory=dict)
    """Process -> index of its last invocation."""

    @property
    def deleted_below(self) -> int:
        """What lies below this offset was deleted, and nothing can be said of it: by the word of the leader,
        whom the followers' log starts follow. Polls tell nothing of a log's beginning."""
        return 0 if self.derived else max(self.log_start, 0)

    @property
    def is_evidence(self) -> bool:
        """Whether what is not in it is gone: it reached its end, and nobody was told of more behind its
        beginning."""
        return self.complete and self.late_ns is None

    @property
    def asked(self) -> int:
        """When ``end`` was asked for: whatever completed before that index saw the log as it was before."""
        return self.first_shown.get(self.end, NONE)

    def take(self, row: Mapping[str, Any]) -> None:
        """Takes up any event of a drain."""
        if row["type"] == "invoke":
            self._begun[row["process"]] = row["index"]
            self.began = row["index"] if self.began is None else self.began
        if row["high_watermark"] is not None:
            since = self._begun.get(row["process"], row["index"])
            self.first_shown.setdefault(row["high_watermark"], since)
        if row["type"] == "ok":
            self._take_answer(row)

    def _take_answer(self, row: Mapping[str, Any]) -> None:
        if row["offset"] is not None:
            self.log_start = row["offset"]
        if row["high_watermark"] is not None:
            self.end = row["high_watermark"]
        if row["extra"].get("complete") is True:
            self.complete = self.end >= 0
        self.derived = self.derived or bool(row["extra"].get("derived"))
        self.unseen = int(row["extra"].get("unseen", self.unseen))


@dataclass(slots=True)
class ReplicaRead:
    """How far the read of one replica's own log came."""

    log_start: int = 0
    leo: int = -1
    hw: int = -1
    in_isr: bool = False
    complete: bool = False
    problem: str = ""
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
        self.complete = self.complete or extra.get("complete") is True
        self.problem = str(row["error"] or self.problem)

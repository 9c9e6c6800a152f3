"""Snapshots of the metadata log (docs/protocol.md 2.12.7; KIP-630): when one is due, how much of the log it
replaces, who must be given one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wrackline.broker.model.types import NO_EPOCH, SnapshotId


class Growth(NamedTuple):
    """Growth of the committed log since the last snapshot, or what makes one due."""

    records: int
    size_bytes: int
    age_ms: float


class SnapshotRules:
    """Every profile but zk08 has these."""

    def is_due(self, since: Growth, limit: Growth) -> bool:
        if since.records == 0:
            return False
        return (
            since.records >= limit.records
            or since.size_bytes >= limit.size_bytes
            or since.age_ms >= limit.age_ms
        )

    def keeps(self, ids: Sequence[SnapshotId]) -> Sequence[SnapshotId]:
        """The newest, and the one before it: whoever lags by less than one snapshot is served from the log,
        and should the newest be damaged, the other and the log hold all the same. ``ids``: oldest first."""
        return ids[-2:]

    def log_start(self, ids: Sequence[SnapshotId], high_watermark: int) -> int:  # noqa: ARG002
        """Returns the log start: nothing may be dropped that no snapshot holds (KAFKA-14238), and while there
        is one only, nothing at all. ``ids``: those kept, oldest first."""
        return ids[0].end_offset if len(ids) > 1 else 0

    def must_load(self, offset: int, epoch: int, log_start: SnapshotId) -> bool:
        """Is what the asker needs no longer in the log
        (docs/protocol.md 2.12.7)? ``epoch``: of its last record, -1 with none.

        ``log_start``: where the log begins and the epoch of the record before. An asker whose log ends there
        in another epoch, or anywhere in an older one, may hold records that were never committed.
        """
        if log_start.end_offset == 0:
            return False
        if offset < log_start.end_offset or epoch == NO_EPOCH:
            return True
        return epoch < log_start.epoch or (offset == log_start.end_offset and epoch != log_start.epoch)

"""The snapshots that one node has of the metadata log: which, how large, when the next is due (KIP-630).

Controllers and brokers each make their own. A snapshot counts when the disk has it (SnapshotWritten); only
then may the log below it go.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from wrackline.broker.model.config import NodeConfig
from wrackline.broker.model.effects import DeleteSnapshot, Effect, Trace, WriteSnapshot
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.metadata import snapshot_format
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import NO_EPOCH, NodeId, SnapshotId, StoredSnapshot
from wrackline.broker.rules.placement.snapshots import Growth, SnapshotRules


class Snapshots:
    """Methods that write append their effects to ``out``."""

    def __init__(self, config: NodeConfig, rules: SnapshotRules) -> None:
        self._rules = rules
        self._limit = Growth(
            config.metadata_log_max_records_between_snapshots,
            config.metadata_log_max_record_bytes_between_snapshots,
            config.metadata_log_max_snapshot_interval_ms,
        )
        self._sizes: dict[SnapshotId, int] = {}
        """In bytes, of those on the disk."""
        self._writing: dict[SnapshotId, int] = {}
        self._own: SnapshotId | None = None
        """Being written, and made here."""
        self._records = self._bytes = 0
        self._since_ms = 0.0

    @property
    def ids(self) -> tuple[SnapshotId, ...]:
        """Oldest first."""
        return tuple(sorted(self._sizes))

    @property
    def newest(self) -> SnapshotId | None:
        return max(self._sizes, default=None)

    def size_of(self, snapshot: SnapshotId) -> int | None:
        """Returns the size in bytes; None for a snapshot that is not here."""
        return self._sizes.get(snapshot)

    def epoch_before(self, offset: int) -> int:
        """Returns the epoch of the record before ``offset``, where a snapshot ends there; -1: none does."""
        return next((each.epoch for each in self._sizes if each.end_offset == offset), NO_EPOCH)

    # --- start ---------------------------------------------------------------------------------------------

    def restore(
        self, found: Sequence[StoredSnapshot], now_ms: float, out: list[Effect]
    ) -> tuple[SnapshotId, ClusterImage] | None:
        """The newest that is whole, and what it says. Damaged ones are removed, and a person is told."""
        self._since_ms = now_ms
        best: tuple[SnapshotId, ClusterImage] | None = None
        for stored in sorted(found, key=lambda each: each.id, reverse=True):
            if best is None:
                try:
                    best = stored.id, snapshot_format.read(stored.data, stored.id)
                except ValueError as error:
                    fields = {**stored.id._asdict(), "why": str(error)}
                    out += [Trace("snapshot_damaged", fields, loud=True), DeleteSnapshot(stored.id)]
                    continue
            self._sizes[stored.id] = len(stored.data)
        return best

    # --- making them ----------------------------------------------------------------------------------------

    def grew(self, records: int, size_bytes: int) -> None:
        """Counts what was committed besides."""
        self._records += records
        self._bytes += size_bytes

    def is_due(self, now_ms: float) -> bool:
        since = Growth(self._records, self._bytes, now_ms - self._since_ms)
        return self._own is None and self._rules.is_due(since, self._limit)

    def make(self, snapshot: SnapshotId, image: ClusterImage, now_ms: float, out: list[Effect]) -> None:
        self._records = self._bytes = 0
        self._since_ms = now_ms
        self._own = snapshot
        self._write(snapshot, snapshot_format.write(image, snapshot, now_ms), "made", out)

    def take(self, snapshot: SnapshotId, data: bytes, out: list[Effect]) -> None:
        """One that was fetched."""
        self._write(snapshot, data, "fetched", out)

    def _write(self, snapshot: SnapshotId, data: bytes, how: str, out: list[Effect]) -> None:
        self._writing[snapshot] = len(data)
        fields = {**snapshot._asdict(), "bytes": len(data), "how": how}
        out += [Trace("snapshot_write", fields), WriteSnapshot(snapshot, data)]

    def written(self, snapshot: SnapshotId) -> None:
        if snapshot in self._writing:
            self._sizes[snapshot] = self._writing.pop(snapshot)
        if snapshot == self._own:
            self._own = None

    def reset(self, now_ms: float) -> None:
        """The log begins at a snapshot: there is nothing in it yet."""
        self._records = self._bytes = 0
        self._since_ms = now_ms

    # --- cleaning -------------------------------------------------------------------------------------------

    def log_start(self, high_watermark: int) -> int:
        """Returns how far back the log must reach."""
        return self._rules.log_start(self._rules.keeps(self.ids), high_watermark)

    def drop_below(self, log_start: int, out: list[Effect]) -> None:
        """The log no longer goes on from where these end."""
        newest = self.newest
        for snapshot in self.ids:
            if snapshot.end_offset < log_start and snapshot != newest:
                self.drop(snapshot, out)

    def drop(self, snapshot: SnapshotId, out: list[Effect]) -> None:
        self._sizes.pop(snapshot, None)
        out.append(DeleteSnapshot(snapshot))


class Download:
    """A snapshot on its way here."""

    def __init__(self, snapshot: SnapshotId) -> None:
        self.id = snapshot
        self._data = bytearray()

    @property
    def position(self) -> int:
        return len(self._data)

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    def take(self, piece: FetchSnapshotResponse) -> bool:
        """True when it is whole. Raises ValueError for a piece that does not go on where the last one
        ended."""
        records = piece.records
        if not isinstance(records, bytes) or piece.snapshot != self.id or piece.position != self.position:
            raise ValueError(f"a piece of {piece.snapshot} at {piece.position}, asked at {self.position}")
        if not records or self.position + len(records) > piece.size:
            raise ValueError(f"{len(records)} bytes at {self.position} of {piece.size}")
        self._data += records
        return self.position == piece.size

    def request(
        self,
        cluster_id: str,
        replica_id: NodeId,
        max_bytes: int,
        *,
        epoch: int = NO_EPOCH,
        directory: UUID | None = None,
    ) -> FetchSnapshotRequest:
        """Returns the request for the next piece. ``epoch`` and ``directory``: of a voter."""
        return FetchSnapshotRequest(
            cluster_id, replica_id, self.id, self.position, max_bytes, epoch, directory
        )

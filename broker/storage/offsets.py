"""The offset checkpoints of a data directory: files with one offset for each log, replaced as a whole.

They grow with the number of logs. What is written by the clock is therefore written by a thread; what an
effect rests on is written at once, and then replaces what the thread had yet to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage import checkpoint


class OffsetCheckpoints:
    """All methods but ``write_due`` belong to the event loop's thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offsets: dict[Checkpoint, dict[TopicPartition, int]] = {kind: {} for kind in Checkpoint}
        self._lock = Lock()
        """Of the files, and of which are due."""
        self._due: set[Checkpoint] = set()

    def __getitem__(self, kind: Checkpoint) -> Mapping[TopicPartition, int]:
        return self._offsets[kind]

    def read(self, kind: Checkpoint) -> None:
        """Raises CheckpointError, and then nothing is known."""
        self._offsets[kind] = {}
        self._offsets[kind] = checkpoint.read_offsets(self._path(kind))

    def _path(self, kind: Checkpoint) -> Path:
        return self._directory / checkpoint.CHECKPOINT_FILES[kind]

    def write(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        """Durable on return. Raises OSError."""
        self._offsets[kind] = dict(offsets)
        with self._lock:
            self._due.discard(kind)
            checkpoint.write_offsets(self._path(kind), offsets)

    def write_later(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        """``write_due`` does it."""
        self._offsets[kind] = dict(offsets)
        self._due.add(kind)

    def put(self, kind: Checkpoint, tp: TopicPartition, offset: int) -> None:
        """``write_later`` of one log's."""
        self._offsets[kind][tp] = offset
        self._due.add(kind)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def write_due(self) -> None:
        """Writes the offsets that are due, in any thread; durable on return. Raises OSError."""
        for kind in Checkpoint:
            with self._lock:
                if kind in self._due:
                    self._due.discard(kind)
                    # A copy, made in one step: the event loop goes on changing it.
                    checkpoint.write_offsets(self._path(kind), self._offsets[kind].copy())

    def forget(self, tp: TopicPartition) -> None:
        """Forgets a log that was deleted: what is known of it is soon no more said of another log of that
        name."""
        for kind, offsets in self._offsets.items():
            if offsets.pop(tp, None) is not None:
                self._due.add(kind)

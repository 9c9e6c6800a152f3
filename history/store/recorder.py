"""Write a history down while it happens.

``Recorder.record`` gives an event its index and its time and has written its line to the write-ahead file
when it returns: an invocation is on record before the request leaves, whatever becomes of this process. A
thread follows the file and turns it into Parquet row groups while the run goes on.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from wrackline.history.journal import Journal
from wrackline.history.model import Event, RunInfo
from wrackline.history.store import wal
from wrackline.history.store.files import (
    CHUNK_BYTES,
    finish,
    open_writer,
    put_info,
    write_info,
    write_row_groups,
)
from wrackline.history.store.folder import PARQUET, WAL, private_folder

log = logging.getLogger(__name__)

FOLLOW_S = 0.5
"""How often the Parquet writer looks for new lines."""


class RecordingFailed(Exception):
    """The history cannot be written any more (a full disk). What was recorded before is kept."""


class Recorder:
    """Records the events of one run into its directory. Safe to use from any thread."""

    def __init__(self, run_dir: Path, info: RunInfo) -> None:
        """Raises FileExistsError when the directory has a history already."""
        private_folder(run_dir)
        if (run_dir / PARQUET).exists():
            raise FileExistsError(f"{run_dir} holds a history already: each run needs a directory of its own")
        self.run_dir = run_dir
        self.info = info
        self.failure: str | None = None
        """Why nothing can be recorded any more; None while all is well."""
        self.listeners: list[Callable[[Event], None]] = []
        """Each is called with the rows of nemesis and runner (processes below 0), in the thread that records
        them."""
        self._lock = threading.Lock()
        self._index = 0
        self._closed = False
        self._start_ns = time.monotonic_ns()
        self._journal = Journal(run_dir / WAL)
        write_info(run_dir, info)
        self._write(wal.header_line(info))
        self._header_bytes = self._journal.size
        self._ended = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="history-writer", daemon=True)
        self._follower.start()

    @property
    def start_ns(self) -> int:
        """``time.monotonic_ns()`` at the start of the run: ``time_ns`` counts from here."""
        return self._start_ns

    @property
    def events(self) -> int:
        return self._index

    def now_ns(self) -> int:
        """The run's clock."""
        return time.monotonic_ns() - self._start_ns

    def learn(
        self, *, features: Mapping[str, int] | None = None, client: Mapping[str, str | int] | None = None
    ) -> None:
        """Add to the run's information what nobody could know at its start. It is kept even if this process
        is killed. Raises OSError."""
        with self._lock:
            self.info = dataclasses.replace(
                self.info,
                features={**self.info.features, **(features or {})},
                client={**self.info.client, **(client or {})},
            )
            write_info(self.run_dir, self.info)

    def record(self, event: Event) -> Event:
        """Write an event down; returns it with its index and time. Raises RecordingFailed."""
        tail = wal.encode_tail(event)
        with self._lock:
            if self._closed:
                raise RecordingFailed("the history is closed")
            index, now = self._index, time.monotonic_ns() - self._start_ns
            self._write(wal.with_beginning(index, now, tail))
            self._index = index + 1
        # The event is still in its maker's hands only; a frozen copy of 17 fields would cost as much as all
        # the rest.
        object.__setattr__(event, "index", index)
        object.__setattr__(event, "time_ns", now)
        if event.process < 0:
            for listener in self.listeners:
                listener(event)
        return event

    def _write(self, line: bytes) -> None:
        if self.failure is not None:
            raise RecordingFailed(self.failure)
        try:
            self._journal.append(line)
        except OSError as error:
            self.failure = (
                f"{self.run_dir / WAL}: {error.strerror or error}; the run is stopped and what was recorded "
                "is kept: free some space, then `wrackline analyze` the run"
            )
            raise RecordingFailed(self.failure) from error

    def close(self, *notes: str) -> None:
        """End the history: ``history.parquet`` is whole and durable when this returns. ``notes`` are added to
        the run's information. Idempotent. Raises RecordingFailed when the Parquet file could not be written
        (the write-ahead file then stays, and can be converted later)."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if notes:
            self.info = dataclasses.replace(self.info, notes=(*self.info.notes, *notes))
        self._ended.set()
        self._follower.join()
        self._journal.close()
        if self.failure is not None:
            raise RecordingFailed(self.failure)
        (self.run_dir / WAL).unlink()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _follow(self) -> None:
        """The writer thread: the write-ahead file becomes Parquet behind the writers' backs."""
        part = self.run_dir / (PARQUET + ".part")
        try:
            self._follow_into(part)
            if self.failure is None:
                write_info(self.run_dir, self.info)
                finish(part, self.run_dir / PARQUET)
        except (OSError, ValueError) as error:
            if self.failure is None:
                self.failure = f"{part}: {error}; the run is stopped, {WAL} beside it holds what was recorded"
        if self.failure is not None:
            part.unlink(missing_ok=True)
            log.warning("%s", self.failure)

    def _follow_into(self, part: Path) -> None:
        pending: list[pa.Table] = []
        with (self.run_dir / WAL).open("rb") as file, open_writer(part) as writer:
            position = self._header_bytes
            while True:
                last_round = self._ended.wait(FOLLOW_S)
                for chunk in wal.read_chunks(file.fileno(), position, self._journal.size, CHUNK_BYTES):
                    position += len(chunk)
                    pending.append(wal.table_of(chunk, self.info.test_id))
                    pending = write_row_groups(writer, pending)
                if last_round:
                    break
            write_row_groups(writer, pending, everything=True)
            put_info(writer, self.info)

"""Work that the directories of logs still lack on the disk: done in batches, in a thread, and synced at once.

A log is made, its leader epochs are written and its directory is removed behind the event loop, so an event
that concerns a thousand logs takes as long as one that concerns none. Two orders hold for each log:

- what was asked for is carried out before the log is next written to: whoever does so does not wait for the
  thread, but for this one log. What a kill leaves is therefore what the core had asked for, in its order.
- it is on the disk before a flush of the log is answered, and before the clean-shutdown file. A flush syncs
  what this one log lacks, whatever the thread is at.

After a power cut a log that was never flushed may thus be missing, or made by half; the start makes it anew.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from wrackline.broker.storage.files import fsync_path, sync_filesystem

_FEW = 64
"""Files and directories that are synced one by one. More are cheaper with everything else that the file
system has yet to write, which may be much."""

Task = Callable[[], Iterable[Path]]
"""Changes files, and says which files and directories a power cut would take back."""


class DirectoryQueue:
    """The queue of one log's directory. Any thread may work on it; only the event loop's adds to it."""

    __slots__ = ("_lock", "_tasks", "_unsynced", "_writes")

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks: deque[Task] = deque()
        self._unsynced: dict[Path, int] = {}
        """In the order in which to sync them, with the number of the write that is to be synced."""
        self._writes = 0

    def __bool__(self) -> bool:
        """There is something to do, or being done."""
        return bool(self._tasks)

    def add(self, task: Task) -> None:
        self._tasks.append(task)

    def work(self) -> None:
        """Writes everything that was asked for. Raises OSError; then the rest is left as it was."""
        if not self._tasks:
            return
        with self._lock:
            while self._tasks:
                for path in self._tasks[0]():
                    self._writes += 1
                    self._unsynced[path] = self._writes
                self._tasks.popleft()

    def unsynced(self) -> Mapping[Path, int]:
        with self._lock:
            return dict(self._unsynced)

    def forget(self) -> None:
        """Forgets the work of a directory that a task takes away."""
        self._unsynced.clear()

    def sync(self, before: Mapping[Path, int]) -> None:
        """Syncs what ``unsynced`` said before. Raises OSError."""
        for path in before:
            fsync_path(path)
        self.synced(before)

    def synced(self, before: Mapping[Path, int]) -> None:
        """Notes that what ``unsynced`` said before is on the disk. What was written again meanwhile is
        not."""
        with self._lock:
            for path, write in before.items():
                if self._unsynced.get(path) == write:
                    del self._unsynced[path]


@dataclass(frozen=True, slots=True)
class Batch:
    """The work that was asked for until the batch was taken."""

    directory: Path
    queues: tuple[DirectoryQueue, ...]
    doomed: tuple[Path, ...]
    """Directories that are renamed in these queues, and then removed."""
    closed: Event

    def run(self) -> None:
        """Runs the batch, in any thread. Raises OSError."""
        lacking: dict[DirectoryQueue, Mapping[Path, int]] = {}
        for queue in self.queues:
            if self.closed.is_set():
                return
            queue.work()
            lacking[queue] = queue.unsynced()
        self._sync({path for paths in lacking.values() for path in paths})
        for queue, paths in lacking.items():
            queue.synced(paths)
        for path in self.doomed:
            if self.closed.is_set():
                return
            shutil.rmtree(path)

    def _sync(self, paths: Collection[Path]) -> None:
        if len(paths) > _FEW:
            sync_filesystem(self.directory)
            return
        for path in paths:
            # The log may be deleted meanwhile.
            with suppress(FileNotFoundError):
                fsync_path(path)


class Backlog:
    """The backlog of all logs of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: dict[DirectoryQueue, None] = {}
        self._doomed: list[Path] = []
        self._closed = Event()

    def add(self, queue: DirectoryQueue, task: Task) -> None:
        queue.add(task)
        self._waiting[queue] = None

    def remove(self, queue: DirectoryQueue, directory: Path, doomed: Path) -> None:
        """The directory gets its other name, and goes once that is on the disk: half a log must not come
        back under its own name."""

        def rename() -> Iterable[Path]:
            directory.rename(doomed)
            queue.forget()
            return (directory.parent,)

        self.add(queue, rename)
        self._doomed.append(doomed)

    def batch(self) -> Batch | None:
        """Returns the work that is to be done; None when there is none."""
        if not self._waiting:
            return None
        waiting, self._waiting = tuple(self._waiting), {}
        doomed, self._doomed = tuple(self._doomed), []
        return Batch(self._directory, waiting, doomed, self._closed)

    def close(self) -> None:
        """A batch that runs ends early; the next start does the rest."""
        self._closed.set()

"""Starts of a data directory, and a directory whose files are put back to what they were."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage.logdir import DataDirError, Found, LogDir
from wrackline.broker.storage.logs.log import LogSettings

TP = TopicPartition("log", 0)
TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")
SMALL = LogSettings(segment_bytes=1_024, index_interval_bytes=200)


class Start:
    """Starts the node of a data directory. The start before it ends as by a kill."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._logs: LogDir | None = None

    def __call__(self, settings: LogSettings = SMALL) -> tuple[LogDir, Found]:
        self.stop()
        logs = LogDir(self._path, settings, node_id=1, cluster_id="c")
        self._logs = logs
        try:
            return logs, logs.open()
        except DataDirError:
            self.stop()
            raise

    def with_log(self, batches: Sequence[bytes], settings: LogSettings = SMALL) -> LogDir:
        """Starts, and makes a log of these batches."""
        logs, _ = self(settings)
        logs.create(TP, TOPIC, 0)
        logs[TP].append(batches)
        return logs

    def stop(self) -> None:
        if self._logs is not None:
            self._logs.close()
        self._logs = None


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made = Start(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def pristine(stopped: Path) -> Callable[[], None]:
    """Puts every file of the module's stopped node back to what it was."""
    files = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}

    def restore() -> None:
        for path in [path for path in stopped.rglob("*") if path.is_file() and path not in files]:
            path.unlink()
        for path, content in files.items():
            if not path.exists() or path.read_bytes() != content:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT)
                os.pwrite(fd, content, 0)
                os.ftruncate(fd, len(content))
                os.close(fd)

    return restore

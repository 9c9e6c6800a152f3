"""Files that were put aside because they were damaged, and how much of them is kept (docs/broker.md, "Bits
that change").

It may be the last copy of what was acknowledged, so the limit takes the oldest first and never what this
process put aside itself; each removal is a line in the log.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from wrackline.broker.storage.logs.damage import SUFFIX

_LOG = logging.getLogger("broker.storage")


@dataclass(frozen=True, slots=True)
class AsideLimits:
    """The limits of a data directory on files put aside."""

    entries: int = 100
    """Files and directories."""
    size_bytes: int = 10 << 30


KEPT_ASIDE = AsideLimits()


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    size_bytes: int
    since_ns: int
    """When it was put aside: a renaming changes a file's ctime."""


def limit_aside(data_dir: Path, limits: AsideLimits, fresh: Collection[Path]) -> tuple[Path, ...]:
    """Remove the oldest of what is over the limits; those removed. ``fresh`` ones stay. Raises OSError."""
    removed = []
    entries = size_bytes = 0
    newest_first = sorted(
        _entries(data_dir), key=lambda entry: (entry.path in fresh, entry.since_ns), reverse=True
    )
    for entry in newest_first:
        entries, size_bytes = entries + 1, size_bytes + entry.size_bytes
        over = entries > limits.entries or size_bytes > limits.size_bytes
        if over and entry.path not in fresh:
            _LOG.warning(
                "%s (%d bytes, put aside before) is removed: %d entries and %d bytes are kept at most "
                "(damaged_max_entries, damaged_max_bytes)",
                entry.path,
                entry.size_bytes,
                limits.entries,
                limits.size_bytes,
            )
            _remove(entry.path)
            removed.append(entry.path)
    return tuple(removed)


def _entries(data_dir: Path) -> Iterator[_Entry]:
    """Directories of whole logs, and files in the directories of logs that are in use."""
    with os.scandir(data_dir) as result:
        directories = [Path(entry.path) for entry in result if entry.is_dir(follow_symlinks=False)]
    for directory in directories:
        if directory.name.endswith(SUFFIX):
            sizes = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
            yield _Entry(directory, sum(sizes), directory.stat().st_ctime_ns)
            continue
        with os.scandir(directory) as result:
            files = [entry for entry in result if SUFFIX in entry.name and entry.is_file()]
        for file in files:
            yield _Entry(Path(file.path), file.stat().st_size, file.stat().st_ctime_ns)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()

"""Open files of logs: at most one a partition, and at most what the process may have.

Segments ask for their file when they use it and keep it until they are at rest, or until others need the
room: then the one that was not used for the longest gives its descriptor back and opens its file again when
it is needed. The limit on descriptors is the process's, so is this. It belongs to the main thread, which is
the event loop's.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

_OUT = (errno.EMFILE, errno.ENFILE)


class Holder(Protocol):
    """An owner of an open file that it can do without for a while."""

    @property
    def fd(self) -> int: ...
    def release(self) -> None: ...


class OpenFiles:
    """The owners of descriptors, the one that was not used for the longest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def used(self, holder: Holder) -> None:
        self._holders[holder] = None
        self._holders.move_to_end(holder)

    def forget(self, holder: Holder) -> None:
        self._holders.pop(holder, None)

    def make_room(self, most: int | None = None) -> bool:
        """Closes the files of others before another one opens its own. With ``most``, so many may stay. True
        when one was closed."""
        keep = max(self.most - 1 if most is None else most, 0)
        before = len(self._holders)
        while len(self._holders) > keep:
            # Released holders take themselves off the list.
            next(iter(self._holders)).release()
        return len(self._holders) < before


OPEN = OpenFiles(512)
"""Of this process. The node sets how many there may be."""


def out_of_descriptors(failure: OSError) -> bool:
    """This says nothing of the disk."""
    return failure.errno in _OUT


def open_file(path: Path, flags: int) -> int:
    """A descriptor; when there are none left, files at rest are closed for it. Raises OSError."""
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)
    except OSError as failure:
        here = threading.current_thread() is threading.main_thread()
        if not (out_of_descriptors(failure) and here and OPEN.make_room(len(OPEN) // 2)):
            raise
    return os.open(path, flags | os.O_CLOEXEC, 0o644)


def duplicate(holder: Holder) -> int:
    """A second descriptor of its file, which is the caller's to close. Raises OSError."""
    try:
        return os.dup(holder.fd)
    except OSError as failure:
        if not (out_of_descriptors(failure) and OPEN.make_room(len(OPEN) // 2)):
            raise
    return os.dup(holder.fd)

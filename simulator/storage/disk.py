"""A disk that knows what a crash may leave of it: real files, and beside them what of them is durable.

While it is installed, the calls of ``os`` that change files below its root are carried out and recorded. Of
every file it keeps the durable content and the changes since its last fsync, of every directory the durable
entries and the changes of entries since its own. ``after_crash`` draws which of the changes the disk has:

- of a file each sector of 512 bytes apart in any of its states since the fsync, some torn in the middle, and
  any of its sizes: what was not written of a file that grew is zeros;
- of a directory each creation, renaming and removal, or not, whatever came before it. A renaming is one
  change. An fsync of a file does not make its name durable, nor that of a directory what its files hold.

An fsync that fails drops what it was to write: the disk has any part of it, and no later fsync writes it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from wrackline.broker.storage import backlog, identity, logdir, names

SECTOR = 512
_SHARES = (0.0, 0.2, 0.5, 0.8, 1.0)
"""How much of what was not synced a crash keeps, more or less."""
_TORN = 0.1
"""Share of the changed sectors of which only a part was written."""


class PowerCut(BaseException):
    """The process is gone. No error of the disk, so nobody handles it."""


@dataclass(slots=True, eq=False)
class File:
    durable: bytes = b""
    changes: list[tuple[int, bytes] | int] = field(default_factory=list)
    """Since the last fsync: (position, data), or a new size."""

    def sync(self) -> None:
        self.durable = _changed(self.durable, self.changes)
        self.changes.clear()

    def remains(self, draw: Random) -> bytes:
        """Draws what a crash leaves of the file."""
        share = draw.choice(_SHARES)
        content, sizes, cuts = bytearray(self.durable), [(len(self.durable), 0)], 0
        states: dict[int, list[tuple[int, bytes]]] = {}
        for change in self.changes:
            before = bytes(content)
            content[:] = _changed(before, (change,))
            cuts += len(content) < len(before)
            sizes.append((len(content), cuts))
            first, end = _span(change, len(before))
            for at in range(first, end):
                piece = slice(at * SECTOR, (at + 1) * SECTOR)
                history = states.setdefault(at, [(0, _whole(before[piece]))])
                if len(content) <= at * SECTOR:
                    history.append((-cuts, bytes(SECTOR)))  # it went with the end of the file
                else:
                    history.append((cuts, _whole(content[piece])))
        size, cuts = sizes[-1] if draw.random() < share else draw.choice(sizes)
        result = bytearray(self.durable[:size].ljust(size, b"\0"))
        for at, changes in states.items():
            reached = [(cut, state) for cut, state in changes if abs(cut) <= cuts]
            gone = max((number for number, (cut, _) in enumerate(reached) if cut < 0), default=0)
            candidates = [state for _, state in reached[gone:]]
            state = candidates[-1] if draw.random() < share else draw.choice(candidates)
            if draw.random() < _TORN:
                middle = draw.randrange(SECTOR)
                state = state[:middle] + draw.choice(candidates)[middle:]
            result[at * SECTOR : (at + 1) * SECTOR] = state
        return bytes(result[:size].ljust(size, b"\0"))


def _whole(piece: bytes | bytearray) -> bytes:
    return bytes(piece).ljust(SECTOR, b"\0")


def _span(change: tuple[int, bytes] | int, size: int) -> tuple[int, int]:
    """(first sector, the one after the last) that a change of a file of this size touches."""
    low, high = sorted((change, size)) if isinstance(change, int) else (change[0], change[0] + len(change[1]))
    return low // SECTOR, -(-high // SECTOR)


def _changed(content: bytes, changes: Sequence[tuple[int, bytes] | int]) -> bytes:
    result = bytearray(content)
    for change in changes:
        if isinstance(change, int):
            result = result[:change].ljust(change, b"\0")
        else:
            position, data = change
            result.extend(bytes(max(0, position - len(result))))
            result[position : position + len(data)] = data
    return bytes(result)


@dataclass(slots=True, eq=False)
class Folder:
    entries: dict[str, Node] = field(default_factory=dict)
    """As the process sees them."""
    durable: dict[str, Node] = field(default_factory=dict)
    changes: list[dict[str, Node | None]] = field(default_factory=list)
    """Since the last fsync; None: the name is gone."""

    def change(self, moved: dict[str, Node | None]) -> None:
        _rename(self.entries, moved)
        self.changes.append(moved)

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.changes.clear()

    def remains(self, draw: Random) -> dict[str, Node]:
        share = draw.choice(_SHARES)
        result = dict(self.durable)
        for moved in self.changes:
            if draw.random() < share:
                _rename(result, moved)
        return result


Node = File | Folder


def _rename(entries: dict[str, Node], moved: dict[str, Node | None]) -> None:
    for name, node in moved.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Disk:
    """``root`` is durable as it is when this is made."""

    def __init__(self, root: Path, draw: Random) -> None:
        self.root = root
        self.draw = draw
        self.calls = 0
        """That change something, or sync it."""
        self.cut_at: int | None = None
        """The power goes before this call."""
        self.failing: str | None = None
        """The next fsync (``fsync``) or write (``write``) fails."""
        self.failed = False
        self._top = _load(root)
        self._open: dict[int, Node] = {}
        self._real: dict[str, Callable[..., Any]] = {}

    # --- what a crash leaves ---------------------------------------------------------------------------

    def after_crash(self, where: Path) -> None:
        """Lays out, as a new directory, what the disk has after a power cut now."""
        _lay_out(self._top, where, lambda node: node.remains(self.draw))

    def as_it_is(self, where: Path) -> None:
        """Lays out what a kill of the process leaves: everything."""
        _lay_out(self._top, where, lambda node: node.entries if isinstance(node, Folder) else _volatile(node))

    # --- the calls -------------------------------------------------------------------------------------

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Meanwhile the calls of ``os`` below the root are recorded."""
        patches = {name[4:]: getattr(self, name) for name in dir(self) if name.startswith("_os_")}
        self._real = {name: getattr(os, name) for name in patches}
        others: list[tuple[Any, str, Any]] = [
            *((os, name, patch) for name, patch in patches.items()),
            *((module, "sync_filesystem", self._sync_all) for module in (backlog, logdir)),
            *((module, "uuid4", self._uuid4) for module in (identity, names)),
        ]
        before = [(module, name, getattr(module, name)) for module, name, _ in others]
        try:
            for module, name, patch in others:
                setattr(module, name, patch)
            yield
        finally:
            for module, name, real in before:
                setattr(module, name, real)

    def _uuid4(self) -> UUID:
        return UUID(int=self.draw.getrandbits(128))

    def _step(self) -> None:
        """Before each call that changes something. Raises PowerCut."""
        self.calls += 1
        if self.cut_at is not None and self.calls >= self.cut_at:
            raise PowerCut

    def _fail(self, kind: str, number: int) -> None:
        if self.failing == kind:
            self.failing, self.failed = None, True
            raise OSError(number, os.strerror(number))

    def _place(self, path: Any, dir_fd: int | None = None) -> tuple[Folder, str] | None:
        """(the folder, the name in it) of a path below the root."""
        if dir_fd is not None:
            folder = self._open.get(dir_fd)
            return (folder, os.fspath(path)) if isinstance(folder, Folder) else None
        path = Path(path)
        if not path.is_relative_to(self.root) or path == self.root:
            return None
        node: Node = self._top
        for name in path.relative_to(self.root).parts[:-1]:
            if not isinstance(node, Folder) or name not in node.entries:
                return None
            node = node.entries[name]
        return (node, path.name) if isinstance(node, Folder) else None

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = self._place(path, dir_fd)
        node: Node | None = self._top if Path(path) == self.root else None
        if place is not None:
            node = place[0].entries.get(place[1])
        creates = place is not None and node is None and bool(flags & os.O_CREAT)
        empties = isinstance(node, File) and bool(flags & os.O_TRUNC)
        if creates or empties:
            self._step()
        fd: int = self._real["open"](path, flags, mode, dir_fd=dir_fd)
        if creates:
            assert place is not None
            node = File()
            place[0].change({place[1]: node})
        elif isinstance(node, File) and empties:
            node.changes.append(0)
        if node is not None:
            self._open[fd] = node
        return fd

    def _os_dup(self, fd: int) -> int:
        result: int = self._real["dup"](fd)
        if fd in self._open:
            self._open[result] = self._open[fd]
        return result

    def _os_close(self, fd: int) -> None:
        self._open.pop(fd, None)
        self._real["close"](fd)

    def _os_pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        file = self._open.get(fd)
        if not isinstance(file, File):
            return int(self._real["pwritev"](fd, buffers, position))
        self._step()
        data = b"".join(bytes(buffer) for buffer in buffers)
        if self.failing == "write":
            # A disk that is full takes a part, and refuses the rest at the next call.
            data = data[: self.draw.randrange(len(data) + 1)]
            if not data:
                self._fail("write", errno.ENOSPC)
        file.changes.append((position, data))
        return int(self._real["pwritev"](fd, [data], position))

    def _os_ftruncate(self, fd: int, size: int) -> None:
        file = self._open.get(fd)
        if isinstance(file, File):
            self._step()
            file.changes.append(size)
        self._real["ftruncate"](fd, size)

    def _os_fsync(self, fd: int) -> None:
        node = self._open.get(fd)
        if node is None:
            self._real["fsync"](fd)
            return
        self._step()
        if isinstance(node, File) and self.failing == "fsync":
            node.durable = node.remains(self.draw)
            node.changes.clear()
            self._fail("fsync", errno.EIO)
        node.sync()

    _os_fdatasync = _os_fsync

    def _sync_all(self, _: Path) -> None:
        self._step()
        for node in _nodes(self._top):
            node.sync()

    def _os_mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        place = self._place(path, dir_fd)
        if place is not None:
            self._step()
        self._real["mkdir"](path, mode, dir_fd=dir_fd)
        if place is not None:
            place[0].change({place[1]: Folder()})

    def _os_unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._remove("unlink", path, dir_fd)

    def _os_rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._remove("rmdir", path, dir_fd)

    def _remove(self, call: str, path: Any, dir_fd: int | None) -> None:
        place = self._place(path, dir_fd)
        if place is not None:
            self._step()
        self._real[call](path, dir_fd=dir_fd)
        if place is not None:
            place[0].change({place[1]: None})

    def _os_rename(self, path: Any, to: Any) -> None:
        self._move("rename", path, to)

    def _os_replace(self, path: Any, to: Any) -> None:
        self._move("replace", path, to)

    def _move(self, call: str, path: Any, to: Any) -> None:
        before, after = self._place(path), self._place(to)
        if before is not None:
            self._step()
        self._real[call](path, to)
        if before is not None and after is not None:
            assert before[0] is after[0], "the storage renames within a directory alone"
            before[0].change({before[1]: None, after[1]: before[0].entries[before[1]]})

    def _os_scandir(self, path: Any = ".") -> _Sorted:
        """In the order of names: that of the real file system is not the seed's."""
        with self._real["scandir"](path) as entries:
            return _Sorted(sorted(entries, key=lambda entry: entry.name))

    def _os_listdir(self, path: Any = ".") -> list[str]:
        return sorted(self._real["listdir"](path))


class _Sorted(list[Any]):
    """Entries as ``os.scandir`` gives them."""

    def __enter__(self) -> _Sorted:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...


def _volatile(file: File) -> bytes:
    return _changed(file.durable, file.changes)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Folder):
        for child in node.entries.values():
            yield from _nodes(child)


def _load(path: Path) -> Folder:
    folder = Folder()
    for child in sorted(path.iterdir()):
        folder.entries[child.name] = _load(child) if child.is_dir() else File(child.read_bytes())
    folder.durable = dict(folder.entries)
    return folder


def _lay_out(folder: Folder, where: Path, remains: Callable[[Any], Any]) -> None:
    where.mkdir()
    for name, node in sorted(remains(folder).items()):
        if isinstance(node, Folder):
            _lay_out(node, where / name, remains)
        else:
            (where / name).write_bytes(remains(node))

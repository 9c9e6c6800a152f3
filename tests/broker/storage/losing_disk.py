"""A disk that keeps nothing but what was synced: what a power cut may leave at any moment, at its worst.

The files are real ones; beside them this keeps, of every file, its content at its last fsync or fdatasync,
and of every directory, its entries at its last fsync. ``after_power_cut`` lays that out as a directory of its
own, to be opened as the next start would. Real disks keep more than that; nothing may rest on it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wrackline.broker.storage import backlog, logdir


class LosingDisk:
    """``root`` is durable as it is when this is made. ``on_step`` is called before and after every sync,
    rename and removal below it: the moments between which the durable state changes, or should have."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._files: dict[int, bytes] = {}
        self._entries: dict[int, dict[str, int]] = {}
        self._held: dict[int, int] = {}
        """Inode -> a descriptor of it: as long as it is open its number is not given to another file."""
        self._looking = False
        self.on_step: Callable[[], None] = lambda: None
        self.steps = 0
        for folder, _, names in os.walk(root):
            self._sync(os.open(folder, os.O_RDONLY))
            for name in names:
                self._sync(os.open(Path(folder, name), os.O_RDONLY))
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._stepping(getattr(os, name), self._sync))
        sync_all = self._stepping(lambda _: None, self._sync_all)
        for module in (backlog, logdir):
            monkeypatch.setattr(module, "sync_filesystem", sync_all)
        for name in ("rename", "replace", "unlink", "rmdir"):
            monkeypatch.setattr(os, name, self._stepping(getattr(os, name), lambda *_: None))

    def _stepping(self, real: Callable[..., None], then: Callable[..., None]) -> Callable[..., None]:
        def step(*arguments: int | str | Path, **more: int) -> None:
            self._step()
            real(*arguments, **more)
            then(*arguments)
            self._step()

        return step

    def _step(self) -> None:
        if not self._looking:
            self.steps += 1
            self.on_step()

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is done meanwhile is no part of the play: somebody looks at what a power cut left."""
        before, self._looking = self._looking, True
        try:
            yield
        finally:
            self._looking = before

    def _hold(self, fd: int) -> int:
        inode = os.fstat(fd).st_ino
        if inode not in self._held:
            self._held[inode] = os.dup(fd)
        return inode

    def _sync(self, fd: int) -> None:
        if self._looking:
            return
        inode = self._hold(fd)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            self._files[inode] = Path(f"/proc/self/fd/{fd}").read_bytes()
            return
        entries = {}
        for name in os.listdir(fd):
            child = os.open(name, os.O_RDONLY, dir_fd=fd)
            entries[name] = self._hold(child)
            os.close(child)
        self._entries[inode] = entries

    def _sync_all(self, _: Path) -> None:
        for folder, _folders, names in os.walk(self._root):
            for path in (Path(folder), *(Path(folder, name) for name in names)):
                fd = os.open(path, os.O_RDONLY)
                self._sync(fd)
                os.close(fd)

    def after_power_cut(self, where: Path) -> Path:
        """What is durable now, laid out as a new directory."""
        self._lay_out(self._root.stat().st_ino, where)
        return where

    def _lay_out(self, inode: int, where: Path) -> None:
        where.mkdir()
        for name, child in self._entries.get(inode, {}).items():
            if stat.S_ISDIR(os.fstat(self._held[child]).st_mode):
                self._lay_out(child, where / name)
            else:
                # A file whose name is durable and whose content never was is empty.
                (where / name).write_bytes(self._files.get(child, b""))

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)

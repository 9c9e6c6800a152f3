"""A night's folder copied to where nights are kept: another folder, or object storage (fsspec)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wrackline.history.store.addresses import files_below, folder_at, send


@dataclass(frozen=True, slots=True)
class Copied:
    files: int
    bytes: int
    left: int
    """Files that were there already, as large as here."""

    def __str__(self) -> str:
        there = f", {self.left} were there" if self.left else ""
        return f"{self.files} files ({self.bytes / 1e6:.1f} MB) copied{there}"


def check(to: str) -> None:
    """Raises ImportError, ValueError or OSError for an address that no library here can reach."""
    assert folder_at(to).fs is not None  # it is made when it is asked for


def upload(folder: Path, to: str) -> Copied:
    """``folder`` becomes ``TO/NAME``. Files below it that are there with the same size are left: so what was
    interrupted is gone on with. Raises OSError, and what the storage's library has for errors of its own."""
    target = f"{to.rstrip('/')}/{folder.name}"
    there = files_below(target)
    files = size = left = 0
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        name = file.relative_to(folder).as_posix()
        length = file.stat().st_size
        # The night's own files may change without growing.
        if file.parent != folder and there.get(name) == length:
            left += 1
            continue
        send(file, f"{target}/{name}")
        files, size = files + 1, size + length
    return Copied(files, size, left)

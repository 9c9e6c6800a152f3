"""The folder of a run, and files that are written whole: what needs no Arrow, which takes long to import."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from wrackline.errors import InputError

WAL = "history.wal"
PARQUET = "history.parquet"
RUN_JSON = "run.json"


class HistoryError(InputError):
    """A history cannot be read. The message says which file, what is wrong and the way out."""


def private_folder(path: Path) -> None:
    """Make a folder, and what is missing above it, for its owner alone: histories and logs hold what clients
    sent. Under sudo the owner is who asked for it, so that they can open the report. What is there already
    stays as it is. Raises OSError."""
    missing = []
    folder = path.absolute()
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for made in reversed(missing):
        made.mkdir(mode=0o700, exist_ok=True)
        made.chmod(0o700)  # whatever the umask
        _give_to_asker(made)
    path.mkdir(exist_ok=True)  # says so when something else is there


def _give_to_asker(path: Path) -> None:
    user, group = (os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID"))
    if os.geteuid() == 0 and user.isdecimal() and group.isdecimal():
        os.chown(path, int(user), int(group))


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to: it takes its place when all is written, and goes away when that
    fails. So a reader never sees half of it, and the old one stays when there is no room for the new one.
    Raises OSError."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        error.filename = str(path)  # a full disk does not say which file it was
        raise
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)

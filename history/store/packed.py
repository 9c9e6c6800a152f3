"""Text files of a run that are kept compressed: logs and traces. Readers open either form.

A trace of three minutes has tens of megabytes, and a tenth of that when it is packed. Histories and findings
are Parquet, which is compressed as it is written.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

import cramjam

from wrackline.history.store.folder import whole_file

SUFFIX = ".zst"
WORTH_BYTES = 64 << 10
"""Smaller files stay as they are: what they would save is not worth that `less` shows nothing."""
_LEVEL = 9
_CHUNK_BYTES = 4 << 20


def pack(files: Iterable[Path]) -> int:
    """Replace files that are large enough by ``NAME.zst``; returns how many bytes that saved. A file that
    there is no room to pack stays as it is, and so does one that is packed already."""
    saved = 0
    for file in files:
        with contextlib.suppress(OSError):
            saved += _pack(file)
    return saved


def _pack(file: Path) -> int:
    if file.suffix == SUFFIX or file.is_symlink() or not file.is_file():
        return 0
    before = file.stat()
    if before.st_size < WORTH_BYTES:
        return 0
    packed = file.with_name(file.name + SUFFIX)
    compressor = cramjam.zstd.Compressor(level=_LEVEL)
    with whole_file(packed) as part, part.open("wb") as into:
        with file.open("rb") as plain:
            while chunk := plain.read(_CHUNK_BYTES):
                compressor.compress(chunk)
                into.write(bytes(compressor.flush()))
        into.write(bytes(compressor.finish()))
        into.flush()
        os.fsync(into.fileno())
        os.fchmod(into.fileno(), before.st_mode & 0o777)
        os.fchown(into.fileno(), before.st_uid, before.st_gid)
    file.unlink()
    return before.st_size - packed.stat().st_size


def found(folder: Path, pattern: str) -> list[Path]:
    """The files that are called so, packed or not, in the order of their names. When packing was interrupted
    there are both, and the plain one is taken."""
    there = {plain_name(file): file for file in folder.glob(pattern + SUFFIX)}
    there |= {file: file for file in folder.glob(pattern)}
    return [there[name] for name in sorted(there)]


def plain_name(file: Path) -> Path:
    """Returns the name of a file when it is not packed."""
    return file.with_suffix("") if file.suffix == SUFFIX else file


def opened(file: Path) -> BinaryIO:
    """To be read as if it were not packed. Raises OSError, also for a packed file that is damaged, when that
    part of it is read."""
    if file.suffix != SUFFIX:
        return file.open("rb")
    import pyarrow as pa  # late: most only look whether a file is there, or pack one

    stream = pa.CompressedInputStream(pa.OSFile(str(file), "rb"), "zstd")
    return cast(BinaryIO, io.BufferedReader(stream, _CHUNK_BYTES))

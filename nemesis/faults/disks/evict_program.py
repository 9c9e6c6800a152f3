"""Drops the clean pages of files from the page cache until it is ended. Runs on a host, started with
``python -I -S -c``, this text and its arguments, and therefore on the standard library alone.

Arguments: the folder; how names begin that are left alone; ``files`` (the advice of each file) or ``host``
(the kernel's ``drop_caches``); seconds between two rounds. Prints of each round the bytes that were in the
cache before it and after it.
"""

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def below(folder: str, spared: str) -> Iterator[str]:
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(spared)]
        yield from (os.path.join(path, name) for name in files if not name.startswith(spared))  # noqa: PTH118


def resident(descriptor: int) -> int:
    """Bytes of a file that are in the page cache."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as memory:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(memory)
        failed = _libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), pages)
        del start
    return 0 if failed else sum(page & 1 for page in pages) * mmap.PAGESIZE


def over(folder: str, spared: str, *, advise: bool = False) -> int:
    """Looks at every file, or gives the advice on it."""
    seen = 0
    for path in below(folder, spared):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile
            continue
        try:
            if advise:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                seen += resident(descriptor)
        except (OSError, ValueError):  # cut short meanwhile
            continue
        finally:
            os.close(descriptor)
    return seen


if __name__ == "__main__":
    while True:
        before = over(sys.argv[1], sys.argv[2])
        if sys.argv[3] == "host":
            Path("/proc/sys/vm/drop_caches").write_text("1\n", encoding="ascii")
        else:
            over(sys.argv[1], sys.argv[2], advise=True)
        print("round", before, over(sys.argv[1], sys.argv[2]), flush=True)
        time.sleep(float(sys.argv[4]))

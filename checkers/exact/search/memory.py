"""The memory that a search takes: what the process has more than before, not what an estimate says."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK_S = 0.005
"""Between two looks at what is resident; a look takes some 0.02 ms."""
_LOOK_AT_COPIES_S = 1.0
"""Between two looks at what a forked process has copied, which take some ms for each GB."""
_MARGIN = 2 << 20
"""What may come until the next look: pages are large ones where the machine has them."""
_SHARE_OF_FREE = 0.9
_libc = ctypes.CDLL(None)


class Meter:
    """Counts from when it is made, or begun again."""

    def __init__(self) -> None:
        self.begin(forked=False)

    def begin(self, *, forked: bool) -> None:
        """Count from now. ``forked``: pages may be its parent's still, of which this process makes copies
        when it writes to them; these count too."""
        self._forked = forked
        self._resident, self._private = _resident(), _private() if forked else 0
        self._copied = 0
        self._look_at = self._look_at_copies = time.monotonic()

    def taken(self) -> int:
        """Bytes."""
        resident = _resident() - self._resident
        now = time.monotonic()
        if self._forked and now >= self._look_at_copies:
            self._copied = _private() - self._private - resident
            self._look_at_copies = now + _LOOK_AT_COPIES_S
        return resident + self._copied

    def exceeds(self, limit: int, now: float) -> bool:
        """Tells whether more memory was taken than ``limit``, as far as that is measured: not more often
        than is cheap."""
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_S
        limit -= min(limit // 4, _MARGIN)
        if self.taken() <= limit:
            return False
        _libc.malloc_trim(0)  # what an earlier search gave back
        return self.taken() > limit


def free_bytes() -> int:
    """Most of what the machine, or the group of processes, has left."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) << 10
    try:
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            free = min(free, int(most) - int((group / "memory.current").read_text()))
    except OSError:
        pass  # no such group, or another version of them
    return int(free * _SHARE_OF_FREE)


def _resident() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (faster, and it is read often)
        return int(file.read().split()[1]) * _PAGE


def _private() -> int:
    """Returns the memory, in bytes, that this process does not share with its parent."""
    result = 0
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_"):
            result += int(line.split()[1]) << 10
    return result

"""The time to wait for a process that works, measured by the processor time that it used. On a busy
machine others use it, and that is no reason to give the process up."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

STILL_S = 300.0
"""Who used no processor for so long waits for something that does not come."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Makes the kernel kill a process that was just forked when its parent ends, however that ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def processor_s(pid: int) -> float:
    """Seconds of processor time, of all its threads; 0 of a process that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


@dataclass(slots=True)
class Allowance:
    """The processor time that a process may use from now on. Ask it now and then."""

    pid: int
    limit_s: float
    _began_s: float = field(init=False)
    _used_s: float = field(init=False, default=0.0)
    _moved_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_s, self._moved_at = processor_s(self.pid), time.monotonic()

    def spent(self) -> str:
        """Returns the reason why the process should be ended, in words; empty as long as it may go on."""
        used = processor_s(self.pid) - self._began_s
        if used > self._used_s:
            self._used_s, self._moved_at = used, time.monotonic()
        if used > self.limit_s:
            return f"{self.limit_s:g} s of processor time are used up"
        still = time.monotonic() - self._moved_at
        return f"it did nothing for {STILL_S:g} s" if still > STILL_S else ""

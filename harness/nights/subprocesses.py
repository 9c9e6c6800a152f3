"""Commands of ours as processes of their own: a run that breaks down, or Spark, takes no night with it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 1 << 14
_libc = ctypes.CDLL(None)
_ENTRY = (sys.executable, "-m", "wrackline.harness.cli.entry")


def _end_with_the_night() -> None:
    """Ties the child to the night: a night that is killed takes its runs with it, and each of them in good
    order."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Child:
    """A command under way. Its output goes into ``log``."""

    process: subprocess.Popen[bytes]
    log: Path
    began: float

    @classmethod
    def start(cls, arguments: Sequence[str | Path], log: Path, *, code: str = "") -> Child:
        """Starts a run in a session of its own, so that Ctrl-C reaches it only through us. ``code``: a folder
        with another version of us."""
        with log.open("ab") as into:
            process = subprocess.Popen(
                [*_ENTRY, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_the_night,
                env={**os.environ, **({"PYTHONPATH": code} if code else {})},
            )
        return cls(process, log, time.monotonic())

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def interrupt(self) -> None:
        """Interrupts the run as Ctrl-C does. A second one ends it at once."""
        if not self.ended:
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if not self.ended:
            self.process.kill()
        self.process.wait()

    def last_line(self) -> str:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            lines = [one for one in log.read().decode(errors="replace").splitlines() if one.strip()]
        return lines[-1].strip() if lines else "it said nothing"

"""Ctrl-C while modules are read is one line.

What a command needs takes a second to import. A Ctrl-C in that second finds nothing begun, so the process can
end where it stands; Python's own answer would be a traceback of whatever module was being read, or none at
all where that module takes every exception for its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

STOPPED = 130


def end(number: int, frame: FrameType | None) -> NoReturn:
    """The handler of the signal."""
    del number, frame
    os.write(2, b"wrackline: stopped before anything was begun\n")
    os._exit(STOPPED)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Meanwhile Ctrl-C ends the process, but not where a shell has told us to ignore it."""
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)

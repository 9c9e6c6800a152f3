"""Ctrl-C and SIGTERM end a command with one line, whatever it is at.

What a command needs takes a second to import. A Ctrl-C in that second finds nothing begun, so the process can
end where it stands; Python's own answer would be a traceback of whatever module was being read, or none at
all where that module takes every exception for its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

STOPPED = 130
_ENDING = (signal.SIGINT, signal.SIGTERM)
_DEFAULT_HANDLERS = (signal.SIG_DFL, signal.default_int_handler)


def exit_now(number: int, frame: FrameType | None) -> NoReturn:
    """The handler of the signal."""
    del number, frame
    os.write(2, b"wrackline: stopped before anything was begun\n")
    os._exit(STOPPED)


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Meanwhile a signal ends the process, but not where a shell has told us to ignore it."""
    with _handling(exit_now):
        yield


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Meanwhile SIGTERM is answered as Ctrl-C is: whoever has begun something ends it. Who handles the two in
    another way sets handlers of its own."""
    with _handling(signal.default_int_handler):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Sets a handler for the signals that nobody handles yet (main thread only)."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {one: there for one in _ENDING if (there := signal.getsignal(one)) in _DEFAULT_HANDLERS}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, there in before.items():
            signal.signal(number, there)

"""Ctrl-C in three steps: end the run early and judge it; stop at once; and nothing stops the tearing down."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The interrupts by the user so far. The handlers are set while the context is open (main thread only; in
    any other thread signals stay as they are)."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.asked = threading.Event()
        """The run shall end early, in good order."""
        self._say = say
        self._shielded = False
        self._gentle = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Lets the first signal only set ``asked`` inside; outside, every signal raises KeyboardInterrupt."""
        self._gentle = True
        try:
            yield
        finally:
            self._gentle = False

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Answers signals with a word and nothing else inside: what we made must be removed."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._shielded:
            self._say("tearing down; please wait")
        elif self._gentle and not self.asked.is_set():
            self.asked.set()
            self._say(
                "interrupted: healing, reading back, judging what there is (Ctrl-C again: stop at once)"
            )
        else:
            raise KeyboardInterrupt

"""The progress of a run for a person: a live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from wrackline.progress import PROGRESS

PLAIN_EVERY_S = 12.0
"""So often a line that changes is written where nothing can be redrawn, such as a file."""


class Progress:
    """Lines that stay (``say``) and one line that changes (``status``). Safe from several threads."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self._live: Status | None = None
        self._status_at = 0.0
        self._status_of: str | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        if self.console.is_terminal and PROGRESS.isEnabledFor(logging.INFO):
            self._live = self.console.status("", spinner="dots")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, line: str) -> None:
        if not PROGRESS.isEnabledFor(logging.INFO):
            return
        with self._lock:
            self.console.print(escape(line))

    def status(self, line: str, *, of: str = "") -> None:
        """Shows a line on ``of``, the subject of the line. Where lines cannot be redrawn, the first about
        something else is written at once, and then one every `PLAIN_EVERY_S`, or all with -v."""
        if not PROGRESS.isEnabledFor(logging.INFO):
            return
        every_s = 0.0 if PROGRESS.isEnabledFor(logging.DEBUG) else PLAIN_EVERY_S
        with self._lock:
            if self._live is not None:
                self._live.update(escape(line))
            elif of != self._status_of or time.monotonic() - self._status_at >= every_s:
                self._status_at, self._status_of = time.monotonic(), of
                self.console.print(escape(line))


def on_stderr() -> Progress:
    """Returns a progress for a command whose answer is on standard output."""
    return Progress(Console(stderr=True, highlight=False, soft_wrap=True))

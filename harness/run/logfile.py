"""The log of the harness during a run, in the run's directory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class _Handler(logging.FileHandler):
    """A disk that is full ends the log, not the run: nothing is printed over the progress line."""

    def handleError(self, record: logging.LogRecord) -> None:
        del record


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    """Raises OSError when the file cannot be made."""
    handler = _Handler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        with suppress(OSError):
            handler.close()

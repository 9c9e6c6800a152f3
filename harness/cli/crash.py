"""The last guard of the command line: a mistake of our own is one line and exit code 4, never the exit code
of a verdict."""

from __future__ import annotations

import tempfile
import traceback

EXIT_HOSTS = 4
"""Infrastructure failed, or we did: nothing is proved."""


def crash_line(error: BaseException) -> str:
    """The line for an exception that nobody expected; its traceback goes into a file."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"wrackline broke down: {what[:300]}; nothing is proved by that. {_kept(error)}"


def _kept(error: BaseException) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="wrackline-", suffix=".traceback", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.writelines(traceback.format_exception(error))
    except OSError as full:
        place = traceback.extract_tb(error.__traceback__)[-1:]
        where = f"{place[0].filename}:{place[0].lineno}" if place else "a place nobody knows"
        return f"It happened at {where}; there is no room for the traceback ({full.strerror or full})"
    return f"The traceback is in {file.name}: please report it"

"""What every test shares: Hypothesis draws the same examples in every run, so a pass is a pass for everybody.

`HYPOTHESIS_PROFILE=search` draws new ones instead, five times as many; what it finds becomes an example of
its own.
"""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from wrackline.fleets.netns.clean import clean, folders_mounted

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=500, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_sessionstart() -> None:
    """Fleets that a killed run of the tests left: each lies below a temporary folder that no later run
    knows."""
    for folder in folders_mounted():
        clean(folder.root)


@pytest.fixture(autouse=True)
def _logging_stays_as_it_was() -> Iterator[None]:
    """The commands that tests call in this process set logging up for a process of their own: a handler of
    theirs would write to a standard error that was closed when its test ended, in the middle of what another
    test captures."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    for handler in [handler for handler in root.handlers if handler not in before]:
        root.removeHandler(handler)
    root.setLevel(level)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """For `./wrack test`: how many tests passed and how many were skipped, since pytest is content with
    none."""
    if tally := os.environ.get("WRACK_TALLY"):
        passed, skipped = (len(terminalreporter.stats.get(word, ())) for word in ("passed", "skipped"))
        Path(tally).write_text(f"{passed} {skipped}\n")

"""Runs that failed once, kept to be run first the next time: a file with one command a line.

Each line is the command that repeats the run, and behind ``#`` what was found then. A line that is taken out
is run no more.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.simulator.faults.setup import Setup

_PROGRAM = ["wrackline", "simulate"]
_REMARK = " # "
_HEAD = "# Runs of `wrackline simulate` that failed once; `--corpus` runs them first.\n"
_LONGEST_TEXT = 160

Parse = Callable[[Sequence[str]], Setup]
"""Makes the set-up of a command's options. Raises ValueError."""


class CorpusError(Exception):
    """The file cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Corpus:
    file: Path
    parse: Parse

    def setups(self) -> list[Setup]:
        """Returns the runs that are kept; none where there is no file yet. Raises CorpusError."""
        return [self._setup(number, line) for number, line in enumerate(self._lines(), 1) if _command(line)]

    def keep(self, command: str, why: str) -> None:
        """Adds a run unless it is there. Raises CorpusError."""
        if any(_command(line) == command for line in self._lines()):
            return
        text = " ".join(why.split())[:_LONGEST_TEXT]
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            head = "" if self.file.exists() else _HEAD
            with self.file.open("a", encoding="utf-8") as out:
                out.write(f"{head}{command}{_REMARK}{text}\n")
        except OSError as error:
            raise CorpusError(f"{self.file}: {error.strerror}; --corpus names another file") from error

    def _lines(self) -> list[str]:
        try:
            return self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"{self.file}: {error}; --corpus names another file") from error

    def _setup(self, number: int, line: str) -> Setup:
        try:
            words = shlex.split(_command(line))
            if words[:2] != _PROGRAM:
                raise ValueError("no command of `wrackline simulate`")
            return self.parse(words[2:])
        except ValueError as error:
            raise CorpusError(f"{self.file}, line {number}: {error}; take the line out") from error


def _command(line: str) -> str:
    """Returns the line without its remark; empty for one that is a remark."""
    return "" if line.startswith("#") else line.partition(_REMARK)[0].strip()

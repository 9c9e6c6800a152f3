"""The journal of a night: one line of JSON for everything that happened, on the disk before the next thing
begins. What is to be done next follows from it alone, so a night that was killed goes on where it stopped."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from wrackline.checkers.findings import Verdict
from wrackline.harness.records import GOOD, JOURNAL

Signature = tuple[str, str, str, str]
"""`harness.records.Record.signature`."""


class Did(StrEnum):
    """The kind of a line."""

    OPENED = "opened"
    """The harness began, or went on."""
    BEGAN = "began"
    MADE = "made"
    JUDGED = "judged"
    CLOSED = "closed"
    """The harness ended in good order: why, and whether the night is over."""
    TOLD = "told"
    """All was done that is done when a night is over; the signatures of violations that need not be told of
    again."""


@dataclass(frozen=True, slots=True)
class Result:
    """A run that was judged."""

    task: str
    run: str
    """The run's folder, below the night's ``runs``; empty where it did not come so far."""
    verdict: Verdict
    headline: str
    anomalies: tuple[str, ...]
    """Those that the contract forbids, and that were found."""
    seconds: float
    good: bool | None
    """`harness.records.Record.good`."""

    @property
    def violates(self) -> bool:
        """Tells whether anything follows from the violation: one that had to come is good."""
        return self.verdict is Verdict.VIOLATION and not self.good


@dataclass
class State:
    """The state that a journal records."""

    results: dict[str, Result] = field(default_factory=dict)
    """By task."""
    made: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Tasks whose run was made and not judged -> the run's folder, and how long it took, in seconds."""
    spent_s: float = 0.0
    """How long the harness was at work on this night."""
    over: bool = False
    """No further run is made."""
    told: frozenset[Signature] | None = None
    """Of its violations that need not be told of again; None while nobody was told of the night."""

    @property
    def ended(self) -> bool:
        """Tells whether nothing of this night is left to do, beside runs neither."""
        return self.over and self.told is not None

    def take(self, line: Mapping[str, Any]) -> None:
        match line["did"]:
            case Did.MADE:
                self.made[line["task"]] = (line["run"], line["seconds"])
            case Did.JUDGED:
                run, seconds = self.made.pop(line["task"], (line["run"], 0.0))
                self.results[line["task"]] = Result(
                    line["task"],
                    run,
                    Verdict(line["verdict"]),
                    line["headline"],
                    tuple(line["anomalies"]),
                    seconds,
                    line.get("good", line["verdict"] in GOOD),  # a journal of an older version does not say
                )
            case Did.CLOSED:
                self.over = bool(line["over"])
            case Did.TOLD:
                self.told = frozenset(tuple(each) for each in line["signatures"])


class Journal:
    """Append-only. A line that was torn by a crash is passed over: it is the last one."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self.state = read(folder)
        self._spent_before_s = self.state.spent_s
        self._opened = time.monotonic()
        self._file = self.path.open("ab")
        if self.path.stat().st_size and not self.path.read_bytes().endswith(b"\n"):
            self._file.write(b"\n")

    def claim(self) -> bool:
        """Claims the journal for this process alone, as long as it lives; False when another one has it."""
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def spent_s(self) -> float:
        return self._spent_before_s + time.monotonic() - self._opened

    def write(self, did: Did, **content: Any) -> None:
        """Raises OSError when the disk is full: then what this says did not happen."""
        line = {"at": time.time(), "spent_s": round(self.spent_s, 3), "did": did, **content}
        self._file.write(orjson.dumps(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.state.take(line)

    def close(self) -> None:
        self._file.close()


def read(folder: Path) -> State:
    """The state that a journal has come to; an empty one where there is none."""
    state = State()
    for line in _lines(folder / JOURNAL):
        state.take(line)
        state.spent_s = float(line["spent_s"])
    return state


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    for line in content.splitlines():
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # torn by a crash

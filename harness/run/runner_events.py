"""Events of a run's own course, for the judge: rows of the runner (wrackline.history.model) and
``infrastructure.json``. Everything is written when it happens: a harness that is killed takes nothing with
it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from wrackline.checkers.inputs.course import INFRASTRUCTURE
from wrackline.history import Recorder, RecordingFailed
from wrackline.history.model import CONTROL, Event, Type
from wrackline.history.store.folder import whole_file
from wrackline.history.wording import partition_label
from wrackline.systems.base import Node, TierTraffic

log = logging.getLogger(__name__)

MISSING = "missing.txt"
"""This file in a host's folder names what could not be fetched from the host, and why."""


class Account:
    """The rows that one run records of its own course."""

    def __init__(self, run_dir: Path, recorder: Recorder) -> None:
        self._run_dir = run_dir
        self._recorder = recorder
        self._troubles: list[dict[str, str]] = []
        self._interrupted = False

    @property
    def troubles(self) -> list[str]:
        """Returns what broke down on our side, in the order in which it did."""
        return _lines(self._troubles)

    def trouble(self, step: str, error: str) -> None:
        """Hosts, SSH, deployment or our own disk failed: the run cannot simply pass. Of ``error`` the first
        line counts."""
        self._troubles.append({"step": step, "error": (error.splitlines() or ["no reason given"])[0]})
        try:
            write_troubles(self._run_dir, self._troubles)
        except OSError as full:
            log.warning("%s cannot be written: %s", INFRASTRUCTURE, full)

    def phase(self, phase: str) -> None:
        """Raises RecordingFailed, as all that follow."""
        self._row("phase", {"phase": phase})

    def stopped(self, stuck: Sequence[str], followers: Mapping[str, int]) -> None:
        """The clients were told to end; ``stuck`` are those whose operations never completed, ``followers``
        says how many records of each partition followers gave."""
        self._row("stopped", {"stuck": list(stuck)} | ({"followers": followers} if followers else {}))

    def repaired(self, repairs: Sequence[str]) -> None:
        """Faults are over and the fleet is healed; ``repairs``: what the faults' own undo had left."""
        self._row("repaired", {"repairs": list(repairs)})

    def interrupted(self, why: str) -> None:
        """The user asked for an early end. It is recorded once."""
        if not self._interrupted:
            self._interrupted = True
            self._row("interrupted", {"why": why})

    def collected(self, nodes: Sequence[Node], folder: Path) -> None:
        """Record which files of each host there are below ``folder``."""
        files = {node.host.name: _files(folder / node.host.name) for node in nodes}
        missing = {host: why for host in files if (why := _missing(folder / host))}
        # A spare without a log was never started.
        unused = [node.host.name for node in nodes if node.spare and not _has_log(files[node.host.name])]
        self._row("collected", {"files": files, "missing": missing, "unused": unused})

    def tier(self, traffic: TierTraffic) -> None:
        """What went through the remote tier."""
        self._row("tier", asdict(traffic))

    def over(self) -> None:
        with suppress(RecordingFailed):  # whoever met the failed recording first reports it
            self._row("over", {})

    def _row(self, f: str, extra: Mapping[str, Any]) -> None:
        self._recorder.record(Event(CONTROL, Type.INFO, f, extra=extra))


def write_troubles(run_dir: Path, troubles: Sequence[Mapping[str, str]]) -> None:
    """Writes down what broke down on our side: ``step`` and ``error`` of each. Raises OSError."""
    content = {"error": "; ".join(_lines(troubles)), "troubles": troubles}
    with whole_file(run_dir / INFRASTRUCTURE) as part:
        part.write_bytes(orjson.dumps(content) + b"\n")


def _lines(troubles: Sequence[Mapping[str, str]]) -> list[str]:
    return [f"{one['step']}: {one['error']}" for one in troubles]


def left_out_lines(left_out: Mapping[str, Sequence[int]], places: Sequence[tuple[str, int]]) -> Iterator[str]:
    """A line for each kind of operation of which some were left out. ``left_out``: counts by place."""
    several = len({topic for topic, _ in places}) > 1
    names = [partition_label(topic if several else None, partition) for topic, partition in places]
    for f, counts in left_out.items():
        if sum(counts):
            where = ", ".join(
                f"{count} of {name}" for count, name in zip(counts, names, strict=False) if count
            )
            of = f" ({where})" if len(counts) > 1 else ""
            yield f"{sum(counts)} {f} operations fell due while the clients were busy, and were left out{of}"


def _has_log(names: Sequence[str]) -> bool:
    return any(name.endswith(".log") for name in names)


def _files(folder: Path) -> list[str]:
    """Names of those that hold something."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.name != MISSING and path.stat().st_size)


def _missing(folder: Path) -> str:
    try:
        return "; ".join((folder / MISSING).read_text(errors="replace").splitlines())
    except FileNotFoundError:
        return ""

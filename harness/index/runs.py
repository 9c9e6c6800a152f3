"""A run as the pages show it: its page, its links, its word and colour."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from upath import UPath

from wrackline.checkers.findings import Verdict
from wrackline.harness.index.collect import Entry
from wrackline.harness.records import BAD, GOOD, Found, Record, State
from wrackline.harness.report.read.latency import Latency

_K = TypeVar("_K", bound=Hashable)
MARKS: Final = {
    Verdict.INCONCLUSIVE.value: "?",
    Verdict.INFRASTRUCTURE.value: "!",
    State.RECORDING.value: "…",
    State.NOT_JUDGED.value: "·",
    State.DAMAGED.value: "!",
}
"""A verdict that says nothing of the system, or else a state -> a sign, so that nobody needs to see colours.
The other verdicts are good or bad."""
_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Run:
    """``page``, ``report`` and ``history`` are links from the site's folder; empty where there is none."""

    record: Record
    latency: Latency | None
    slug: str
    """The name of its page, and of what points to it: the same for as long as its folder keeps its name."""
    report: str
    history: str

    @property
    def page(self) -> str:
        return f"run/{self.slug}.html"

    @property
    def word(self) -> str:
        """Returns the verdict of the run, or how far the run has come."""
        return self.record.word or self.record.state.value

    @property
    def css(self) -> str:
        """Green, red or neither: of what came out as it must, that is no red."""
        verdict = self.record.verdict
        if verdict is None:
            word = self.word.replace(" ", "-")
            return {"damaged": "infrastructure"}.get(word, f"none {word}")
        if verdict not in (*GOOD, *BAD):
            return verdict.value
        if self.good:
            return (Verdict.REPRODUCED if self.record.as_expected else verdict).value
        return (Verdict.NOT_REPRODUCED if verdict in GOOD else verdict).value.replace(" ", "-")

    @property
    def mark(self) -> str:
        verdict = self.record.verdict
        if verdict in (*GOOD, *BAD):
            return "✓" if self.good else "✗"
        return MARKS[verdict.value if verdict else self.record.state.value]

    @property
    def good(self) -> bool | None:
        """Tells whether the run came out as it must; None: it says nothing about the system."""
        return self.record.good

    @property
    def night(self) -> str:
        """The night's folder; of a single run its day."""
        return self.record.night or f"{(self.record.started_at or 'no time')[:10]}, single runs"

    @property
    def began(self) -> str:
        """``2026-11-23 01:00``"""
        return self.record.started_at[:16].replace("T", " ")

    @property
    def system(self) -> str:
        return " ".join(
            part for part in (self.record.system, self.record.version, self.record.profile) if part
        )

    @property
    def headline(self) -> str:
        return self.record.headline or self.record.trouble

    @property
    def violations(self) -> tuple[Found, ...]:
        return tuple(each for each in self.record.found if each.anomaly in self.record.violations)

    @property
    def words(self) -> str:
        """Returns the text that a search looks in."""
        one = self.record
        parts = [one.run, one.task, one.name, self.word, self.night, self.system, one.fleet, one.workload]
        parts += [f"seed={one.seed}", f"acks={one.acks}", one.guided, *one.defects, self.headline]
        parts += [fault.kind for fault in one.faults] + [each.anomaly for each in one.found]
        return " ".join(dict.fromkeys(parts)).lower()

    def finding(self, anomaly: str) -> str:
        """The link to an anomaly in its report."""
        return f"{self.report}#a-{quote(anomaly)}" if self.report else ""


def group_runs(runs: Iterable[Run], key: Callable[[Run], _K]) -> dict[_K, list[Run]]:
    """The runs by a key, in the order in which the keys are met."""
    result: dict[_K, list[Run]] = {}
    for run in runs:
        result.setdefault(key(run), []).append(run)
    return result


Link = Callable[[UPath], str]
"""A file of a run -> the link to it from the site's folder."""


def shown(entries: Sequence[Entry], link: Link) -> list[Run]:
    """Oldest first. A run whose name another has too gets a part of its address behind it."""
    names = Counter(_plain(entry.record.run) for entry in entries)
    return [_shown(entry, link, alone=names[_plain(entry.record.run)] == 1) for entry in entries]


def _shown(entry: Entry, link: Link, *, alone: bool) -> Run:
    one = entry.record
    slug = _plain(one.run)
    if not alone:
        slug += f"-{hashlib.sha256(str(one.folder).encode()).hexdigest()[:8]}"
    return Run(
        record=one,
        latency=entry.latency,
        slug=slug,
        report=link(one.folder / "report.html") if entry.has_report else "",
        history=link(one.folder / "history.parquet") if entry.has_history else "",
    )


def _plain(name: str) -> str:
    return _IN_A_NAME.sub("_", name)


def beside(site: Path) -> Link:
    """Links that hold wherever site and results are copied to together; those to object storage are its own
    addresses."""
    here = site.resolve()

    def link(file: UPath) -> str:
        if file.protocol:
            return str(file)
        return quote(os.path.relpath(Path(str(file)).resolve(), here))

    return link


def below(results: UPath, prefix: str) -> Link:
    """Links that begin with ``prefix`` where the file's address begins with that of the results."""
    root = str(results).rstrip("/")

    def link(file: UPath) -> str:
        return prefix + quote(str(file).removeprefix(root).lstrip("/"))

    return link

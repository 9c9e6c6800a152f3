"""``wrackline simulate eras --html FILE``: the table of all stories under all profiles as one page, with what
happens in each, line by line. The page loads nothing and runs nothing."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrackline.pages.template import Templates
from wrackline.simulator.eras.explanations import CODES, EXPLANATIONS, Explanation
from wrackline.simulator.eras.story import ERAS, Story
from wrackline.simulator.eras.transcript import Line, Transcript, transcript_of

NOTHING = "unharmed"
HARM = {
    "lost-write": "acknowledged record lost",
    "divergence": "logs differ",
    "stale-read": "stale read",
}
"""What a client or an operator sees, worst first; what the invariants say besides is in the lines."""


@dataclass(frozen=True, slots=True)
class Era:
    profile: str
    years: str
    elects: str
    cuts: str


ABOUT = (
    Era("zk08", "0.8", "replicas race for a node in ZooKeeper", "all above its own high watermark"),
    Era("kip101", "0.11 to 2.6", "a controller", "what is not in its leader's log, by leader epoch"),
    Era("kraft35", "3.5", "the KRaft controller", "what is not in its leader's log, as its fetches show"),
    Era("kip966", "KIP-966", "the KRaft controller, which knows who else has everything", "as in kraft35"),
)


@dataclass(frozen=True, slots=True)
class OnHosts:
    """The outcome of a run of the story on real hosts."""

    verdict: str
    report: str
    """Path of its report, from the page; empty: none."""


class HostsFileError(Exception):
    """The file of runs on hosts cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Cell:
    era: Era
    outcome: str
    transcript: Transcript
    explanation: Explanation
    on_hosts: OnHosts | None

    @property
    def harmed(self) -> bool:
        return self.outcome != NOTHING

    @property
    def parting(self) -> Line:
        """Returns the line where the rules part; a test sees to it that every transcript has such a line."""
        return next(line for line in self.transcript.lines if line.parts)

    @property
    def longest(self) -> int:
        """Records of the longest log that is drawn, so that it shows where a record is no more."""
        drawn = (*self.parting.replicas, *self.transcript.end)
        return max(len(replica.values) for replica in drawn)


@dataclass(frozen=True, slots=True)
class Row:
    story: Story
    cells: tuple[Cell, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """Returns who tells the story, one by one."""
        return tuple(self.story.told.split(", "))

    @property
    def tale(self) -> str:
        """Returns what happens in the story, in some sentences."""
        return " ".join((inspect.getdoc(self.story.play) or "").split())


def outcome(oracles: Sequence[str]) -> str:
    """Returns how a transcript ended, by the oracles that fired."""
    for oracle, words in HARM.items():
        if oracle in oracles:
            return words
    return ", ".join(oracles) or NOTHING


Hosts = Mapping[tuple[str, str], OnHosts]
"""(story, profile) -> the run."""


def hosts_of(file: Path, stories: Sequence[Story]) -> Hosts:
    """``{"story": {"profile": {"verdict": "...", "report": "path"}}}``, or the table of ``wrackline eras
    --json``. Raises HostsFileError."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HostsFileError(f"{file}: {error}; --hosts-json names a file of JSON") from error
    if isinstance(content, list):
        content = _of_arms(content, str(file))
    names, result = {story.name for story in stories}, {}
    for story, profiles in _object(content, str(file)).items():
        if story not in names:
            raise HostsFileError(f"{file}: no story {story!r}; there are: {', '.join(sorted(names))}")
        for profile, run in _object(profiles, f"{file}: {story}").items():
            where = f"{file}: {story}: {profile}"
            if profile not in ERAS:
                raise HostsFileError(f"{where}: no such profile; there are: {', '.join(ERAS)}")
            result[story, profile] = _run(_object(run, where), where)
    return result


def _of_arms(arms: list[Any], where: str) -> dict[str, Any]:
    """The newest run of each arm, with what it showed."""
    result: dict[str, Any] = {}
    try:
        for arm in arms:
            if arm["made"]:
                run = arm["made"][-1]
                shown = [f"{count} {name}" for name, count in run["shown"].items() if count]
                verdict = ", ".join([run["verdict"], *shown])
                result.setdefault(arm["story"], {})[arm["profile"]] = {
                    "verdict": verdict,
                    "report": run["report"] or "",
                }
    except (KeyError, TypeError, AttributeError) as error:
        raise HostsFileError(f"{where}: {error!r}; it is no table of `wrackline eras --json`") from error
    return result


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HostsFileError(f"{where}: {type(value).__name__} where an object is due")
    return value


def _run(run: dict[str, Any], where: str) -> OnHosts:
    verdict, report = run.get("verdict"), run.get("report", "")
    if not isinstance(verdict, str) or not isinstance(report, str):
        raise HostsFileError(f'{where}: it is no {{"verdict": "...", "report": "path"}}')
    if ":" in report.partition("/")[0]:
        raise HostsFileError(f"{where}: {report!r} is no path")
    return OnHosts(verdict, report)


def row_of(story: Story, hosts: Hosts) -> Row:
    """Plays the story under every profile. Raises SimulationError when it cannot be gone through."""
    cells = []
    for era in ABOUT:
        transcript = transcript_of(story, era.profile)
        key = story.name, era.profile
        cells.append(
            Cell(era, outcome(transcript.played.oracles), transcript, EXPLANATIONS[key], hosts.get(key))
        )
    return Row(story, tuple(cells))


def page(rows: Sequence[Row]) -> str:
    return Templates("wrackline.simulator.eras").render(
        "eras.html.j2",
        rows=rows,
        eras=ABOUT,
        codes={one: CODES[one] for row in rows for one in row.told if one in CODES},
        hosts=any(cell.on_hosts for row in rows for cell in row.cells),
    )

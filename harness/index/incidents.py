"""Incidents of many runs that are one and the same: by cause, schedule, system and version. The runs' own
incidents are counted; a run that was judged before there were any has one, of all its anomalies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from wrackline.checkers.findings import Verdict
from wrackline.harness.index.baseline import Share, share
from wrackline.harness.index.runs import Run
from wrackline.harness.records import incident_id

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Incident:
    cause: str
    """The anomalies that one incident of a run has, or what had to be shown and was not."""
    schedule: str
    system: str
    version: str
    runs: tuple[Run, ...]
    """Those that showed it, oldest first."""
    often: Share
    """Of the runs of the same suites with this schedule, system and version since it was first seen."""
    quiet: int
    """So many of these runs there were since it was last seen."""
    expected: bool = False
    """Whether each of these runs had to show it."""
    known: str = ""
    """Where somebody works on it; empty where nobody said so."""
    count: int = 0
    """So many incidents the runs have of it."""
    sentence: str = ""
    """What happened in the last of them; empty where a run has no sentence for it."""

    @property
    def slug(self) -> str:
        """Returns the end of a link to the incident: the same on every machine."""
        return incident_id(self.cause, self.schedule, self.system, self.version)

    @property
    def alarms(self) -> bool:
        return not (self.expected or self.known)

    @property
    def title(self) -> str:
        """Returns the incident in a sentence; for a run without a sentence the anomalies that it showed."""
        return self.sentence or " and ".join(self.cause.rsplit("+", 1)).replace("+", ", ")

    @property
    def anomalies(self) -> tuple[str, ...]:
        """Their names; of what was not shown the cause itself."""
        return tuple(self.cause.split("+"))

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def last(self) -> Run:
        return self.runs[-1]

    @property
    def suites(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.record.name for run in self.runs))

    @property
    def words(self) -> str:
        parts = (self.cause, self.sentence, self.schedule, self.system, self.version, *self.suites)
        return " ".join((*parts, *(run.record.run for run in self.runs))).lower()


def incidents(runs: Sequence[Run], known: Mapping[str, str] = _NONE) -> list[Incident]:
    """The one that was seen last comes first; those that are known, and those
    that had to be, come last. What was made smaller is the
    incident that it was made from."""
    runs = [run for run in runs if not run.record.is_smaller]
    result: dict[tuple[str, str, str, str], list[Run]] = {}
    for run in runs:
        if run.good is False or run.record.verdict is Verdict.VIOLATION:
            for signature in _signatures(run):
                result.setdefault(signature, []).append(run)
    made = [
        replace(one, known=known.get(one.slug, ""))
        for one in (_incident(signature, of, runs) for signature, of in result.items())
    ]
    return sorted(
        made,
        key=lambda one: (one.alarms, not one.expected, one.last.record.started_at, len(one.runs)),
        reverse=True,
    )


def _signatures(run: Run) -> list[tuple[str, str, str, str]]:
    _, schedule, system, version = run.record.signature
    causes = run.record.causes
    if run.record.verdict is Verdict.PASS:
        causes = ("not shown: what was expected",)
    elif run.record.verdict is Verdict.NOT_REPRODUCED:
        causes = (f"not shown: {'+'.join(run.record.expected) or 'what was expected'}",)
    return [(cause, schedule, system, version) for cause in causes or ("no anomaly is named",)]


def _incident(signature: tuple[str, str, str, str], of: Sequence[Run], runs: Sequence[Run]) -> Incident:
    begun, ended = of[0].record.started_at, of[-1].record.started_at
    names = {run.record.name for run in of}
    alike = [
        run
        for run in runs
        if run.record.name in names
        and run.good is not None
        and run.record.started_at >= begun
        and run.record.signature[1:] == signature[1:]
    ]
    own = [one for run in of for one in run.record.incidents if one.cause == signature[0]]
    return Incident(
        *signature,
        runs=tuple(of),
        often=share(len(of), max(len(alike), len(of))),
        quiet=sum(run.record.started_at > ended for run in alike),
        expected=all(run.record.as_expected for run in of),
        count=max(len(own), len(of)),
        sentence=own[-1].sentence if own else "",
    )

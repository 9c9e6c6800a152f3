"""The incidents of the verdict, as the report shows them: what happened, how, under which faults, and the
findings that prove it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from wrackline.checkers.findings import Meaning
from wrackline.checkers.verdict.incidents.sentences import capital
from wrackline.harness.report.bug_report import bug_report
from wrackline.harness.report.draw.replicas_chart import replicas_chart
from wrackline.harness.report.evidence import EvidenceGroup
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.files import RunFiles
from wrackline.harness.report.read.replicas import replica_logs
from wrackline.harness.report.summary import Anomaly
from wrackline.history.json_values import mapping, rows, texts, whole
from wrackline.history.store import packed
from wrackline.pages.frame import for_both

BREAKING: Final = (Meaning.VIOLATION, Meaning.EXPECTED)
"""Incidents of these meanings break the contract, or are what the run was to show."""
MOST_REPORTS: Final = 5
"""Incidents that bring their bug report along; `wrackline explain` writes those of the others."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One anomaly of an incident, and its findings."""

    anomaly: str
    meaning: str
    count: int
    groups: tuple[EvidenceGroup, ...]
    """By partition: nearly always one."""
    anchor: str


@dataclass(frozen=True, slots=True)
class LogLine:
    file: str
    number: int
    at_ns: int | None
    text: str
    words: str
    """What it tells, as a sentence."""
    is_plain: bool
    """The file is there and not packed, so that a browser can show it."""


@dataclass(frozen=True, slots=True)
class Incident:
    number: int
    """On this page, from 1."""
    id: str
    meaning: str
    sentence: str
    mechanism: tuple[str, ...]
    same_change: tuple[tuple[str, str], ...]
    """(id, partition) of the incidents shown that came with the same change of leaders."""
    at_ns: int | None
    faults: tuple[Fault, ...]
    proofs: tuple[Proof, ...]
    lines: tuple[LogLine, ...]
    partition: str
    replicas: Markup | None
    """The log on each replica, where one is known to have cut it."""
    bug_report: str = ""
    """Markdown for the maintainers of the system; empty where it breaks nothing, or others come before."""


@dataclass(frozen=True, slots=True)
class Incidents:
    """The incidents of some meanings."""

    shown: tuple[Incident, ...]
    counts: tuple[tuple[str, int], ...]
    """(meaning, how many), without those of which there are none."""

    @property
    def more(self) -> int:
        return sum(count for _, count in self.counts) - len(self.shown)


def incidents_of(
    files: RunFiles, faults: Sequence[Fault], groups: Sequence[EvidenceGroup]
) -> tuple[Incidents, Incidents]:
    """Returns the incidents that break the contract, and those that it does not forbid. There are none of
    a run that was judged when nobody looked for them yet."""
    by_id = {fault.id: fault for fault in faults}
    own: dict[str | None, list[EvidenceGroup]] = {}
    for group in groups:
        own.setdefault(group.group.incident, []).append(group)
    told = rows(files.verdict, "incidents")
    names = {str(row.get("id")): f"{row.get('topic')}-{row.get('partition')}" for row in told}
    result = [
        _incident(number, row, by_id, own.get(str(row.get("id")), ()), names, files.directory)
        for number, row in enumerate(told, 1)
    ]
    reported = [at for at, one in enumerate(result) if one.meaning in BREAKING][:MOST_REPORTS]
    for at in reported:
        with suppress(OSError):
            result[at] = replace(result[at], bug_report=bug_report(files, told[at]))
    counted = mapping(files.verdict, "incident_counts")
    counts = [(str(of), whole(counted, of) or 0) for of in Meaning if whole(counted, of)]
    breaking, others = (
        Incidents(
            tuple(one for one in result if (one.meaning in BREAKING) is breaks),
            tuple((of, count) for of, count in counts if (of in BREAKING) is breaks),
        )
        for breaks in (True, False)
    )
    return breaking, others


def _incident(
    number: int,
    row: Mapping[str, Any],
    faults: Mapping[str, Fault],
    groups: Sequence[EvidenceGroup],
    names: Mapping[str, str],
    run_dir: Path,
) -> Incident:
    name, logs = str(row.get("id", "?")), replica_logs(row)
    return Incident(
        number=number,
        id=name,
        meaning=str(row.get("meaning", "?")),
        sentence=capital(str(row.get("sentence") or "")),
        mechanism=texts(row, "mechanism"),
        same_change=tuple((one, names[one]) for one in texts(row, "same_change") if one in names),
        at_ns=whole(row, "at_ns"),
        faults=tuple(faults[one] for one in texts(row, "faults") if one in faults),
        proofs=tuple(_proofs(row, name, groups)),
        lines=tuple(_line(one, run_dir) for one in rows(row, "lines")),
        partition=f"{row.get('topic')}-{row.get('partition')}",
        replicas=None if logs is None else for_both(partial(replicas_chart, logs)),
    )


def _proofs(row: Mapping[str, Any], incident: str, groups: Sequence[EvidenceGroup]) -> Iterator[Proof]:
    """An anomaly has two rows where it means something else in another partition of the incident."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for one in rows(row, "anomalies"):
        by_name.setdefault(str(one.get("anomaly", "?")), []).append(one)
    for name, own in by_name.items():
        yield Proof(
            anomaly=name,
            meaning=str(own[0].get("meaning", "?")),
            count=sum(whole(one, "count") or 0 for one in own),
            groups=tuple(group for group in groups if group.group.anomaly == name),
            anchor=f"{incident}-{name}",
        )


def _line(row: Mapping[str, Any], run_dir: Path) -> LogLine:
    file = str(row.get("file", "?"))
    return LogLine(
        file,
        whole(row, "number") or 0,
        whole(row, "at_ns"),
        str(row.get("text") or ""),
        str(row.get("words") or ""),
        ".." not in file
        and not file.startswith("/")
        and (run_dir / file).is_file()
        and not file.endswith(packed.SUFFIX),
    )


@dataclass(frozen=True, slots=True)
class Further:
    """Findings of one anomaly that are in none of the incidents shown."""

    anomaly: str
    rows: tuple[Anomaly, ...]
    """What the anomaly means: two rows where partitions differ."""
    groups: tuple[EvidenceGroup, ...]

    @property
    def count(self) -> int:
        return sum(one.group.count for one in self.groups)

    @property
    def shown(self) -> tuple[EvidenceGroup, ...]:
        return tuple(one for one in self.groups if one.items)

    @property
    def hidden(self) -> tuple[int, int]:
        """Returns how many partitions are not shown, and how many findings they have."""
        counts = [one.group.count for one in self.groups if not one.items]
        return len(counts), sum(counts)

    @property
    def anchor(self) -> str:
        return f"further-{self.anomaly}"


@dataclass(frozen=True, slots=True)
class Place:
    """The place on the page where findings are."""

    label: str
    anchor: str
    count: int


@dataclass(frozen=True, slots=True)
class Found:
    anomaly: Anomaly
    places: tuple[Place, ...]


def further_of(
    groups: Iterable[EvidenceGroup], incidents: Collection[str], anomalies: Sequence[Anomaly]
) -> tuple[Further, ...]:
    """``incidents``: the ids of those that are shown. ``anomalies``: in their order on the page."""
    by_name: dict[str, list[EvidenceGroup]] = {}
    for one in groups:
        if one.group.incident not in incidents:
            by_name.setdefault(one.group.anomaly, []).append(one)
    names = dict.fromkeys(one.name for one in anomalies if one.name in by_name)
    return tuple(
        Further(name, tuple(one for one in anomalies if one.name == name), tuple(by_name[name]))
        for name in names
    )


def found_of(
    anomalies: Sequence[Anomaly], incidents: Sequence[Incident], further: Sequence[Further]
) -> tuple[Found, ...]:
    """Returns for each anomaly with findings where these are on the page."""
    return tuple(Found(one, tuple(_places(one, incidents, further))) for one in anomalies if one.count)


def _places(anomaly: Anomaly, incidents: Sequence[Incident], further: Sequence[Further]) -> Iterator[Place]:
    for incident in incidents:
        for proof in incident.proofs:
            if (proof.anomaly, proof.meaning) == (anomaly.name, anomaly.meaning):
                yield Place(f"incident {incident.number}", proof.anchor, proof.count)
    for one in further:
        if one.anomaly == anomaly.name:
            yield Place("further findings" if incidents else "findings", one.anchor, one.count)

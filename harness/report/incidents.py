"""The incidents of the verdict, as the report shows them: what happened, how, under which faults, and which
findings prove it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from wrackline.checkers.explain.model import Finding, Group
from wrackline.checkers.findings import Meaning
from wrackline.checkers.verdict.incidents.sentences import capital
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.files import RunFiles
from wrackline.history.json_values import mapping, rows, texts, whole

FINDINGS_SHOWN: Final = 6
"""Links to findings, of each anomaly of an incident."""
_OF_EVERY_LINE: Final = ("time_ns", "mono_ns", "step", "node", "incarnation", "seq")
"""Of a trace (docs/invariants.md): the same in every line, or a number of the line."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One anomaly of an incident, and the first of its findings."""

    anomaly: str
    meaning: str
    count: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class LogLine:
    file: str
    number: int
    at_ns: int | None
    text: str
    is_plain: bool
    """The file is there and not packed, so that a browser can show it."""


@dataclass(frozen=True, slots=True)
class Incident:
    id: str
    meaning: str
    sentence: str
    mechanism: tuple[str, ...]
    at_ns: int | None
    faults: tuple[Fault, ...]
    proofs: tuple[Proof, ...]
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True)
class Incidents:
    shown: tuple[Incident, ...]
    counts: tuple[tuple[str, int], ...]
    """(meaning, how many), without those of which there are none."""

    @property
    def more(self) -> int:
        return sum(count for _, count in self.counts) - len(self.shown)


def incidents_of(files: RunFiles, faults: Sequence[Fault]) -> Incidents | None:
    """None: the run was judged when there were no incidents yet."""
    verdict = files.verdict
    if verdict is None or "incidents" not in verdict:
        return None
    groups = files.explanations.groups
    by_id = {fault.id: fault for fault in faults}
    counted = mapping(verdict, "incident_counts")
    counts = tuple((str(of), whole(counted, of) or 0) for of in Meaning if whole(counted, of))
    return Incidents(
        tuple(_incident(row, by_id, groups, files.directory) for row in rows(verdict, "incidents")), counts
    )


def _incident(
    row: Mapping[str, Any], faults: Mapping[str, Fault], groups: Sequence[Group], run_dir: Path
) -> Incident:
    return Incident(
        id=str(row.get("id", "?")),
        meaning=str(row.get("meaning", "?")),
        sentence=capital(str(row.get("sentence") or "")),
        mechanism=texts(row, "mechanism"),
        at_ns=whole(row, "at_ns"),
        faults=tuple(faults[one] for one in texts(row, "faults") if one in faults),
        proofs=tuple(
            Proof(
                str(one.get("anomaly", "?")),
                str(one.get("meaning", "?")),
                whole(one, "count") or 0,
                tuple(findings_of(one, row, groups))[:FINDINGS_SHOWN],
            )
            for one in rows(row, "anomalies")
        ),
        lines=tuple(_line(one, run_dir) for one in rows(row, "lines")),
    )


def _readable(line: str) -> str:
    """A line of a log as it is. Of one of a trace, which is a JSON object, what it says of the partition:
    when and by whom it was written stands beside it already."""
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(said, dict):
        return line
    return ", ".join(f"{name} {value}" for name, value in said.items() if name not in _OF_EVERY_LINE)


def _line(row: Mapping[str, Any], run_dir: Path) -> LogLine:
    file = str(row.get("file", "?"))
    return LogLine(
        file,
        whole(row, "number") or 0,
        whole(row, "at_ns"),
        _readable(str(row.get("text") or "")),
        ".." not in file and not file.startswith("/") and (run_dir / file).is_file(),
    )


def findings_of(
    anomaly: Mapping[str, Any], row: Mapping[str, Any], groups: Sequence[Group]
) -> Iterator[Finding]:
    """Those of the findings shown that belong to an incident, ``row``, and to one anomaly of it: by their
    offset, or by an operation."""
    first, last = whole(anomaly, "first_offset"), whole(anomaly, "last_offset")
    operations = set(row.get("operations") or ())
    for group in groups:
        if (group.anomaly, group.topic, group.partition) != (
            anomaly.get("anomaly"),
            row.get("topic"),
            row.get("partition"),
        ):
            continue
        for finding in (one.finding for one in group.explanations):
            if finding.offset is None or first is None or last is None:
                if operations & set(finding.operations):
                    yield finding
            elif first <= finding.offset <= last:
                yield finding

"""The last step of an analysis: ``explanations.json`` in the run's directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from wrackline.checkers.checks.registry import explained_by, names
from wrackline.checkers.explain.explanation import Around, explanations
from wrackline.checkers.explain.model import (
    EXPLANATIONS_FILE,
    VERSION,
    Explanations,
    FaultNear,
    from_json,
    to_json,
)
from wrackline.checkers.explain.selection import IncidentRows, Sample, sampled
from wrackline.checkers.findings import WORST_FIRST
from wrackline.checkers.gather import FINDINGS_FILE
from wrackline.checkers.inputs.runs import BROKEN
from wrackline.checkers.verdict.seal import why_broken
from wrackline.history import HistoryError, history_files, read_info
from wrackline.history.excerpts import History
from wrackline.history.json_values import rows, texts, whole
from wrackline.history.store.folder import whole_file
from wrackline.history.wording import labels_of

_USUAL_RATE: Final = 500.0
"""Operations per second, where nobody has counted."""
_BROKEN: Final = (pa.ArrowException, HistoryError, *BROKEN)
_UNREADABLE: Final = (pa.ArrowException, HistoryError, OSError)
"""What files raise that cannot be read; all else is a mistake of ours."""

Content = Mapping[str, Any]


def explained(run_dir: Path) -> Explanations:
    """The run's explanations. They are written first where they are missing, or of another version: then an
    older judge has judged the run. Raises OSError."""
    path = run_dir / EXPLANATIONS_FILE
    try:
        return from_json(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return explain(run_dir)


def explain(run_dir: Path) -> Explanations:
    """Write them from the history and from what the judge has written. Where one of these files is missing or
    broken they say so, and have what is left. Raises OSError where they cannot be written."""
    try:
        system = read_info(run_dir).system
    except _BROKEN:
        system = ""
    verdict, metrics = (_json(run_dir / name) for name in ("verdict.json", "metrics.json"))
    if why_broken(run_dir, verdict):
        verdict = {}
    return write(run_dir, system, lambda: history_files(run_dir), verdict, metrics)


def write(
    run_dir: Path, system: str, files: Callable[[], Sequence[Path]], verdict: Content, metrics: Content
) -> Explanations:
    """The same of a run that has just been judged. ``system``: as in ``RunInfo``. ``files``: asks for the
    history's files; it is called only where something was found."""
    with labels_of(system):
        result = _explanations(run_dir / FINDINGS_FILE, files, verdict, metrics)
    with whole_file(run_dir / EXPLANATIONS_FILE) as part:
        part.write_bytes(to_json(result))
    return result


def _explanations(
    findings: Path, files: Callable[[], Sequence[Path]], verdict: Content, metrics: Content
) -> Explanations:
    try:
        samples = _ordered(sampled(findings, IncidentRows(_rows(verdict))), verdict)
    except FileNotFoundError:
        return _without(findings.name, "missing, so the evidence behind the verdict cannot be shown")
    except _UNREADABLE as error:
        return _without(findings.name, f"not readable: {_first_line(error)}")
    if not samples:
        return Explanations(VERSION)
    around = Around(explained_by(), _faults(verdict), _rate(metrics))
    try:
        history = History(files())
        if not metrics:
            around = replace(around, rate_at=_rate({"seconds": history.rates()}))
        return explanations(samples, history, around)
    except _UNREADABLE as error:
        sentences = explanations(samples, None, around)
        why = f"{_first_line(error)}; operations, neighbourhoods and timelines cannot be shown"
        return Explanations(VERSION, sentences.groups, lacking=(("history", why),))


def _without(file: str, why: str) -> Explanations:
    return Explanations(VERSION, lacking=((file, why),))


def _rows(verdict: Content) -> Iterator[tuple[str, int, int]]:
    """(id of an incident, first row, last row) of the findings; an incident has several."""
    for incident in rows(verdict, "incidents"):
        for anomaly in rows(incident, "anomalies"):
            for row in anomaly.get("rows") or ():
                match row:
                    case [int(first), int(last)]:
                        yield str(incident.get("id")), first, last


def _ordered(samples: Sequence[Sample], verdict: Content) -> list[Sample]:
    """Sorts the samples, what is forbidden first: incidents in the order of the verdict, then what belongs
    to none of them. The anomalies of one incident have the same order; those of one meaning are as
    docs/anomalies.md has them."""
    judged = {str(row.get("anomaly")): row for row in rows(verdict, "anomalies")}
    incidents = {row.get("id"): (at, row) for at, row in enumerate(rows(verdict, "incidents"))}
    known = names()

    def rank(sample: Sample) -> tuple[int, int, bool, int, int, str]:
        name = sample.group.anomaly
        row = judged.get(name, {"count": 1})
        at, incident = incidents.get(sample.group.incident, (len(incidents), row))
        return (
            *(_weight(incident), at, not row.get("count"), _weight(row)),
            known.index(name) if name in known else len(known),
            name,
        )

    return sorted(samples, key=rank)


def _weight(row: Content) -> int:
    return WORST_FIRST.index(row["meaning"]) if row.get("meaning") in WORST_FIRST else len(WORST_FIRST)


def _faults(verdict: Content) -> list[FaultNear]:
    result = [
        FaultNear(
            id=str(row.get("id", "?")),
            fault=str(row.get("fault", "?")),
            targets=texts(row, "targets"),
            role=str(row.get("role") or ""),
            begin_ns=whole(row, "begin_ns"),
            ended_ns=whole(row, "ended_ns"),
            proved=row.get("proved") is True,
        )
        for row in rows(verdict, "faults")
    ]
    return sorted(result, key=lambda fault: (fault.begin_ns is None, fault.begin_ns or 0, fault.id))


def _rate(metrics: Content) -> Callable[[int], float]:
    """Operations per second around a time, from the counts of each second."""
    per_second: dict[int, float] = {}
    for row in rows(metrics, "seconds"):
        second = whole(row, "t")
        if second is not None:
            ended = sum(whole(row, outcome) or 0 for outcome in ("ok", "fail", "info"))
            per_second[second] = per_second.get(second, 0.0) + ended
    usual = max(per_second.values(), default=_USUAL_RATE)
    return lambda time_ns: max(per_second.get(int(time_ns // 1e9), usual), usual / 4)


def _json(path: Path) -> Content:
    """Empty where there is none: what the report says of the file itself is said there."""
    try:
        result = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return result if isinstance(result, dict) else {}


def _first_line(wrong: BaseException) -> str:
    lines = str(wrong).splitlines()
    return lines[0] if lines else type(wrong).__name__

"""The content of a report, built from the files of a run: plain values, in the order in which they are shown.

Nothing here touches HTML. ``build`` never fails because of the content of a run; what is missing is listed in
``gaps``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from markupsafe import Markup

from wrackline.checkers.inputs.cluster_history import Cluster, LeaderSpan, cluster_of
from wrackline.harness.report.draw.cluster_chart import cluster_chart
from wrackline.harness.report.draw.run_chart import buckets, run_chart
from wrackline.harness.report.evidence import evidence
from wrackline.harness.report.incidents import Found, Further, Incidents, found_of, further_of, incidents_of
from wrackline.harness.report.invariants import Invariants, invariants_of
from wrackline.harness.report.pictures import Pictures, pictures
from wrackline.harness.report.read.columns import Operations
from wrackline.harness.report.read.faults import (
    CONTROLLER,
    Fault,
    controller_spans,
    faults_of,
    phases_of,
)
from wrackline.harness.report.read.files import (
    Gap,
    RunFiles,
    check_run,
    first_line,
    mapping,
    read_run,
    rows,
    texts,
    whole,
)
from wrackline.harness.report.read.moments import Moment, moments_of
from wrackline.harness.report.story import story_of
from wrackline.harness.report.summary import (
    Anomaly,
    Condition,
    Contract,
    FaultRow,
    Other,
    Replay,
    Tile,
    anomalies_of,
    conditions_of,
    contract_of,
    disagreements,
    errors_of,
    facts_of,
    fault_row,
    headline_of,
    latency_of,
    notes_of,
    others_of,
    replay_of,
    run_id,
    run_name,
    tiles_of,
    versions_of,
)
from wrackline.history import HistoryError, history_files
from wrackline.history.excerpts import History
from wrackline.history.model import CONTROL, Event
from wrackline.history.wording import labels_of
from wrackline.pages.frame import for_both

_T = TypeVar("_T")
NOT_JUDGED: Final = "not judged"
_CHANGES_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Report:
    run_id: str
    system: str
    name: str
    verdict: str
    headline: str
    """One sentence, without a full stop."""
    subline: str
    """What the judge says besides."""
    reasons: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    defects: tuple[str, ...]
    tiles: tuple[Tile, ...]
    story: tuple[str, ...]
    contract: Contract | None
    others: tuple[Other, ...]
    conditions: tuple[Condition, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    """Remarks that the run itself wrote down."""
    chart: Markup | None
    moments: tuple[Moment, ...]
    """Of the incidents that break the contract, as the pictures have them."""
    pictures: Pictures | None
    bucket_s: int
    faults: tuple[FaultRow, ...]
    incidents: Incidents
    """Those that break the contract."""
    unforbidden: Incidents
    """Those that it does not forbid."""
    found: tuple[Found, ...]
    """Anomalies with findings, the forbidden ones first."""
    clean: tuple[Anomaly, ...]
    """Checkers that ran and found nothing."""
    further: tuple[Further, ...]
    """Findings that are in none of the incidents shown."""
    latency: tuple[tuple[str, str, str], ...]
    errors: tuple[tuple[str, int], ...] | None
    invariants: Invariants | None
    """None: they were not asked."""
    cluster: Markup | None
    course: Cluster
    changes: tuple[LeaderSpan, ...]
    changes_hidden: int
    nodes: tuple[str, ...]
    replay: Replay | None
    versions: tuple[tuple[str, str], ...]
    files: RunFiles


def build(run_dir: Path) -> Report:
    """The view of one run. Raises ReportError when the folder is no run."""
    check_run(run_dir)
    early: list[Gap] = []
    history = _open_history(run_dir, early)  # first: a killed run's history brings run.json up to date
    files = read_run(run_dir)
    with labels_of(files.info.system if files.info else ""):
        return _build(files, history, early)


def _build(files: RunFiles, history: History | None, early: Sequence[Gap]) -> Report:
    gaps = [*early, *files.gaps, *disagreements(files)]
    control = _guarded(history.control, gaps, list[Event]()) if history else []
    metrics = files.metrics
    if metrics is None and history is not None:
        metrics = {"seconds": _guarded(history.rates, gaps, list[dict[str, Any]]())}
    faults = faults_of(files.verdict, control)
    end_ns = _extent(metrics, faults, control)
    phases = phases_of(metrics, control, end_ns)
    nodes = _nodes(files, control)
    course = cluster_of(control, nodes, end_ns)
    leaders = course.spans
    actives = controller_spans(control, nodes, end_ns)
    holders = {host for spans in leaders.values() for span in spans for host in (span.leader, *span.replicas)}
    hosts = tuple(host for host in dict.fromkeys(nodes.values()) if host in holders)
    anomalies = anomalies_of(files)
    groups = evidence(files.explanations, faults, leaders)
    incidents, unforbidden = incidents_of(files, faults, groups)
    of_incidents = (*incidents.shown, *unforbidden.shown)
    further = further_of(groups, {one.id for one in of_incidents}, anomalies)
    changes = [span for spans in leaders.values() for span in spans]
    changes.sort(key=lambda span: (span.begin_ns, span.topic, span.partition))
    verdict = str(files.verdict.get("verdict", NOT_JUDGED)) if files.verdict else NOT_JUDGED
    step, series = buckets(metrics, end_ns / 1e9)
    moments = moments_of(files.verdict)
    drawn = _pictures(files, history, end_ns, faults, leaders, moments, gaps)
    headline, _, subline = headline_of(files).partition(". ")
    told = tuple(one.sentence for one in incidents.shown)
    return Report(
        run_id=run_id(files),
        system=files.info.system if files.info else "",
        name=run_name(files),
        verdict=verdict,
        headline=headline,
        subline=subline,
        reasons=tuple(one for one in texts(files.verdict, "reasons") if not one.startswith(told)),
        facts=facts_of(files),
        defects=files.info.defects if files.info else (),
        tiles=tiles_of(files, faults),
        story=story_of(files, faults, moments, anomalies),
        contract=contract_of(files.verdict),
        others=others_of(files),
        conditions=conditions_of(files.verdict),
        gaps=tuple(gaps),
        notes=notes_of(files),
        chart=for_both(partial(run_chart, metrics, faults, phases, end_ns, moments))
        if series or faults or phases
        else None,
        moments=moments,
        pictures=drawn,
        bucket_s=step,
        faults=tuple(fault_row(fault, metrics) for fault in faults),
        incidents=incidents,
        unforbidden=unforbidden,
        found=found_of(anomalies, of_incidents, further),
        clean=tuple(a for a in anomalies if not a.count),
        further=further,
        latency=latency_of(metrics),
        errors=errors_of(files.verdict),
        cluster=for_both(
            partial(
                cluster_chart,
                {**({CONTROLLER: actives} if actives else {}), **leaders},
                hosts,
                faults,
                end_ns,
                course.recoveries,
                moments,
            )
        )
        if leaders
        else None,
        course=course,
        invariants=invariants_of(files.verdict),
        changes=tuple(changes[:_CHANGES_SHOWN]),
        changes_hidden=max(0, len(changes) - _CHANGES_SHOWN),
        nodes=hosts,
        replay=replay_of(files.directory, files.info.seed) if files.info else None,
        versions=versions_of(files),
        files=files,
    )


# history ----------------------------------------------------------------------------------------------------


def _open_history(run_dir: Path, gaps: list[Gap]) -> History | None:
    try:
        files = history_files(run_dir)
        return History(files) if files else None
    except (HistoryError, pa.ArrowException, OSError, ValueError) as error:
        gaps.append(
            Gap("history", f"{first_line(error)}; what the runner wrote down of the cluster cannot be shown")
        )
        return None


def _guarded(ask: Callable[[], _T], gaps: list[Gap], instead: _T) -> _T:
    """The answer of a scan, or ``instead`` and a gap when the file turns out to be broken."""
    try:
        return ask()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        gaps.append(Gap("history", f"not readable: {first_line(error)}"))
        return instead


def _pictures(
    files: RunFiles,
    history: History | None,
    end_ns: int,
    faults: Sequence[Fault],
    leaders: Mapping[str, Sequence[LeaderSpan]],
    moments: Sequence[Moment],
    gaps: list[Gap],
) -> Pictures | None:
    if history is None:
        return None
    system = files.info.system if files.info else ""
    operations, groups = Operations(history.files), files.explanations.groups
    drawn = _guarded(
        lambda: pictures(operations, end_ns, faults, leaders, groups, system, moments), gaps, None
    )
    return drawn if drawn is not None and drawn.of.operations else None


def _extent(metrics: Mapping[str, Any] | None, faults: Sequence[Fault], control: Sequence[Event]) -> int:
    ends = [((whole(row, "t") or 0) + 1) * 1_000_000_000 for row in rows(metrics, "seconds")]
    ends += [whole(row, "end_ns") or 0 for row in rows(metrics, "phases")]
    ends += [fault.ended_ns or fault.begin_ns or 0 for fault in faults]
    ends += [event.time_ns for event in control[-1:]]
    return max(ends, default=1_000_000_000)


def _nodes(files: RunFiles, control: Sequence[Event]) -> dict[str, str]:
    """Node id -> host name: from the run's own information, or as the runner wrote it down."""
    nodes = dict(files.info.nodes) if files.info else {}
    for event in control:
        if event.process == CONTROL and event.f == "assignment":
            nodes.update({str(k): str(v) for k, v in mapping(event.extra, "nodes").items()})
    return dict(sorted(nodes.items(), key=lambda item: (len(item[0]), item[0])))

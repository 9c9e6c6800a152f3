"""Findings as the page shows them: what explains each (wrackline.checkers.explain.model), drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from wrackline.checkers.explain.model import Explanation, Explanations, Group
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.harness.report.draw.explanation_drawing import explanation_drawing, version_strip
from wrackline.harness.report.draw.process_lanes import Timeline, process_timeline
from wrackline.harness.report.read.faults import Fault
from wrackline.history.wording import partition_label


@dataclass(frozen=True, slots=True)
class Evidence:
    explanation: Explanation
    faults: tuple[Fault, ...]
    """Those near its operations."""
    cycle: Markup | None = None
    strip: Markup | None = None
    timelines: tuple[Timeline, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceGroup:
    """``items`` is empty where there are more groups than are shown."""

    group: Group
    items: tuple[Evidence, ...]


def evidence(
    explanations: Explanations, faults: Sequence[Fault], leaders: Mapping[str, Sequence[LeaderSpan]]
) -> list[EvidenceGroup]:
    """``leaders``: who led each partition."""

    def drawn(one: Explanation) -> Evidence:
        near = {fault.id for fault in one.faults}
        of_faults = tuple(fault for fault in faults if fault.id in near)
        if not one.detailed:
            return Evidence(one, of_faults)
        led = leaders.get(partition_label(one.finding.topic, one.finding.partition), ())
        return Evidence(
            one,
            of_faults,
            explanation_drawing(one),
            version_strip(one.neighbourhood) if one.neighbourhood is not None else None,
            tuple(
                process_timeline(explanations.in_window(window), one.operations, window, faults, led)
                for window in one.windows
            ),
        )

    return [EvidenceGroup(group, tuple(map(drawn, group.explanations))) for group in explanations.groups]

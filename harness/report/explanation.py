"""Why a finding is a contradiction: as data first, then one sentence per edge.

The operations a finding cites are the vertices, ``wrackline.harness.report.edges`` says which came before
which. A circle of edges proves that there is no order; the shortest is shown. Where there is no circle (two
values at one offset need no order to be wrong) each operation says what it knows of the offset.

At most eight operations a finding (``wrackline.checkers.findings``), and two that are added to it, so nothing
here grows with the history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from wrackline.harness.report.edges import Edge, edges_among, shortest_circle
from wrackline.harness.report.excerpts import Excerpt
from wrackline.harness.report.files import Finding
from wrackline.harness.report.neighbourhood import Reading
from wrackline.harness.report.objects import QUEUE, REGISTER, circle_of_object
from wrackline.harness.report.operations import Operation
from wrackline.harness.report.testified import facts_of
from wrackline.harness.report.testimony import witness_of
from wrackline.history.model import Record

FACTS: Final = 10
_NEED_NO_ORDER: Final = frozenset(
    (
        "aborted-read", "batch-order", "corrupt", "duplicate", "epoch-order", "inconsistent-offset",
        "misrouted", "phantom", "poll-rewind", "poll-skip", "replica-divergence", "wrong-offset",
        "commit-beyond-end", "commit-regression", "group-skip", "zombie-commit",
    )
)  # fmt: skip
"""Wrong in themselves, whatever came first: a circle would explain something else."""


@dataclass(frozen=True, slots=True)
class Explanation:
    operations: tuple[Operation, ...]
    edges: tuple[Edge, ...]
    """A circle: each edge's ``after`` is the next one's ``before``, the last one's the first one's. Empty:
    none found."""
    facts: tuple[str, ...]
    """What each operation knows of the matter, where there is no circle."""
    readings: tuple[Reading, ...] = ()
    """What each poll was given around the offset."""

    def plain(self) -> dict[str, Any]:
        """For ``explanations.json``."""
        return {
            "operations": [{"who": op.who, **asdict(op)} for op in self.operations],
            "edges": [edge.plain() for edge in self.edges],
            "facts": list(self.facts),
        }


def explanation(
    finding: Finding,
    operations: Sequence[Operation],
    rows: Mapping[int, Excerpt],
    records: Mapping[int, Sequence[Record]],
    reaching: Collection[int] = (),
) -> Explanation:
    """``rows``, ``records``, ``reaching``: as of ``witness_of``."""
    witnesses = [
        witness_of(number, op, finding, rows, records, reaching) for number, op in enumerate(operations, 1)
    ]
    if finding.anomaly in (REGISTER, QUEUE):
        circle = circle_of_object(witnesses, finding.anomaly)
    elif finding.anomaly in _NEED_NO_ORDER or finding.where == "two values":
        circle = []
    else:
        circle = shortest_circle(edges_among(witnesses, finding), witnesses, finding)
    facts: list[str] = []
    if not circle:
        facts = [fact for w in witnesses for fact in facts_of(w, finding)]
    readings = tuple(
        Reading(f"{w.op.name} ({w.number})", w.op.who, w.read)
        for w in witnesses
        if w.op.f == "poll" and w.read
    )
    return Explanation(tuple(operations), tuple(circle), tuple(dict.fromkeys(facts))[:FACTS], readings)

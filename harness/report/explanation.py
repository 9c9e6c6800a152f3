"""Why a finding is a contradiction: as data first, then one sentence per edge.

The operations a finding cites are the vertices of a graph, and ``wrackline.harness.report.edges`` finds which
of them came before which. A cycle of edges proves that no order of the operations is possible; the shortest
is shown. Where there is no cycle (two values at one offset are wrong in any order) each operation has a
sentence on what it shows of the offset.

At most eight operations a finding (``wrackline.checkers.findings``), and two that are added to it, so nothing
here grows with the history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from wrackline.harness.report.edges import Edge, edges_among, shortest_cycle
from wrackline.harness.report.neighbourhood import Reading
from wrackline.harness.report.objects import QUEUE, REGISTER, cycle_of_object
from wrackline.harness.report.read.excerpts import Excerpt
from wrackline.harness.report.read.files import Finding
from wrackline.harness.report.read.operations import Operation
from wrackline.harness.report.testified import facts_of
from wrackline.harness.report.testimony import witness_of
from wrackline.history.model import Record

FACTS: Final = 10
_NEED_NO_ORDER: Final = frozenset(
    (
        "aborted-read", "batch-order", "corrupt", "duplicate", "epoch-order", "inconsistent-offset",
        "misrouted", "phantom", "poll-rewind", "poll-skip", "replica-divergence", "wrong-offset",
        "commit-beyond-end", "commit-regression", "group-skip", "zombie-commit",
        "double-owner", "forgotten-commit", "phantom-commit", "torn-transaction",
        "unprocessed-input",
    )
)  # fmt: skip
"""These are wrong in any order of the operations: a cycle would explain something else."""


@dataclass(frozen=True, slots=True)
class Explanation:
    operations: tuple[Operation, ...]
    edges: tuple[Edge, ...]
    """A cycle: each edge's ``after`` is the next one's ``before``, the last one's the first one's. It is
    empty when there is none."""
    facts: tuple[str, ...]
    """A sentence on what each operation shows, where there is no cycle."""
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
    """Explain one finding. ``rows``, ``records`` and ``reaching`` are those of ``witness_of``."""
    witnesses = [
        witness_of(number, op, finding, rows, records, reaching) for number, op in enumerate(operations, 1)
    ]
    if finding.anomaly in (REGISTER, QUEUE):
        cycle = cycle_of_object(witnesses, finding.anomaly)
    elif finding.anomaly in _NEED_NO_ORDER or finding.where == "two values":
        cycle = []
    else:
        cycle = shortest_cycle(edges_among(witnesses, finding), witnesses, finding)
    facts: list[str] = []
    if not cycle:
        facts = [fact for w in witnesses for fact in facts_of(w, finding)]
    readings = tuple(
        Reading(f"{w.op.name} ({w.number})", w.op.who, w.read)
        for w in witnesses
        if w.op.f == "poll" and w.read
    )
    return Explanation(tuple(operations), tuple(cycle), tuple(dict.fromkeys(facts))[:FACTS], readings)

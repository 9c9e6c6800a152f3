"""The reason why a finding is a contradiction: the edges among the operations that it cites, or what each
of them shows.

The operations are the vertices of a graph, and ``wrackline.checkers.explain.edges`` finds which of them came
before which. A cycle of edges proves that no order of the operations is possible; the shortest is taken.
Where there is no cycle (two values at one offset are wrong in any order) each operation has a sentence on
what it shows of the offset.

At most eight operations a finding (``wrackline.checkers.findings``), and two that are added to it, so nothing
here grows with the history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.checkers.checks.explained_by import By, Cycle, ExplainedBy
from wrackline.checkers.explain.citations import Cited, cited_operation
from wrackline.checkers.explain.edges import shortest_cycle, steps_among
from wrackline.checkers.explain.facts import facts_of
from wrackline.checkers.explain.model import Edge, EdgeKind, Finding, Operation
from wrackline.checkers.explain.neighbourhood import Reading
from wrackline.checkers.explain.objects import cycle_of_object
from wrackline.history.excerpts import Excerpt
from wrackline.history.model import POLLS, Record

FACTS: Final = 10


@dataclass(frozen=True, slots=True)
class Contradiction:
    edges: tuple[Edge, ...]
    facts: tuple[str, ...]
    """Empty where there are edges."""
    cycle: str | None
    """As in ``Explanation``."""
    readings: tuple[Reading, ...]
    """What each poll was given around the offset."""


def contradiction(
    finding: Finding,
    how: ExplainedBy,
    operations: Sequence[Operation],
    rows: Mapping[int, Excerpt],
    records: Mapping[int, Sequence[Record]],
    reaching: Collection[int] = (),
) -> Contradiction:
    """Explains why one finding is a contradiction. ``rows``, ``records`` and ``reaching`` are those of
    ``cited_operation``."""
    cited = [
        cited_operation(number, op, finding, how, rows, records, reaching)
        for number, op in enumerate(operations, 1)
    ]
    edges = _cycle(finding, how, cited)
    facts = [] if edges else [fact for one in cited for fact in facts_of(one, finding, how)]
    readings = tuple(
        Reading(f"{one.op.name} ({one.number})", one.op.who, one.read)
        for one in cited
        if one.op.f in POLLS and one.read
    )
    return Contradiction(tuple(edges), tuple(dict.fromkeys(facts))[:FACTS], _name(how, edges), readings)


def _cycle(finding: Finding, how: ExplainedBy, cited: Sequence[Cited]) -> list[Edge]:
    if how.by in (By.REGISTER, By.QUEUE):
        return cycle_of_object(cited, how.by)
    if how.by is By.FACTS or finding.where in how.in_any_order:
        return []
    return shortest_cycle(steps_among(cited, finding, how), cited, how)


def _name(how: ExplainedBy, edges: Sequence[Edge]) -> str | None:
    """Elle's name of the cycle that is shown: G1c with reads and G0 without, and ``-realtime`` where it needs
    the order in time. Where no edges are shown, what the anomaly is called."""
    if how.cycle is None or not edges:
        return how.cycle
    kinds = {edge.kind for edge in edges}
    name = Cycle.G1C if EdgeKind.SEEN in kinds else Cycle.G0
    return f"{name}-realtime" if EdgeKind.TIME in kinds else name.value

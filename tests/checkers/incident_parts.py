"""Parts of incidents, made by hand."""

from __future__ import annotations

from wrackline.checkers.checks.registry import anomalies
from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.verdict.contracts import Ruling
from wrackline.checkers.verdict.incidents.parts import Part


def part(
    name: str,
    place: Place,
    first: int,
    last: int,
    first_ns: int = 0,
    last_ns: int = 0,
    *,
    at_end: bool = False,
) -> Part:
    """Findings of an anomaly at all offsets from ``first`` to ``last``, which cite no known operation."""
    return Part(
        anomaly=anomalies()[name],
        meaning=Meaning.VIOLATION,
        rulings={Ruling(Meaning.VIOLATION, "x"): last - first + 1},
        place=place,
        first=first,
        last=last,
        count=last - first + 1,
        first_ns=first_ns,
        last_ns=last_ns,
        at_end=at_end,
        operations=(),
        links=frozenset(),
        polls=(),
        consumers=frozenset(),
        final=(),
        values=frozenset(),
        where=None,
        explanation="x",
    )

"""A metric, as a core tells it; how it is written is for who serves it (docs/broker.md, "Metrics")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Metric(NamedTuple):
    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Mapping[str, int]
    """Value by ``label="value"``; by the empty string where there is one alone."""

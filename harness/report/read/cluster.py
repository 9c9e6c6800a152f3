"""What the report draws of the cluster's own history (wrackline.checkers.inputs.cluster_history), and who was
its active controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from wrackline.checkers.inputs.cluster_history import (
    Cluster,
    LeaderSpan,
    Recovery,
    cluster_of,
    polled_spans,
)
from wrackline.history.json_values import whole
from wrackline.history.model import CONTROL, Event

__all__ = ("Cluster", "LeaderSpan", "Recovery", "cluster_of", "polled_spans")
"""What others of the report take from here, too."""
CONTROLLER: Final = "controller"


def controller_spans(control: Iterable[Event], nodes: Mapping[str, str], end_ns: int) -> list[LeaderSpan]:
    """Who was the active controller, drawn as a partition of one replica; empty where it never changed."""

    def as_partition(event: Event) -> Event:
        named = whole(event.extra or {}, "controller")
        node = -1 if named is None else named
        row = {"topic": CONTROLLER, "partition": 0, "leader": node, "isr": [node], "replicas": [node]}
        return replace(event, extra={"partitions": [row]})

    asked = [event for event in control if event.process == CONTROL and event.f == "cluster"]
    spans = polled_spans(map(as_partition, asked), nodes, end_ns).get(f"{CONTROLLER}-0", [])
    return spans if len({span.leader for span in spans}) > 1 else []

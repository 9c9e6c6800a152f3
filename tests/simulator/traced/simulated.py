"""The trace that a simulated cluster would have written, had its nodes been real: the same lines by the same
writer's code, on virtual time."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

import orjson

from wrackline.broker.model import effects as fx
from wrackline.broker.model.events import Boot
from wrackline.broker.model.types import NodeId
from wrackline.broker.server.trace import OPTIONS, plain
from wrackline.simulator.traced.lines import Trace
from wrackline.simulator.world.world import StepRecord, World


class Tracing:
    """An observer of the world."""

    def __init__(self) -> None:
        self.lines: dict[NodeId, list[bytes]] = defaultdict(list)
        self._incarnation: dict[NodeId, str] = {}
        self._seq: dict[NodeId, int] = {}

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        if isinstance(step.event, Boot):
            self._incarnation[step.node] = str(step.event.incarnation_id)
            self._seq[step.node] = 0
        head = {
            "time_ns": round(step.at_ms * 1e6),
            "node": step.node,
            "step": step.number,
            "incarnation": self._incarnation.get(step.node, str(UUID(int=step.node))),
        }
        for effect in step.effects:
            if isinstance(effect, fx.Trace):
                seq = self._seq[step.node] = self._seq.get(step.node, 0) + 1
                fields = {**head, "seq": seq, "kind": effect.kind, **effect.fields}
                self.lines[step.node].append(orjson.dumps(fields, default=plain, option=OPTIONS))

    def traces(self, *, ahead_ns: dict[NodeId, int] | None = None) -> list[Trace]:
        """One of each node that wrote anything."""
        ahead = ahead_ns or {}
        return [
            Trace(f"n{node}/trace.jsonl", lines, ahead.get(node, 0))
            for node, lines in self.lines.items()
            if lines
        ]

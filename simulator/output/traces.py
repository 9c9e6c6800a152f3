"""The traces that the nodes of a simulated cluster would have written, had they been real: the same lines,
with the same values, on virtual time (docs/broker.md, "Trace"). So whoever reads traces reads these."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

import orjson

from wrackline.broker.model import effects as fx
from wrackline.broker.model.events import Boot
from wrackline.broker.model.traced_values import OPTIONS, plain
from wrackline.broker.model.types import NodeId
from wrackline.simulator.world.world import StepRecord, World
from wrackline.simulator.world.zookeeper_door import of_zookeeper


class Traces:
    """An observer of the world. Of a world with a ZooKeeper it also writes the ensemble's transactions, as
    ``zookeeper/systems/servers`` saves them."""

    def __init__(self, world: World | None = None) -> None:
        """``world``: one that has done nothing yet; needed where it has a ZooKeeper."""
        self.lines: dict[NodeId, list[bytes]] = defaultdict(list)
        """Node -> what it wrote; ``ZOOKEEPER``: the transactions."""
        self._incarnation: dict[NodeId, str] = {}
        self._seq: dict[NodeId, int] = {}
        if world is not None and world.zookeeper is not None:
            of_zookeeper("transactions")(world, self.write)

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        if isinstance(step.event, Boot):
            self._incarnation[step.node] = str(step.event.incarnation_id)
            self._seq[step.node] = 0
        for effect in step.effects:
            if isinstance(effect, fx.Trace):
                self.write(step.at_ms, step.node, step.number, effect.kind, **effect.fields)

    def write(self, at_ms: float, node: NodeId, step: int, kind: str, **fields: object) -> None:
        seq = self._seq[node] = self._seq.get(node, 0) + 1
        line = {
            "time_ns": int(at_ms * 1_000_000),
            "node": node,
            "step": step,
            "incarnation": self._incarnation.get(node, str(UUID(int=node))),
            "seq": seq,
            "kind": kind,
            **fields,
        }
        self.lines[node].append(orjson.dumps(line, default=plain, option=OPTIONS))

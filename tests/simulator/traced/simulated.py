"""The trace that a simulated cluster would have written, had its nodes been real: the same lines by the same
writer's code, on virtual time. Its ZooKeeper's transactions are lines as ``systems/zookeeper`` saves them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import orjson
import pytest

from wrackline.broker.model import effects as fx
from wrackline.broker.model.coordination import Answer, Operation
from wrackline.broker.model.events import Boot
from wrackline.broker.model.types import NodeId
from wrackline.broker.server.trace import OPTIONS, plain
from wrackline.simulator.guided import stage
from wrackline.simulator.invariants.migration import AnyChecker, checker_of
from wrackline.simulator.traced.judged import Judged, judge
from wrackline.simulator.traced.lines import Trace
from wrackline.simulator.traced.undecided import UNDECIDED, UNDECIDED_ON_ZOOKEEPER
from wrackline.simulator.world.world import StepRecord, World, WorldOptions
from wrackline.simulator.zookeeper.ensemble import ZOOKEEPER, Ensemble
from wrackline.simulator.zookeeper.tree import Fired


class Tracing:
    """An observer of the world."""

    def __init__(self, world: World | None = None) -> None:
        """``world``: one that has done nothing yet; needed where it has a ZooKeeper."""
        self.lines: dict[NodeId, list[bytes]] = defaultdict(list)
        self._incarnation: dict[NodeId, str] = {}
        self._seq: dict[NodeId, int] = {}
        if world is not None and world.zookeeper is not None:
            self._follow(world, world.zookeeper)

    def _follow(self, world: World, zookeeper: Ensemble) -> None:
        tree, before, apply = zookeeper.tree, zookeeper.tree.on_change, zookeeper.tree.apply
        asking = 0
        """The session; 0: none, when nodes go with theirs."""

        def applied(session: int, operation: Operation) -> tuple[Answer, list[Fired]]:
            nonlocal asking
            asking = session
            try:
                return apply(session, operation)
            finally:
                asking = 0

        def changed(path: str) -> None:
            before(path)
            self._transaction(world, zookeeper, path, asking)

        tree.on_change = changed
        tree.apply = applied  # type: ignore[method-assign]
        for path in sorted(tree.nodes, key=lambda one: tree.nodes[one].created):
            self._transaction(world, zookeeper, path, 0)

    def _transaction(self, world: World, zookeeper: Ensemble, path: str, session: int) -> None:
        node, zxid = zookeeper.tree.nodes.get(path), zookeeper.tree.zxid
        self._write(
            world.now_ms,
            ZOOKEEPER,
            zxid,
            "zk_write",
            zxid=zxid,
            path=path,
            data=None if node is None else node.data.decode(),
            version=0 if node is None else node.version,
            session=session,
            ephemeral=node is not None and bool(node.owner),
        )

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        if isinstance(step.event, Boot):
            self._incarnation[step.node] = str(step.event.incarnation_id)
            self._seq[step.node] = 0
        for effect in step.effects:
            if isinstance(effect, fx.Trace):
                self._write(step.at_ms, step.node, step.number, effect.kind, **effect.fields)

    def _write(self, at_ms: float, node: NodeId, step: int, kind: str, **fields: object) -> None:
        seq = self._seq[node] = self._seq.get(node, 0) + 1
        line = {
            "time_ns": round(at_ms * 1e6),
            "node": node,
            "step": step,
            "incarnation": self._incarnation.get(node, str(UUID(int=node))),
            "seq": seq,
            "kind": kind,
            **fields,
        }
        self.lines[node].append(orjson.dumps(line, default=plain, option=OPTIONS))

    def traces(self, *, ahead_ns: dict[NodeId, int] | None = None) -> list[Trace]:
        """One of each node that wrote anything."""
        ahead = ahead_ns or {}
        return [
            Trace(f"n{node}/trace.jsonl", lines, ahead.get(node, 0))
            for node, lines in self.lines.items()
            if lines
        ]


class Watched:
    """A world that is watched from its first step on, by its own checker and by what it traces."""

    def __init__(self) -> None:
        self.tracing = Tracing()
        self.world: World | None = None
        self.checker: AnyChecker | None = None

    def make(self, seed: int | str, options: WorldOptions) -> World:
        self.world = world = World(seed, replace(options, boot=False))
        self.tracing = Tracing(world)
        world.observers.append(self.tracing)
        for server in world.servers():
            world.start(server.id)
        return world

    def check(self, world: World) -> AnyChecker:
        self.checker = checker_of(world)
        return self.checker

    def seen(self) -> set[tuple[str, str]]:
        """(invariant, partition) of all that the checker saw broken and a trace can decide."""
        assert self.checker is not None
        assert self.world is not None
        return {
            (one.id, "" if one.tp is None else str(one.tp))
            for one in self.checker.violations
            if one.id not in (UNDECIDED if self.world.zookeeper is None else UNDECIDED_ON_ZOOKEEPER)
        }

    def judged(self) -> Judged:
        assert self.world is not None
        options = self.world.options
        flush, strategy = (
            options.broker.get("flush_mode"),
            options.controller.get("unclean_recovery_strategy"),
        )
        return judge(
            self.tracing.traces(),
            profile=options.profile,
            flush_mode="on-roll" if flush is None else flush.value,
            recovery_strategy="balanced" if strategy is None else strategy.value,
        )


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    made = Watched()
    with monkeypatch.context() as patch:
        patch.setattr(stage, "World", made.make)
        patch.setattr(stage, "checker_of", made.check)
        yield made

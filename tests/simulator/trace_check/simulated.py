"""Simulated clusters whose traces are judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided import stage
from wrackline.simulator.invariants.checker import AnyChecker, checker_of
from wrackline.simulator.output.traces import Traces
from wrackline.simulator.trace_check.coverage import UNDECIDED
from wrackline.simulator.trace_check.lines import Trace
from wrackline.simulator.trace_check.verdicts import Judged, judge
from wrackline.simulator.world.world import World, WorldOptions
from wrackline.zookeeper.simulator.trace_replay import UNDECIDED as UNDECIDED_ON_ZOOKEEPER


class Tracing(Traces):
    """What it has written, as the traces of nodes."""

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

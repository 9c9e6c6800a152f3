"""From the traces of a run to what the invariants say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from wrackline.broker.model.types import FlushMode, NodeId, RecoveryStrategy
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.invariants.checker import Checker
from wrackline.simulator.traced.lines import Step, Trace
from wrackline.simulator.traced.nodes import TracedWorld
from wrackline.simulator.traced.order import Order
from wrackline.simulator.traced.replay import Replay, TracedObserver
from wrackline.simulator.traced.undecided import UNDECIDED
from wrackline.simulator.world.nodes import WorldOptions
from wrackline.simulator.world.world import World


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold in the run."""

    id: str
    name: str
    at_ns: int
    """On the clock that the traces were put on."""
    node: NodeId
    tp: str
    """Empty: of no partition."""
    message: str
    place: str
    """The file and the line of the step after which it does not hold."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the invariants say of a run's traces."""

    checked: tuple[str, ...]
    steps: int
    lines: int
    broken: tuple[Broken, ...]
    """The first of each invariant and partition."""
    unordered: int
    """Steps whose cause is in no trace: they were taken by their time."""
    until_ns: int | None
    """From here on nothing was asked, since a trace lacks lines; None: there was no such time."""
    unread: int
    """Lines that could not be read."""
    blind: tuple[str, ...]
    """What nothing could be said of, from some place on, and why."""


def judge(
    traces: Sequence[Trace],
    *,
    profile: str,
    flush_mode: str,
    recovery_strategy: str,
) -> Judged:
    """Ask every invariant that a trace decides, after each step of the run. ``flush_mode`` and
    ``recovery_strategy`` are those of the brokers' configuration."""
    streams: dict[NodeId, list[Step]] = {}
    for trace in traces:
        for node, steps in trace.steps().items():
            streams.setdefault(node, []).extend(steps)
    strategy = RecoveryStrategy(recovery_strategy)
    world = TracedWorld(
        WorldOptions(profile=profile, controller={"unclean_recovery_strategy": strategy}, boot=False)
    )
    observer = TracedObserver(world, profile)
    asked = [kind.id for kind in INVARIANTS if kind.id not in UNDECIDED]
    checker = Checker(cast(World, world), profile=profile, only=asked, observer=observer)
    replay = Replay(world, observer, streams, FlushMode(flush_mode))
    order = Order(streams)
    broken: list[Broken] = []
    gaps = [trace.gap_ns for trace in traces if trace.gap_ns is not None]
    until_ns = min(gaps, default=None)
    taken = 0
    for step in order:
        if replay.gap or (until_ns is not None and step.at_ns >= until_ns):
            break
        taken += 1
        for record in replay.records(step):
            before = len(checker.violations)
            checker(cast(World, world), record)
            for one in checker.violations[before:]:
                if one.tp not in replay.blind:
                    tp = "" if one.tp is None else str(one.tp)
                    broken.append(Broken(one.id, one.name, step.at_ns, one.node, tp, one.message, step.place))
    return Judged(
        checked=tuple(kind.id for kind in checker.invariants),
        steps=taken,
        lines=sum(len(step.lines) for own in streams.values() for step in own),
        broken=tuple(broken),
        unordered=order.unordered,
        until_ns=until_ns,
        unread=sum(len(trace.broken) for trace in traces),
        blind=(*(f"{tp}: {why}" for tp, why in replay.blind.items()), *([replay.gap] if replay.gap else [])),
    )

"""The verdict of the invariants on the traces of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from wrackline.broker.model.types import FlushMode, NodeId, RecoveryStrategy
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.invariants.checker import AnyChecker, Checker
from wrackline.simulator.trace_check.coverage import PARTLY, UNDECIDED
from wrackline.simulator.trace_check.lacking import Lacking
from wrackline.simulator.trace_check.lines import COMMIT, MIGRATION, Step, Trace
from wrackline.simulator.trace_check.merge import Order
from wrackline.simulator.trace_check.nodes import TracedServer, TracedWorld
from wrackline.simulator.trace_check.replay import Replay, TracedObserver
from wrackline.simulator.world.nodes import WorldOptions
from wrackline.simulator.world.world import World
from wrackline.simulator.world.zookeeper_door import of_zookeeper

ON_ZOOKEEPER = "zk08"
"""How the names of the profiles without a controller begin."""


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
    """The results of the invariants on a run's traces."""

    checked: tuple[str, ...]
    undecided: Mapping[str, str]
    """Which were not asked, and why."""
    partly: Mapping[str, str]
    """What of those that were asked the traces do not decide."""
    steps: int
    lines: int
    broken: tuple[Broken, ...]
    """The first of each invariant and partition."""
    unordered: int
    """Steps whose cause is in no trace: they were taken by their time."""
    until_ns: int | None
    """From here on nothing was asked, since a trace lacks lines, or a controller takes over from ZooKeeper;
    None: there was no such time."""
    unread: int
    """Lines that could not be read."""
    blind: tuple[str, ...]
    """What nothing could be said of, from some place on, and why."""
    source: str = ""
    """What else than traces the steps are from; empty: traces."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The checker that asks, the world of which it asks, and the replay that makes the world of the
    traces."""

    world: TracedWorld
    checker: AnyChecker
    replay: Replay
    checked: tuple[str, ...]
    undecided: Mapping[str, str]
    partly: Mapping[str, str]
    at_the_end: Callable[[], object] = lambda: None
    """Asks what holds only when nothing is under way; called after the last step of a whole run."""


Streams = dict[NodeId, list[Step]]


def judge(
    traces: Sequence[Trace],
    *,
    profile: str,
    flush_mode: str,
    recovery_strategy: str,
    missing: Mapping[NodeId, str] = MappingProxyType({}),
) -> Judged:
    """Asks every invariant that a trace decides, after each step of the run. ``flush_mode`` and
    ``recovery_strategy`` are those of the brokers' configuration. In profile zk08 the transactions of
    ZooKeeper are one of the traces. ``missing``: nodes whose trace is known not to be there, or not to be
    whole, and why."""
    streams: Streams = {}
    for trace in traces:
        for node, steps in trace.steps().items():
            streams.setdefault(node, []).extend(steps)
    flush = FlushMode(flush_mode)
    gaps = [trace.gap_ns for trace in traces if trace.gap_ns is not None]
    if profile.startswith(ON_ZOOKEEPER):
        gaps += _taken_over_ns(streams)
        streams = {node: steps for node, steps in streams.items() if not _controls(steps)}
        asked = of_zookeeper("trace checks")(streams, profile, flush)
    else:
        asked = _with_controller(streams, profile, flush, RecoveryStrategy(recovery_strategy))
    lacking = Lacking(streams, missing)
    for node in lacking.why.keys() - streams.keys():
        asked.world.brokers[node] = TracedServer()
    order, broken, taken = Order(streams), _Broken(asked, lacking), 0
    until_ns = min(gaps, default=None)
    step: Step | None = None
    for step in order:
        if asked.replay.gap or (until_ns is not None and step.at_ns >= until_ns):
            break
        if why := lacking.untold(step):
            asked.replay.gap = why
            break
        lacking.took(step)
        taken += 1
        for record in asked.replay.records(step):
            asked.checker(cast(World, asked.world), record)
            broken.look(step)
    else:
        if step is not None:
            asked.at_the_end()
            broken.look(step)
    blind = asked.replay.blind
    return Judged(
        checked=asked.checked,
        undecided=asked.undecided,
        partly=asked.partly,
        steps=taken,
        lines=sum(len(step.lines) for own in streams.values() for step in own),
        broken=tuple(broken.found),
        unordered=order.unordered,
        until_ns=until_ns,
        unread=sum(len(trace.broken) for trace in traces),
        blind=(
            *(f"{tp}: {why}" for tp, why in blind.items()),
            *(f"{tp or 'what is of no partition'}: {why}" for tp, why in broken.undecided.items()),
            *([asked.replay.gap] if asked.replay.gap else []),
        ),
    )


def _with_controller(streams: Streams, profile: str, flush: FlushMode, strategy: RecoveryStrategy) -> Asked:
    world = TracedWorld(
        WorldOptions(profile=profile, controller={"unclean_recovery_strategy": strategy}, boot=False)
    )
    observer = TracedObserver(world, profile)
    expected = [kind.id for kind in INVARIANTS if kind.id not in UNDECIDED]
    checker = Checker(cast(World, world), profile=profile, only=expected, observer=observer)
    names = tuple(kind.id for kind in checker.invariants)
    return Asked(world, checker, Replay(world, streams, flush), names, UNDECIDED, PARTLY)


def _taken_over_ns(streams: Streams) -> list[int]:
    """When each node has heard that a controller takes over: the invariants of ZooKeeper's time end there."""
    return [step.at_ns for steps in streams.values() for step in steps if MIGRATION in step.kinds]


def _controls(steps: Sequence[Step]) -> bool:
    """The node is a controller, which only watches in that time."""
    return any(COMMIT in step.kinds for step in steps)


class _Broken:
    """The violations that the checker has found since the last look, with the place of the step after
    which it did."""

    def __init__(self, asked: Asked, lacking: Lacking) -> None:
        self._asked, self._lacking = asked, lacking
        self._seen = 0
        self.found: list[Broken] = []
        self.undecided: dict[str, str] = {}
        """Partition -> why what was seen of it decides nothing; empty: of no partition."""

    def look(self, step: Step) -> None:
        violations, blind = self._asked.checker.violations, self._asked.replay.blind
        for one in violations[self._seen :]:
            if one.tp in blind:
                continue
            if why := self._lacking.silent(one.tp):
                self.undecided.setdefault("" if one.tp is None else str(one.tp), why)
            else:
                tp = "" if one.tp is None else str(one.tp)
                self.found.append(Broken(one.id, one.name, step.at_ns, one.node, tp, one.message, step.place))
        self._seen = len(violations)

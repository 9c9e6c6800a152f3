"""The states of a cluster after which a fault tells most, as predicates over its metadata now and a moment
before: the same for every system that answers for its metadata.

Each finds the partition and the nodes that it is about. Beside it stand the faults that bring it about, for
a cluster that is well is in none of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wrackline.systems.base import ClusterState, PartitionState, Place

ROLLING: Final = frozenset({"rolling-restart", "rolling-upgrade"})
"""Faults during which nodes are stopped and started one after another."""

UNCLEAN: Final = frozenset({"kill", "power-cut"})
"""Faults after which a node starts without having been stopped."""

TAKE_BYTES: Final = ("power", "drop-page-cache", "read-only")
"""How the names of faults begin that take bytes from a disk."""


@dataclass(frozen=True, slots=True)
class View:
    """The cluster's metadata, and what of the nemesis's own deeds bears on them."""

    now: ClusterState
    before: ClusterState
    """The look before this one."""
    factors: Mapping[Place, int] = field(default_factory=dict)
    """How many replicas each partition had at the first look."""
    in_force: Collection[str] = ()
    """Names of the faults under way."""
    unclean: Collection[int] = ()
    """Nodes that were killed or lost their power, and were away since."""

    def pairs(self) -> Iterator[tuple[PartitionState, PartitionState]]:
        """Yields each partition now and before."""
        for now in self.now.partitions:
            before = self.before.partition(*now.place)
            if before is not None:
                yield now, before


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A state that a cluster is in. ``nodes``: those that it is about, by id; ``place``: the partition; None
    where it is about a node as such."""

    state: str
    place: Place | None
    nodes: tuple[int, ...]


About = Callable[[View], Iterator[tuple[Place | None, tuple[int, ...]]]]


@dataclass(frozen=True, slots=True)
class State:
    """A row of the table. ``about``: where it is true, and of whom."""

    what: str
    """One line, for a reader."""
    about: About
    brought_by: tuple[Mapping[str, Any], ...]
    """Faults that lead to it, as a specification has them: ``subject`` leads the partition then,
    ``bystanders`` are its other replicas."""
    after: bool = False
    """The state comes when such a fault is over, not while it is in force."""
    weight: int = 1
    """How often it is drawn, while one of weight 1 is drawn once."""
    also: tuple[Mapping[str, Any], ...] = ()
    """Faults that may follow it besides the usual ones."""

    def occurrences(self, name: str, view: View) -> list[Occurrence]:
        return [Occurrence(name, place, nodes) for place, nodes in self.about(view)]


def _alone(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, _ in view.pairs():
        if len(now.isr) == 1 < len(now.replicas):
            yield now.place, now.isr


def _departed(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, before in view.pairs():
        if gone := tuple(one for one in before.isr if one in now.replicas and one not in now.isr):
            yield now.place, gone


def _returning(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, _ in view.pairs():
        there = tuple(one for one in now.replicas if one not in now.isr and one in view.now.brokers)
        if there and now.leader >= 0:
            yield now.place, there


def _rejoined(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, before in view.pairs():
        back = tuple(one for one in now.isr if one in before.replicas and one not in before.isr)
        if back and now.leader not in back:
            yield now.place, back


def _new_leader(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, before in view.pairs():
        if now.leader >= 0 and now.leader != before.leader:
            yield now.place, (now.leader,)


def _same_leader(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, before in view.pairs():
        if now.leader >= 0 and now.leader == before.leader and now.leader_epoch > before.leader_epoch:
            yield now.place, (now.leader,)


def _leaderless(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, _ in view.pairs():
        if now.leader < 0:
            yield now.place, tuple(dict.fromkeys((*now.isr, *now.elr, *now.last_known_elr))) or now.replicas


def _eligible(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, _ in view.pairs():
        if now.elr:
            yield now.place, now.elr


def _moving(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    for now, _ in view.pairs():
        if len(now.replicas) > view.factors.get(now.place, len(now.replicas)):
            yield now.place, tuple(one for one in now.replicas if one not in now.isr) or now.replicas[-1:]


def _rolling(view: View) -> Iterator[tuple[Place, tuple[int, ...]]]:
    if not ROLLING.isdisjoint(view.in_force):
        for now, _ in view.pairs():
            if now.leader >= 0 and not now.full_isr:
                yield now.place, (now.leader,)


def _new_controller(view: View) -> Iterator[tuple[None, tuple[int, ...]]]:
    if view.now.controller >= 0 and view.now.controller != view.before.controller:
        yield None, (view.now.controller,)


def _fenced(view: View) -> Iterator[tuple[None, tuple[int, ...]]]:
    for one in view.before.brokers:
        if one not in view.now.brokers:
            yield None, (one,)


def _registered(view: View) -> Iterator[tuple[None, tuple[int, ...]]]:
    for one in view.now.brokers:
        if one not in view.before.brokers and one in view.unclean:
            yield None, (one,)


_STOP: Final = ({"fault": "kill"}, {"fault": "pause"}, {"fault": "partition", "controllers": False})
"""Faults by which a replica leaves the ISR."""


def _of(target: str, *faults: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple({**fault, "target": target} for fault in faults)


_BACK: Final = (
    *_of("1 of bystanders", *_STOP, {"fault": "power-cut"}),
    *_of("subject", {"fault": "kill"}),
    *_of("bystanders", {"fault": "kill"}, {"fault": "power-cut"}),
)
"""Faults after whose end a replica comes back."""

HELD_BACK: Final[Mapping[str, Any]] = {
    "fault": "messages",
    "target": "leader",
    "apis": ["Fetch"],
    "what": "answer",
    "peers": ["broker"],
}
"""What followers are to copy is kept back: in states in which one asks for it."""

STATES: Final[Mapping[str, State]] = {
    "isr-of-one": State(
        "one replica is alone in the ISR",
        _alone,
        # Killed ones come back with all that they had: then it tells what the one that is alone had lost.
        _of("bystanders", *_STOP, *[{"fault": "kill"}] * 2, {"fault": "power-cut"}),
        weight=6,
    ),
    "left-isr": State("a replica has just left the ISR", _departed, _of("1 of bystanders", *_STOP)),
    "returning": State(
        "a replica is there, and not in the ISR yet",
        _returning,
        _BACK,
        after=True,
        weight=2,
        also=(HELD_BACK,),
    ),
    "rejoined": State(
        "a replica has just come back into the ISR",
        _rejoined,
        _BACK,
        after=True,
        weight=2,
        also=(HELD_BACK,),
    ),
    "new-leader": State(
        "another replica leads",
        _new_leader,
        _of("subject", *_STOP, {"fault": "transfer-leadership"}, {"fault": "power-cut"}),
        weight=3,
        also=(HELD_BACK,),
    ),
    "same-leader": State(
        "the same replica leads in a new epoch", _same_leader, _of("subject", {"fault": "kill"}), after=True
    ),
    "leaderless": State(
        "no replica leads", _leaderless, _of("replicas", {"fault": "kill"}, {"fault": "power-cut"})
    ),
    "eligible": State(
        "a replica outside of the ISR may lead (ELR, KIP-966)",
        _eligible,
        _of("bystanders", {"fault": "kill"}, {"fault": "pause"}),
    ),
    "moving": State(
        "a reassignment is half done", _moving, ({"fault": "reassign", "target": "subject"},), weight=2
    ),
    # A schedule has the rolling restart: one that is drawn, and hit, would often not come to its end.
    "rolling": State("a rolling restart or upgrade is half done", _rolling, ()),
    "new-controller": State(
        "a controller has just been elected",
        _new_controller,
        _of("controller", {"fault": "kill"}, {"fault": "pause"}, {"fault": "partition"}),
    ),
    "fenced": State("a broker is counted among the living no more", _fenced, _of("one", *_STOP)),
    "unclean-start": State(
        "a broker that was killed or lost its power is registered again",
        _registered,
        _of("one", {"fault": "kill"}, {"fault": "power-cut"}),
        after=True,
    ),
}
"""Name -> what it is, where it is true, what leads to it."""

USUAL: Final[tuple[Mapping[str, Any], ...]] = (
    *_of("subject", *[{"fault": "power-cut"}] * 3, *_STOP, {"fault": "kill"}, {"fault": "partition"}),
    *_of("bystanders", {"fault": "power-cut"}, {"fault": "kill"}),
    {"fault": "power-cut", "target": "1 of bystanders"},
    *_of("leader", {"fault": "power-cut"}, *[{"fault": "kill"}] * 2),
    {"fault": "power-cut", "target": "replicas"},
    {"fault": "kill", "target": "controller"},
)
"""Faults that follow where a specification names none: each is the second one, at the worst moment. One that
is there twice is drawn twice as often."""


def occurrences(view: View, names: Collection[str] = tuple(STATES)) -> list[Occurrence]:
    """Returns all that is true of these states now."""
    return [one for name in names for one in STATES[name].occurrences(name, view)]

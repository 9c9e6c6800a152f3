"""The moments of an incident: what happened when, and on which node. The report draws them; the incident's
sentence and the bug report are made of the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from wrackline.checkers.verdict.leadership import Change, left_sets


class Kind(StrEnum):
    """The kind of event at a moment."""

    SEEN = "seen"
    """What is lost was acknowledged, or read, for the last time."""
    VACANT = "vacant"
    """The partition lost its leader."""
    LEFT = "left"
    """Replicas left ISR or ELR while nobody led."""
    LEADER = "leader"
    """A node became leader."""
    CUT = "cut"
    """A replica cut its log."""
    LOST = "lost"
    """A host lost bytes that it had not synced."""
    DAMAGED = "damaged"
    """A fault changed files of a host."""
    UNCLEAN = "unclean"
    """A node registered, and the controller took its last shutdown for unclean."""
    FOLLOWS = "follows"
    """The leader before began to follow the new one."""


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """``at_ns``: from the start of the run. ``node``: empty where it is of none. ``words``: a label of a few
    words."""

    at_ns: int
    node: str
    kind: Kind
    words: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "kind": str(self.kind)}


def moments_of_history(
    name: str, bounds: str, lost_ns: int | None, change: Change | None
) -> tuple[Moment, ...]:
    """Returns the moments that clients and the cluster's own history show, in the order of time. ``name``:
    of the partition. ``bounds``: ``offsets 3,309 to 3,316``. ``lost_ns``: when what is lost was seen last."""
    return tuple(sorted({*_seen(name, bounds, lost_ns), *_of_change(name, change)}))


def _seen(name: str, bounds: str, lost_ns: int | None) -> Iterator[Moment]:
    if lost_ns is not None and bounds:
        yield Moment(lost_ns, "", Kind.SEEN, f"{bounds} of {name} last seen")


def _of_change(name: str, change: Change | None) -> Iterator[Moment]:
    if change is None:
        return
    if change.vacant:
        yield Moment(change.vacant[0].begin_ns, "", Kind.VACANT, f"nobody leads {name}")
    for node, which, at_ns in left_sets(change.vacant):
        yield Moment(at_ns, node, Kind.LEFT, f"{node} left the {which}")
    after = change.after
    if after.leader is not None:
        unclean = ", elected uncleanly" if after.recovering else ""
        yield Moment(change.at_ns, after.leader, Kind.LEADER, f"{after.leader} leads {name}{unclean}")


def merged(known: Iterable[Mapping[str, Any]], more: Iterable[Moment]) -> list[dict[str, Any]]:
    """Moments in their form of ``verdict.json``, with others, in the order of time, each once."""
    result = {(one["at_ns"], one["node"], one["kind"], one["words"]): dict(one) for one in known}
    result |= {(one.at_ns, one.node, str(one.kind), one.words): one.to_json() for one in more}
    return [result[key] for key in sorted(result)]

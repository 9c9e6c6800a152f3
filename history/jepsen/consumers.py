"""Positions of the consumers in a Jepsen history, which no operation of it says: they follow from what
consumers were assigned and given.

=====================================  =======================================================================
a poll that succeeded                  its consumer goes on behind the last record of each partition
a transaction that failed, or whose    its consumer goes back to where it stood before (a ``:poll`` that is no
outcome is unknown                     transaction may have gone on: it is not known; nor of one that named no
                                       records, where its consumer subscribed and so commits after each poll)
``:assign``, ``:subscribe``            partitions that are named again go on where they were; the others are
                                       given up. With ``:seek-to-beginning?`` all begin at 0. One of unknown
                                       outcome may have done this or not: what it would have changed is
                                       unknown
``:rebalance-log``                     the partitions it names go on at a position that is not known
a second process that ``:subscribe``s  from then on, a partition that no ``:rebalance-log`` gave a subscribed
                                       consumer of may be another's between any two of its polls
=====================================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SOMEWHERE = -1
"""A position that is not known: the next poll may begin anywhere."""


OURS = ("asked", "end_ns", "epoch", "generation", "group", "lost", "member", "mode", "transactional_id")
"""What rows of transactions and groups say (history.model) and Jepsen has no word for. In an exported history
an operation has them under the same names, with hyphens; Jepsen ignores them."""


def ours_out(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns our ``extra`` as fields of an operation."""
    return {name.replace("_", "-"): extra[name] for name in OURS if name in extra}


def ours_in(op: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of an operation as our ``extra`` of an event."""
    result = {name: op.get(name.replace("_", "-")) for name in OURS}
    return {name: value for name, value in result.items() if value is not None}


@dataclass
class Consumer:
    """``stands``: partition -> the offset it goes on at, or SOMEWHERE; partitions that were given up are not
    in it."""

    stands: dict[int, int] = field(default_factory=dict)
    subscribed: bool = False
    rebalanced: set[int] = field(default_factory=set)
    """Partitions that a rebalance gave it since it subscribed."""

    def given(self, places: Iterable[tuple[int, int]]) -> None:
        """A poll that succeeded: (partition, offset) of each record."""
        for partition, offset in places:
            self.stands[partition] = offset + 1

    def lose_track(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self.stands[partition] = SOMEWHERE

    def after(
        self, wanted: Iterable[int], *, begin: bool = False, known: Mapping[int, int] | None = None
    ) -> dict[str, Any]:
        """Returns the ``extra`` of an ``assign`` for an assignment of ``wanted``. ``known``: positions that
        an exported history of ours has."""
        positions = {
            partition: 0 if begin else self.stands.get(partition, SOMEWHERE) for partition in sorted(wanted)
        }
        positions = dict(known) if known is not None else positions
        return _extra(positions, sorted(self.stands.keys() - positions.keys()))

    def assign(self, extra: Mapping[str, Any]) -> None:
        """Takes up the result of ``after``."""
        self.stands = {int(partition): start for partition, start in extra["positions"].items()}
        self.subscribed = False

    def maybe_assign(self, extra: Mapping[str, Any]) -> None:
        """Nobody knows whether the assignment took effect: only what it leaves as it was still holds."""
        after = {int(partition): start for partition, start in extra["positions"].items()}
        self.stands = {
            partition: start if after.get(partition) == start else SOMEWHERE
            for partition, start in (after | self.stands).items()
        }

    def subscribe(self, wanted: Iterable[int]) -> list[int]:
        """Returns the partitions that it gives up by that."""
        dropped = sorted(self.stands.keys() - set(wanted))
        for partition in dropped:
            del self.stands[partition]
        self.subscribed, self.rebalanced = True, set()
        return dropped

    def whereabouts(self, dropped: Iterable[int] = ()) -> dict[str, Any]:
        """Returns the consumer's positions as the ``extra`` of an ``assign``."""
        return _extra(dict(sorted(self.stands.items())), list(dropped))


def _extra(positions: Mapping[int, int], dropped: list[int]) -> dict[str, Any]:
    extra: dict[str, Any] = {"positions": {str(partition): start for partition, start in positions.items()}}
    return extra | {"revoked": dropped} if dropped else extra

"""Placement of the replicas of a new topic (docs/protocol.md 2.16, Z03-Z07, conflict C10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wrackline.broker.model.types import NodeId

Racks = Mapping[NodeId, str | None]


class PlacementRules:
    def place(
        self, brokers: Sequence[NodeId], partitions: int, replication_factor: int, first: int = 0
    ) -> tuple[tuple[NodeId, ...], ...]:
        """Replicas of each partition from number ``first`` on, the preferred leader first.

        Partition p leads on broker i = p mod n. Its j-th other replica is shifted by ``1 + (k + j - 1) mod (n
        - 1)`` from there, where k counts the partitions that i leads before p: so the followers of one
        broker's partitions spread over all others, and no shift is a multiple of n. Raises ValueError when
        there are fewer brokers than replicas.
        """
        ring = sorted(brokers)
        n = len(ring)
        if not 1 <= replication_factor <= n:
            raise ValueError(f"{replication_factor} replicas on {n} brokers")
        return tuple(
            tuple(
                ring[(p % n + (1 + (p // n + j - 1) % (n - 1) if j else 0)) % n]
                for j in range(replication_factor)
            )
            for p in range(first, first + partitions)
        )

    def place_striped(
        self, racks: Racks, partitions: int, replication_factor: int, first: int = 0
    ) -> tuple[tuple[NodeId, ...], ...]:
        """The same, striped over racks as KRaft does: partition p starts p racks further on, and its replicas
        take one rack after the other, so that with as many racks as replicas no two share one.

        Inside a rack brokers take turns, leaders and followers each by their own count: one count for both
        would give some brokers nothing but leaders. No rack is a rack of its own, named "". The start is no
        random one, since ``first`` tells where earlier partitions ended.
        """
        if not 1 <= replication_factor <= len(racks):
            raise ValueError(f"{replication_factor} replicas on {len(racks)} brokers")
        members: dict[str, list[NodeId]] = {}
        for broker in sorted(racks):
            members.setdefault(racks[broker] or "", []).append(broker)
        names = sorted(members)
        turns = {(name, leads): int(not leads) for name in names for leads in (True, False)}
        placed = []
        for p in range(first + partitions):
            replicas: list[NodeId] = []
            order = [names[(p + at) % len(names)] for at in range(len(names))]
            for name in _round(order, members, replication_factor):
                kind = name, not replicas
                ring = members[name]
                while ring[turns[kind] % len(ring)] in replicas:
                    turns[kind] += 1
                replicas.append(ring[turns[kind] % len(ring)])
                turns[kind] += 1
            placed.append(tuple(replicas))
        return tuple(placed[first:])


def _round(order: Sequence[str], members: Mapping[str, Sequence[NodeId]], count: int) -> Iterator[str]:
    """Racks in turn, each as often as it has brokers at most, until there are ``count``."""
    turn = 0
    while count > 0:
        for name in order:
            if turn < len(members[name]) and count > 0:
                yield name
                count -= 1
        turn += 1

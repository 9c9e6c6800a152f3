"""Where the replicas of a new topic go (protocol.md 2.16, Z03-Z07, conflict C10)."""

from __future__ import annotations

from collections.abc import Sequence

from broker.core.types import NodeId


class PlacementRules:
    def place(
        self, brokers: Sequence[NodeId], partitions: int, replication_factor: int
    ) -> tuple[tuple[NodeId, ...], ...]:
        """Replicas of each partition, the preferred leader first.

        Partition p leads on broker i = p mod n. Its j-th other replica is shifted by
        ``1 + (k + j - 1) mod (n - 1)`` from there, where k counts the partitions that i leads before p: so the
        followers of one broker's partitions spread over all others, and no shift is a multiple of n.
        Raises ValueError when there are fewer brokers than replicas.
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
            for p in range(partitions)
        )

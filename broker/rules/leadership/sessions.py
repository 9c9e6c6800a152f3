"""Fetch sessions: which epoch is due, and who may push out whom (KIP-227; docs/protocol.md 2.13, K10)."""

from __future__ import annotations

from wrackline.broker.model.values import dataclass

NO_SESSION = 0
INITIAL_EPOCH = 0
"""Asks for everything, and for a session if there is room."""
FINAL_EPOCH = -1
"""Asks for everything, outside any session; ends the one it names."""
_LAST_EPOCH = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session in the cache, or one that asks for a slot (then both ages are 0)."""

    privileged: bool
    """Of a follower: replication comes before consumers."""
    partitions: int
    age_ms: float
    """Since it was made."""
    idle_ms: float
    """Since it was last used."""


class SessionRules:
    def next_epoch(self, epoch: int) -> int:
        """1, 2, ... and from the last one to 1 again: 0 and -1 have meanings of their own."""
        if epoch < INITIAL_EPOCH:
            return FINAL_EPOCH
        return 1 if epoch >= _LAST_EPOCH else epoch + 1

    def may_evict(self, there: SessionFacts, newcomer: SessionFacts, spared_ms: float) -> bool:
        """KIP-227: an idle session goes for anybody. One that is in use goes only when it has been there for
        a while, so that slots do not flap, and only for a follower when it is a consumer's, or for a larger
        one of its own kind."""
        if there.idle_ms > spared_ms:
            return True
        if there.age_ms <= spared_ms:
            return False
        if newcomer.privileged != there.privileged:
            return newcomer.privileged
        return newcomer.partitions > there.partitions

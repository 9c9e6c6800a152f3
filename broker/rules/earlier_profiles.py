"""The rules of former Kafka versions where they differ from KIP-966's (docs/protocol.md 0.2, 1.3, 1.4, 2.11).

``kraft35`` (Kafka 3.5): no ELR, the last member of the ISR stays in it whatever happens ("last
replica standing", K26, K37), and MinISR stops acks=all producers but not the high watermark (conflict C1).

``kip101`` (Kafka 0.11 to 2.6): besides, a fetch says nothing of the epoch of the follower's last record; in
each new leader epoch the follower asks its leader where that epoch ends (KIP-101, with KIP-279's answer). In
those days a leader wrote the ISR to ZooKeeper and waited, holding the lock that the high watermark moves
under; here the request is asynchronous, and the maximal ISR stands in for that lock.

Neither knows KIP-966's unclean recovery, so nobody may choose a strategy of it.

What these versions do not do at all is a switch (``broker/model/switches.py``); here is what they decide
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.broker.model.types import NO_LEADER
from wrackline.broker.rules.leadership.election import Elected, ElectionRules
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.placement.topics import RECOVERY_STRATEGY, TopicRules


class LastReplicaStanding(ElectionRules):
    """Profiles kraft35 and kip101 (docs/protocol.md 2.8.4)."""

    def elect(self, given: ChangeInput) -> Elected:
        """Elects from the ISR or uncleanly. An ISR that would become empty keeps its last member, without a
        leader until that member is back (K37)."""
        elected = super().elect(given)
        if elected.isr:
            return elected
        return Elected(NO_LEADER, given.partition.isr)


class NoRecoveryStrategy(TopicRules):
    """Profiles kraft35, kip101 and zk08: a setting that nothing goes by is refused."""

    def config_error(self, configs: Mapping[str, str | None]) -> str | None:
        return _strategy_error(configs) or super().config_error(configs)

    def cluster_config_error(self, configs: Mapping[str, str | None]) -> str | None:
        return _strategy_error(configs) or super().cluster_config_error(configs)


def _strategy_error(configs: Mapping[str, str | None]) -> str | None:
    if RECOVERY_STRATEGY not in configs:
        return None
    return f"setting {RECOVERY_STRATEGY!r} needs profile kip966: this profile has no unclean recovery"

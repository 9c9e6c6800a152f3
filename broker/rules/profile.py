"""Profiles: which rule of each kind holds (docs/protocol.md 0.2). The core asks, it never knows the profile's
name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from pkgutil import resolve_name

from wrackline.broker.model.metadata.features import NEWEST, WITHOUT_ELR, Levels
from wrackline.broker.model.switches import Switches
from wrackline.broker.model.values import dataclass
from wrackline.broker.rules.earlier_profiles import LastReplicaStanding, NoRecoveryStrategy
from wrackline.broker.rules.leadership.election import ElectionRules
from wrackline.broker.rules.leadership.raft import RaftRules
from wrackline.broker.rules.leadership.rebalance import RebalanceRules
from wrackline.broker.rules.leadership.recovery import RecoveryRules
from wrackline.broker.rules.leadership.registration import RegistrationRules
from wrackline.broker.rules.leadership.sessions import SessionRules
from wrackline.broker.rules.placement.features import FeatureRules
from wrackline.broker.rules.placement.placement import PlacementRules
from wrackline.broker.rules.placement.reassign import ReassignRules
from wrackline.broker.rules.placement.snapshots import SnapshotRules
from wrackline.broker.rules.placement.topics import TopicRules
from wrackline.broker.rules.replication.fetching import FetchRules, MetadataRules
from wrackline.broker.rules.replication.isr import IsrChangeRules, IsrRules
from wrackline.broker.rules.replication.produce import ProduceRules
from wrackline.broker.rules.replication.reads import ReadRules
from wrackline.broker.rules.replication.truncation import TruncationRules
from wrackline.broker.rules.replication.watermark import HighWatermarkRules


@dataclass(frozen=True)
class Rules:
    """One object of each kind of rule; they hold no state."""

    switches: Switches = Switches()
    """What is on or off without a decision."""
    truncation: TruncationRules = field(default_factory=TruncationRules)
    high_watermark: HighWatermarkRules = field(default_factory=HighWatermarkRules)
    isr: IsrRules = field(default_factory=IsrRules)
    produce: ProduceRules = field(default_factory=ProduceRules)
    reads: ReadRules = field(default_factory=ReadRules)
    fetch: FetchRules = field(default_factory=FetchRules)
    metadata: MetadataRules = field(default_factory=MetadataRules)
    sessions: SessionRules = field(default_factory=SessionRules)
    # the controller's
    election: ElectionRules = field(default_factory=ElectionRules)
    recovery: RecoveryRules = field(default_factory=RecoveryRules)
    registration: RegistrationRules = field(default_factory=RegistrationRules)
    isr_change: IsrChangeRules = field(default_factory=IsrChangeRules)
    placement: PlacementRules = field(default_factory=PlacementRules)
    topics: TopicRules = field(default_factory=TopicRules)
    reassign: ReassignRules = field(default_factory=ReassignRules)
    rebalance: RebalanceRules = field(default_factory=RebalanceRules)
    raft: RaftRules = field(default_factory=RaftRules)
    features: FeatureRules = field(default_factory=FeatureRules)
    # everyone's
    snapshots: SnapshotRules = field(default_factory=SnapshotRules)
    levels: Levels = NEWEST
    """Of the metadata that this profile supports."""
    former: Rules | None = None
    """What its controllers do while the metadata has a lower level than the highest that it supports; None:
    there is no such level."""

    def at(self, level: int | None) -> Rules:
        """The controllers' rules while the metadata has this level; None: the profile's own."""
        return self if self.former is None or level is None or level >= self.levels.highest else self.former


def kip966() -> Rules:
    """KIP-966. A cluster whose metadata has yet to get the level with ELR is led as kraft35's is; but its
    brokers hold the high watermark back below MinISR already, or the first ELR would be wrong: a leader may
    hear that the ISR has shrunk before it hears of the level (Kafka does so from 3.7 on, KAFKA-15583)."""
    switches, topics = Switches(has_elr=False), NoRecoveryStrategy()
    return Rules(former=Rules(switches=switches, election=LastReplicaStanding(), topics=topics))


def kraft35() -> Rules:
    """Kafka 3.5 with KRaft: no ELR, the last ISR member stands, MinISR does not gate the high watermark."""
    switches = Switches(has_elr=False, min_isr_gates_high_watermark=False)
    levels = Levels(WITHOUT_ELR, WITHOUT_ELR)
    election, topics = LastReplicaStanding(), NoRecoveryStrategy()
    return Rules(switches=switches, election=election, topics=topics, levels=levels)


def kip101() -> Rules:
    """Kafka 0.11 to 2.6: as kraft35, and followers ask where their epoch ends before they fetch."""
    former = kraft35()
    return replace(former, switches=replace(former.switches, asks_epoch_first=True, fetch_names_epoch=False))


_PROFILES: dict[str, Callable[[], Rules]] = {"kip966": kip966, "kraft35": kraft35, "kip101": kip101}
_OF_ZOOKEEPER = {
    "zk08": "wrackline.zookeeper.rules:zk08",
    "zk08-kip101": "wrackline.zookeeper.rules:zk08_kip101",
}
"""Found by name: nothing here imports what stands on it."""


def profile(name: str) -> Rules:
    """The rules of a profile. Raises ValueError for one we do not have."""
    make = resolve_name(_OF_ZOOKEEPER[name]) if name in _OF_ZOOKEEPER else _PROFILES.get(name)
    if make is None:
        known = ", ".join(sorted((*_PROFILES, *_OF_ZOOKEEPER)))
        raise ValueError(f"no profile {name!r}; there are: {known}")
    rules: Rules = make()
    return rules

"""What a cluster reports of itself, as values that are the same whatever version reported it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Place = tuple[str, int]
"""(topic, partition)"""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as the cluster's metadata has it. Replicas are node ids; -1: no leader."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def full_isr(self) -> bool:
        return set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster's own metadata, as brokers report it over the Kafka protocol."""

    controller: int
    brokers: tuple[int, ...]
    partitions: tuple[PartitionState, ...]
    _by_place: Mapping[Place, PartitionState] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """A cluster may have ten thousand partitions, and each may be asked for."""
        by_place = {(state.topic, state.partition): state for state in self.partitions}
        object.__setattr__(self, "_by_place", by_place)

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        return self._by_place.get((topic, partition))


@dataclass(frozen=True, slots=True)
class TopicSpec:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

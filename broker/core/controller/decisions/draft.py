"""One atomic change of the cluster in the making.

A handler of the controller decides on the speculative image and adds records; each is in the image at once,
so every decision of one event sees those before it (R36). What the draft holds at the end becomes one batch
of the metadata log. Handlers check everything before they add the first record: a draft is never taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid5

from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.metadata.features import Levels
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.records import MetadataRecord
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.profile import Rules


@dataclass(slots=True)
class Draft:
    image: ClusterImage
    config: ControllerConfig
    profile: Rules
    """Of the node, whatever level the metadata has."""
    incarnation_id: UUID
    first_offset: int
    records: list[MetadataRecord] = field(default_factory=list)
    controllers: Mapping[NodeId, Levels] = field(default_factory=dict)
    """The levels that controllers support, of those that have said so."""

    @property
    def rules(self) -> Rules:
        """Returns the rules that hold at the level that the image has now."""
        return self.profile.at(self.image.level)

    @property
    def next_offset(self) -> int:
        return self.first_offset + len(self.records)

    def add(self, record: MetadataRecord) -> None:
        self.image.apply(record, self.next_offset)
        self.records.append(record)

    def new_id(self, name: str) -> UUID:
        """Unique without chance: this uptime of this controller, this offset."""
        return uuid5(self.incarnation_id, f"{name}@{self.next_offset}")

    def active_brokers(self) -> frozenset[NodeId]:
        return frozenset(broker.id for broker in self.image.brokers.values() if broker.active)

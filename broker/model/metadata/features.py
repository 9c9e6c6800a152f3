"""The level of the cluster's metadata, and what a node supports (KIP-584, KIP-778; docs/rolling-upgrades.md).

While a cluster goes from one profile to another, its nodes are not all of one kind. What only works when all
know it therefore waits for a level in the metadata log, the feature ``metadata.version``, which an
administrator raises when every node supports it. The numbers and names are Apache Kafka's.
"""

from __future__ import annotations

from typing import NamedTuple

METADATA_VERSION = "metadata.version"
"""The name of the feature."""
WITHOUT_ELR = 11
"""Kafka 3.5: the ISR has a last member that never leaves it."""
WITH_ELR = 23
"""The first level with ELR and LastKnownELR in the records of partitions (KIP-966)."""
NAMES = {WITHOUT_ELR: "3.5-IV2", WITH_ELR: "4.0-IV1"}


BROKER_PROTOCOL = "inter.broker.protocol.version"
"""What has a level in the ZooKeeper design. In Apache Kafka of that time it is a setting in each broker's
file, changed by a second rolling restart; here it is a node in ZooKeeper."""
WITHOUT_EPOCHS = 8
"""Kafka 0.8."""
WITH_EPOCHS = 11
"""Kafka 0.11: leaders have epochs (KIP-101)."""
WITH_CONTROLLER = 34
"""Kafka 3.4: a controller has taken over what ZooKeeper had (KIP-866), and nobody leads by ZooKeeper."""


class Levels(NamedTuple):
    """The levels that a node supports, both ends with it."""

    lowest: int
    highest: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.lowest <= level <= self.highest

    def __str__(self) -> str:
        return f"{self.lowest} to {self.highest}"


NEWEST = Levels(WITHOUT_ELR, WITH_ELR)
NOT_SAID = Levels(-1, -1)
"""Of a node that did not say which it supports: none, as far as is known."""

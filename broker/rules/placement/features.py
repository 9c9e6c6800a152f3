"""May the level of the cluster's metadata change? (KIP-584, KIP-778; docs/rolling-upgrades.md)

The words of the refusals are those of Kafka's ``FeatureControlManager``.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.broker.model.messages.admin import FeatureUpdate, UpgradeType
from wrackline.broker.model.metadata.features import METADATA_VERSION, NAMES, NOT_SAID, Levels
from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class ClusterLevels:
    """The levels that are known when somebody asks for another level."""

    level: int | None
    """Of the metadata now; None: its log has none, and each node does what its own profile says."""
    brokers: Mapping[NodeId, Levels]
    """Of every registered broker, also of those that are fenced: they come back."""
    controllers: Mapping[NodeId, Levels]
    """Of every voter; ``NOT_SAID`` of one that the active controller has not heard of."""
    remembered: str = ""
    """The first partition that has an ELR or a LastKnownELR, in words; empty: none has."""


class FeatureRules:
    def refusal(self, wanted: FeatureUpdate, now: ClusterLevels) -> str:
        """Returns why the level may not be what is wanted; empty: it may.

        A level that one node does not support would be the end of that node. A lower level than there is has
        no room for ELR and LastKnownELR: where a partition has one, the last complete replicas would be
        forgotten.
        """
        if why := self._not_a_level(wanted) or self._not_supported(wanted.level, now):
            return f"Invalid update version {wanted.level} for feature {wanted.name}. {why}"
        level = now.level
        if level is None:
            return "The metadata log is older than levels are: it cannot be given one."
        if wanted.level > level and wanted.upgrade_type != UpgradeType.UPGRADE:
            return f"Level {wanted.level} is above {level}: that is an upgrade."
        if wanted.level < level:
            return self._downgrade(wanted, now)
        return ""

    def _not_a_level(self, wanted: FeatureUpdate) -> str:
        if wanted.name != METADATA_VERSION:
            return "There is no such feature."
        if wanted.level not in NAMES:
            known = ", ".join(f"{level} ({name})" for level, name in NAMES.items())
            return f"There is no such level; there are: {known}."
        return ""

    def _not_supported(self, level: int, now: ClusterLevels) -> str:
        for kind, nodes in (("Broker", now.brokers), ("Controller", now.controllers)):
            for node, levels in sorted(nodes.items()):
                if levels == NOT_SAID:
                    return f"{kind} {node} has not said which versions it supports."
                if level not in levels:
                    return f"{kind} {node} only supports versions {levels}."
        return ""

    def _downgrade(self, wanted: FeatureUpdate, now: ClusterLevels) -> str:
        if wanted.upgrade_type == UpgradeType.UPGRADE:
            return "Can't downgrade the version of this feature without setting the upgrade type to safe."
        if wanted.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
            return "Unsafe metadata downgrade is not supported in this version."
        if now.remembered:
            return (
                "Refusing to perform the requested downgrade because it might delete metadata information: "
                f"{now.remembered}"
            )
        return ""

    def unknown_level(self, level: int | None, supported: Levels) -> str:
        """Returns why a node that has met this level in the metadata log cannot go on; empty: it can."""
        if level is None or level in supported:
            return ""
        return (
            f"the cluster's {METADATA_VERSION} is {level}, and this node's profile supports {supported}: "
            "start it with a later profile"
        )

    def may_register(self, level: int | None, supported: Levels) -> bool:
        """A broker that does not support the cluster's level would not understand its metadata."""
        return level is None or level in supported

"""An ability that a system may have: it was there before the run, so nobody of ours logs in to its hosts, and
what is done to its brokers is done by commands of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from wrackline.systems.base import Node
from wrackline.systems.external.commands.operations import BrokerCommand, Probed


@runtime_checkable
class ExternalCluster(Protocol):
    """Beside `wrackline.systems.base.System`. Every error is a DeployError."""

    def order(self, node: Node, order: BrokerCommand) -> str:
        """Carry out the user's command for this broker; what came of it. After one that brings it back
        (`wrackline.systems.external.commands.operations.REVIVES`) it is waited until the broker answers."""

    def probe(self, node: Node, order: BrokerCommand) -> Probed:
        """Returns whether the command's effect is in force, as the user's probe says."""

    def remove_topics(self) -> str:
        """Delete those that this run made, if they shall not be kept. What became of them; empty when there
        was none."""

    def remove_groups(self, groups: Sequence[str], *, timeout_s: float) -> str:
        """Delete these groups of the run, and wait so long for those that still have members. What became of
        them; empty when there was none."""

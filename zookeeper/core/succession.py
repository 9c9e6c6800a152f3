"""Has a controller taken over? A broker that cannot hear it from ZooKeeper asks the controller
(docs/rolling-upgrades.md).

The level in ZooKeeper says it first. But ZooKeeper may be gone when a broker comes back that was away when
the level was raised: the controller refuses its registration for as long as ZooKeeper is in charge, and takes
it from then on.
"""

from __future__ import annotations

from wrackline.broker.core.lifecycle import registration
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.uplink import Uplink
from wrackline.broker.model.events import Boot
from wrackline.broker.model.messages.controller import BrokerRegistrationResponse
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.types import NO_EPOCH
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.profile import Rules
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.level import ClusterLevel

_TIMER = "succession"
_EVERY_MS = 500.0


class Succession:
    def __init__(self, ctx: Context, coordination: Coordination, level: ClusterLevel, later: Rules) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._level = level
        self._later = later
        self._uplink = Uplink(ctx)
        self._clean_epoch = NO_EPOCH
        self._lived_as = NO_EPOCH

    @property
    def previous_epoch(self) -> int:
        """Returns the epoch that tells the controller that this life was there when it took over: the
        broker's node in ZooKeeper, as this life last had it, else what the former life has signed its
        clean shutdown with."""
        return self._clean_epoch if self._lived_as == NO_EPOCH else self._lived_as

    def start(self, boot: Boot) -> None:
        self._clean_epoch = boot.previous_broker_epoch
        self._again()

    def registered(self, epoch: int) -> None:
        """Records the epoch of the broker's registration in ZooKeeper."""
        self._lived_as = epoch

    def _again(self) -> None:
        self._ctx.set_timer(_TIMER, self._ctx.now_ms + _EVERY_MS, self._look)

    def _look(self) -> None:
        if self._coordination.session and self._later.switches.fences_zookeeper:
            self._again()
            return
        request = registration(self._ctx, self.previous_epoch, self._later.levels)
        self._uplink.send("controller", request, self._answered)

    def _answered(self, response: Response | None) -> None:
        if isinstance(response, BrokerRegistrationResponse) and response.error is NO_ERROR:
            self._level.hand_over("the controller")
        else:
            self._again()

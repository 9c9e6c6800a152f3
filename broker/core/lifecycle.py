"""A broker's life as the controller sees it: registration, heartbeats, fencing, controlled shutdown.

docs/protocol.md 2.7, K04-K08, R09-R12, C14, C15.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.uplink import Uplink
from wrackline.broker.model.effects import Exit
from wrackline.broker.model.messages.controller import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.metadata.features import Levels
from wrackline.broker.model.types import NO_EPOCH
from wrackline.broker.model.values import NO_ERROR

_REGISTER = "register"
_HEARTBEAT = "heartbeat"
_DEADLINE = "shutdown-deadline"
_FINAL_REFUSALS = {
    ErrorCode.inconsistent_cluster_id: "this broker's cluster id is not the controller's: "
    "set cluster_id to the cluster's, or empty the data directory",
    ErrorCode.unsupported_version: "the controller does not take registrations of this version, or the "
    "cluster's metadata.version is none that this broker's profile supports: start it with a later profile",
}


class State(Enum):
    STARTING = "starting"
    """Not registered yet, or the metadata is not known up to the registration."""
    RECOVERY = "recovery"
    """Knows its roles, waits to be unfenced."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Controlled shutdown: the controller moves leaderships away."""
    CLOSED = "closed"
    """Serves nothing any more."""


def registration(ctx: Context, previous_epoch: int, levels: Levels) -> BrokerRegistrationRequest:
    """Returns the request by which this life of the broker asks a controller for its broker epoch."""
    config = ctx.config
    return BrokerRegistrationRequest(
        broker_id=config.node_id,
        cluster_id=config.cluster_id,
        incarnation_id=ctx.incarnation,
        host=config.host,
        port=config.port,
        rack=config.rack,
        previous_broker_epoch=previous_epoch,
        levels=levels,
        replication_port=config.replication_port,
    )


class Lifecycle:
    """``on_registered`` is called when there is a broker epoch; ``on_close`` when the broker is to stop
    serving and close its logs. Once each."""

    def __init__(
        self,
        ctx: Context,
        uplink: Uplink,
        on_registered: Callable[[], None],
        on_close: Callable[[], None],
    ) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._on_registered = on_registered
        self._on_close = on_close
        self._previous_epoch = NO_EPOCH
        self._beating = False
        self._fenced = True
        self.state = State.STARTING

    @property
    def clean_epoch(self) -> int:
        """Returns the epoch that a clean shutdown may be signed with: this life's epoch, or the last one's
        when it never got one (its logs are still exactly what they were)."""
        return self._ctx.broker_epoch if self._ctx.broker_epoch != NO_EPOCH else self._previous_epoch

    # --- registration (docs/protocol.md 2.7.2) -----------------------------------------------------------

    def boot(self, previous_epoch: int) -> None:
        self._previous_epoch = previous_epoch
        self._register()

    def _register(self) -> None:
        if self.state is State.CLOSED:
            return
        request = registration(self._ctx, self._previous_epoch, self._ctx.rules.levels)
        self._uplink.send("controller", request, self._registered)

    def _registered(self, response: Response | None) -> None:
        if self.state is State.CLOSED:
            return
        if not isinstance(response, BrokerRegistrationResponse) or response.error is not NO_ERROR:
            error = getattr(response, "error", None)
            if error in _FINAL_REFUSALS:
                self._exit(1, _FINAL_REFUSALS[error])
                return
            # 101: the former life's session has not ended yet; it will.
            self._ctx.set_timer(_REGISTER, self._ctx.now_ms + self._uplink.retry_ms, self._register)
            return
        self._ctx.broker_epoch = response.broker_epoch
        self._ctx.trace("register", broker=self._ctx.config.node_id, epoch=response.broker_epoch)
        self._on_registered()
        self._beat()

    # --- heartbeats (docs/protocol.md 2.7.3, 2.7.5) ------------------------------------------------------

    def roles_taken(self) -> None:
        """Metadata is known up to the own registration and acted upon: ask to be unfenced, now."""
        if self.state is State.STARTING:
            self.state = State.RECOVERY
            self._beat()

    def _beat(self) -> None:
        """One heartbeat is under way at most; the next is due an interval after the last answer."""
        if self._beating or self.state is State.CLOSED or self._ctx.broker_epoch == NO_EPOCH:
            return
        self._beating = True
        request = BrokerHeartbeatRequest(
            broker_id=self._ctx.config.node_id,
            broker_epoch=self._ctx.broker_epoch,
            current_metadata_offset=self._ctx.image.metadata_offset,
            want_fence=self._wishes[0],
            want_shut_down=self._wishes[1],
        )
        self._uplink.send("controller", request, lambda response: self._beaten(request, response))

    @property
    def _wishes(self) -> tuple[bool, bool]:
        """(to be fenced, to shut down)"""
        return self.state is State.STARTING, self.state is State.STOPPING

    def _beaten(self, request: BrokerHeartbeatRequest, response: Response | None) -> None:
        self._beating = False
        if self.state is State.CLOSED:
            return
        interval = float(self._ctx.config.heartbeat_interval_ms)
        if isinstance(response, BrokerHeartbeatResponse):
            if response.error is ErrorCode.stale_broker_epoch:
                self._exit(
                    1,
                    f"the controller does not know broker epoch {self._ctx.broker_epoch} of broker "
                    f"{self._ctx.config.node_id} any more: only a restart may register anew (2.7.7)",
                )
                return
            if response.error is NO_ERROR:
                self._learnt(response)
                if response.should_shut_down and self.state is State.STOPPING:
                    self._close("the controller agreed")
                    return
        if getattr(response, "error", None) is not NO_ERROR:
            interval = self._uplink.retry_ms
        if self._wishes != (request.want_fence, request.want_shut_down):
            self._beat()
            return
        if self.state is State.STOPPING or (self.state is State.RECOVERY and self._fenced):
            interval = self._uplink.retry_ms
        self._ctx.set_timer(_HEARTBEAT, self._ctx.now_ms + interval, self._beat)

    def _learnt(self, response: BrokerHeartbeatResponse) -> None:
        if response.is_fenced != self._fenced:
            self._fenced = response.is_fenced
            kind = "fence" if self._fenced else "unfence"
            self._ctx.trace(kind, broker=self._ctx.config.node_id, epoch=self._ctx.broker_epoch)
        if self.state is State.RECOVERY and not self._fenced:
            self.state = State.RUNNING

    # --- the end (docs/protocol.md 2.7.6) ----------------------------------------------------------------

    def stop(self) -> None:
        """Asked to stop: let the controller move leaderships first, but do not wait for ever."""
        if self.state in (State.STOPPING, State.CLOSED):
            return
        self._ctx.trace(
            "shutdown", broker=self._ctx.config.node_id, epoch=self._ctx.broker_epoch, was=self.state.value
        )
        if self._ctx.broker_epoch == NO_EPOCH:
            self._close("never registered")
            return
        self.state = State.STOPPING
        patience = max(5_000, 5 * self._ctx.config.heartbeat_interval_ms)
        self._ctx.set_timer(
            _DEADLINE,
            self._ctx.now_ms + patience,
            lambda: self._close(f"no agreement of the controller within {patience} ms"),
        )
        self._beat()

    def _close(self, why: str) -> None:
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._ctx.trace("stop", how="controlled", reason=why)
        for key in (_REGISTER, _HEARTBEAT, _DEADLINE):
            self._ctx.cancel_timer(key)
        self._on_close()

    def _exit(self, code: int, reason: str) -> None:
        self.state = State.CLOSED
        self._ctx.trace("stop", how="refused", reason=reason)
        self._ctx.out.append(Exit(code, reason))

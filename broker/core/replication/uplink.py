"""Requests to the active controller: which one that is believed to be, and how long to wait for it."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.continuations import OnAnswer
from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import NodeId

_ITEMS = ("topics", "resources")
"""Fields whose members have errors of their own, of responses without one."""


class Uplink:
    """Goes to the next controller when one does not answer or is not in charge."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._at = 0

    @property
    def controller_id(self) -> int:
        return self._ctx.config.controllers[self._at % len(self._ctx.config.controllers)].node_id

    @property
    def timeout_ms(self) -> float:
        """Two heartbeats: a controller that is silent for longer is about to fence us anyway."""
        return max(2 * self._ctx.config.heartbeat_interval_ms, 1_000)

    @property
    def retry_ms(self) -> float:
        """Pause before a request that failed is sent again."""
        return max(20.0, min(self._ctx.config.heartbeat_interval_ms / 10, 200.0))

    def led_by(self, controller: NodeId, asked: NodeId) -> None:
        """``asked`` said, in the course of a fetch, that it does not lead, and who does (-1: nobody it
        knows)."""
        if asked != self.controller_id:
            return
        known = [endpoint.node_id for endpoint in self._ctx.config.controllers]
        self._at = known.index(controller) if controller in known else self._at + 1

    def send(
        self, channel: str, request: Request, on_answer: OnAnswer, timeout_ms: float | None = None
    ) -> None:
        asked = self._at

        def answered(response: Response | None) -> None:
            if (response is None or not_in_charge(response)) and self._at == asked:
                self._at += 1
            on_answer(response)

        self._ctx.send(self.controller_id, channel, request, timeout_ms or self.timeout_ms, answered)


def not_in_charge(response: Response) -> bool:
    """The wire says a refusal per item where the API has no error for the whole."""
    if hasattr(response, "error"):
        return bool(response.error is ErrorCode.not_controller)
    items = [item for name in _ITEMS for item in getattr(response, name, ())]
    return any(item.error is ErrorCode.not_controller for item in items)

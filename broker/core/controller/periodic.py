"""Periodic work of an active controller: a record for an idle log, preferred leaders."""

from __future__ import annotations

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.elections import rebalance
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import CancelTimer, Effect, SetTimer
from wrackline.broker.model.metadata.records import NoOpRecord

NOOP = "noop"
IMBALANCE = "imbalance"
PERIODIC = (NOOP, IMBALANCE)


class Periodic:
    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self._end_at_noop = -1

    def begin(self, now_ms: float) -> list[Effect]:
        self._end_at_noop = -1
        return [effect for key in PERIODIC for effect in self._arm(key, now_ms)]

    def end(self) -> list[Effect]:
        return [CancelTimer(key) for key in PERIODIC]

    def fired(self, key: str, draft: Draft, now_ms: float) -> list[Effect]:
        """One of its timers. What is in the draft then is to be appended."""
        if key == IMBALANCE:
            rebalance(draft)
        else:
            self._noop(draft)
        return self._arm(key, now_ms)

    def _noop(self, draft: Draft) -> None:
        """An idle log gets a record now and then, so that its high watermark is seen to move
        (docs/protocol.md 2.12.8)."""
        if draft.next_offset == self._end_at_noop:
            draft.add(NoOpRecord())
        self._end_at_noop = draft.next_offset

    def _arm(self, key: str, now_ms: float) -> list[Effect]:
        config = self._config
        if key == NOOP:
            interval_ms = config.noop_interval_ms
        else:
            interval_ms = config.leader_imbalance_check_interval_ms if config.auto_leader_rebalance else 0
        return [SetTimer(key, now_ms + interval_ms)] if interval_ms > 0 else []

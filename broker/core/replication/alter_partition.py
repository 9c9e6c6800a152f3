"""The leader's ISR proposals on their way to the controller (docs/protocol.md 2.6, KIP-497).

One request is in flight at a time and carries all proposals that wait. The slot is freed when its answer
arrives and not earlier, whatever metadata says meanwhile (KAFKA-12686, B41).
"""

from __future__ import annotations

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.replica import Changes, Replica
from wrackline.broker.core.replication.uplink import Uplink
from wrackline.broker.model.messages.controller import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.replication.isr import AfterAlter

_TIMER = "alter-partition-retry"


class AlterPartitions:
    def __init__(self, ctx: Context, uplink: Uplink, changes: Changes) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._changes = changes
        self._in_flight: list[tuple[Replica, AlterPartitionItem]] | None = None
        self._waiting = False
        """For the retry timer."""

    def pump(self) -> None:
        """Send what waits, if nothing is on its way."""
        if not self._changes.proposed or self._in_flight is not None or self._waiting:
            return
        proposed = list(self._changes.proposed.values())
        self._changes.proposed.clear()
        self._in_flight = [
            (replica, replica.leader.proposal)
            for replica in proposed
            if replica.leader is not None and replica.leader.proposal is not None
        ]
        if not self._in_flight:
            self._in_flight = None
            return
        request = AlterPartitionRequest(
            self._ctx.config.node_id,
            self._ctx.broker_epoch,
            tuple(item for _, item in self._in_flight),
        )
        self._uplink.send("controller-alter", request, self._answered)

    def _answered(self, response: Response | None) -> None:
        sent = self._in_flight or []
        overtaken = any(_is_overtaken(replica, item) for replica, item in sent)
        if not overtaken or self._ctx.rules.switches.overtaken_answer_frees_slot:
            self._in_flight = None
        if not isinstance(response, AlterPartitionResponse) or response.error is not NO_ERROR:
            self._again(sent)
            return
        results = {(result.topic_id, result.tp.partition): result for result in response.partitions}
        undecided = []
        for replica, item in sent:
            result = results.get((item.topic_id, item.tp.partition))
            if result is None or self._is_open(result):
                undecided.append((replica, item))
            elif replica.leader is not None:
                leader.answered(replica, item, result)
        self._again(undecided)

    def _is_open(self, result: AlterPartitionResult) -> bool:
        refused = result.error is not NO_ERROR
        return refused and self._ctx.rules.isr.after_refusal(result.error) is AfterAlter.RETRY

    def _again(self, undecided: list[tuple[Replica, AlterPartitionItem]]) -> None:
        """Proposes again, after a pause, what is still the leader's proposal."""
        for replica, item in undecided:
            if replica.leader is not None and replica.leader.proposal is item:
                self._changes.proposed[replica.tp] = replica
        if undecided:
            self._waiting = True
            self._ctx.set_timer(_TIMER, self._ctx.now_ms + self._uplink.retry_ms, self._resume)

    def _resume(self) -> None:
        self._waiting = False


def _is_overtaken(replica: Replica, item: AlterPartitionItem) -> bool:
    """Settled, by metadata, before its answer came."""
    return replica.leader is None or replica.leader.proposal is not item

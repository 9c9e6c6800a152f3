"""Followers of the profiles before the fetch request carried an epoch: ask first, fetch then (KIP-101,
KIP-279).

In a new leader epoch a follower asks its leader where the last epoch of its own log ends there, cuts, asks
again while the leader knew nothing of that epoch, and only then fetches (docs/protocol.md 2.11, H14, H15).
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.continuations import OnFire
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.following import Following
from wrackline.broker.model.messages.requests import (
    EpochEndOffset,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
    Response,
)
from wrackline.broker.model.types import NO_EPOCH, NodeId
from wrackline.broker.rules.replication.epoch_end import end_of_epoch


class EpochProbe:
    def __init__(self, ctx: Context, destination: NodeId) -> None:
        self._ctx = ctx
        self._destination = destination

    def ask(self, following: Following, done: OnFire) -> None:
        """``done`` is called when the partition may fetch. An empty log has nothing to ask about."""
        replica = following.replica
        asked, epoch = replica.log.epochs.latest, replica.leader_epoch
        if asked == NO_EPOCH:
            following.probing = False
            done()
            return
        following.probing = True
        part = OffsetForLeaderEpochPartition(replica.tp, asked, epoch)
        request = OffsetForLeaderEpochRequest((part,), replica_id=self._ctx.config.node_id)

        def answered(response: Response | None) -> None:
            if replica.leader_id == self._destination and replica.leader_epoch == epoch:
                self._answered(following, _only(response), done)

        timeout = self._ctx.config.request_timeout_ms
        self._ctx.send(self._destination, "fetcher-epochs", request, timeout, answered)

    def _answered(
        self, following: Following, result: OffsetForLeaderEpochResult | None, done: OnFire
    ) -> None:
        if result is None or result.error is not ErrorCode.none:
            self._again_later(following, ErrorCode.none if result is None else result.error, done)
            return
        replica, log = following.replica, following.replica.log
        if result.leader_epoch == NO_EPOCH:
            # The leader's log knows nothing of ours; its range does (B38).
            following.probing = False
            done()
            return
        theirs = EpochEndOffset(result.leader_epoch, result.end_offset)
        own = end_of_epoch(log.epochs, theirs.epoch, log.leo)
        cut = self._ctx.rules.truncation.on_answer(own, theirs, log.leo)
        replica.truncate(max(cut.to_offset, log.log_start), f"the leader's epoch {theirs.epoch} ends there")
        if cut.ask_again:
            self.ask(following, done)
            return
        following.probing = False
        done()

    def _again_later(self, following: Following, error: ErrorCode, done: OnFire) -> None:
        following.pause(error)
        replica = following.replica
        key, epoch = f"epoch-probe:{replica.tp}", replica.leader_epoch

        def again() -> None:
            if replica.leader_id == self._destination and replica.leader_epoch == epoch:
                self.ask(following, done)

        self._ctx.set_timer(key, following.paused_until, again)


def _only(response: Response | None) -> OffsetForLeaderEpochResult | None:
    if not isinstance(response, OffsetForLeaderEpochResponse):
        return None
    return next(iter(response.partitions), None)

"""A follower told OFFSET_OUT_OF_RANGE asks for its leader's range before it cuts anything
(docs/protocol.md 2.11)."""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from wrackline.broker.core.continuations import OnFire
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.following import Following
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Response,
)
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.replication.truncation import LeaderRange, OutOfRange

_OnOffset = Callable[[int | None], None]


class RangeProbe:
    def __init__(self, ctx: Context, destination: NodeId) -> None:
        self._ctx = ctx
        self._destination = destination

    def ask(self, following: Following, done: OnFire) -> None:
        """Latest, then earliest; ``done`` is called when the partition may fetch again."""
        following.probing = True

        def latest(end: int | None) -> None:
            if end is None:
                self._finish(following, None, done)
            else:
                self._offset(following, EARLIEST, lambda start: earliest(start, end))

        def earliest(start: int | None, end: int) -> None:
            self._finish(following, None if start is None else LeaderRange(start, end), done)

        self._offset(following, LATEST, latest)

    def _offset(self, following: Following, timestamp: int, answer: _OnOffset) -> None:
        replica = following.replica
        epoch = replica.leader_epoch
        request = ListOffsetsRequest(
            (ListOffsetsPartition(replica.tp, timestamp, epoch),), replica_id=self._ctx.config.node_id
        )

        def answered(response: Response | None) -> None:
            offset = None
            if isinstance(response, ListOffsetsResponse) and replica.leader_epoch == epoch:
                for result in response.partitions:
                    if result.tp == replica.tp and result.error is ErrorCode.none:
                        offset = result.offset
            answer(offset)

        timeout = self._ctx.config.request_timeout_ms
        self._ctx.send(self._destination, "fetcher-offsets", request, timeout, answered)

    def _finish(self, following: Following, leader: LeaderRange | None, done: OnFire) -> None:
        following.probing = False
        replica = following.replica
        stale = replica.leader_id != self._destination
        if leader is None or stale:
            following.pause(ErrorCode.offset_out_of_range)
            done()
            return
        match self._ctx.rules.truncation.on_out_of_range(replica.log.leo, leader):
            case OutOfRange.TRUNCATE_TO_LEADER_END:
                replica.truncate(leader.end, "out of range: past the leader's end")
            case OutOfRange.RESTART_AT_LEADER_START:
                replica.restart_at(leader.start)
            case OutOfRange.RETRY:
                following.pause(ErrorCode.offset_out_of_range)
        done()

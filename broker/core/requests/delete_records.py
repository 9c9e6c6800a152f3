"""DeleteRecords at the leader: the log start moves, on every replica, and then the client is told (KIP-107).

The leader moves its own log start at once; followers learn it from its fetch answers and tell their own with
the next fetch. The answer waits until the replicas that are alive have followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.purgatory import Deadlines
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import (
    UP_TO_HIGH_WATERMARK,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResult,
)
from wrackline.broker.model.types import TopicPartition


@dataclass(slots=True)
class _Waiting:
    request_id: int
    results: dict[TopicPartition, DeleteRecordsResult]
    until: dict[TopicPartition, int] = field(default_factory=dict)
    """Not there yet: the log start that is waited for."""


class DeleteRecordsHandler:
    def __init__(self, ctx: Context, partitions: Partitions) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._waiting: dict[int, _Waiting] = {}
        self.deadlines = Deadlines(ctx, "delete-records-deadlines", self._expire)

    def handle(self, request_id: int, request: DeleteRecordsRequest) -> None:
        waiting = _Waiting(request_id, {})
        for tp, offset in request.partitions:
            error, target = self._delete(tp, offset)
            waiting.results[tp] = DeleteRecordsResult(tp, error=error)
            if error is ErrorCode.none:
                waiting.until[tp] = target
        self._waiting[request_id] = waiting
        self.deadlines.add(request_id, self._ctx.now_ms + request.timeout_ms)
        self._look(waiting)

    def _delete(self, tp: TopicPartition, offset: int) -> tuple[ErrorCode, int]:
        """The error, and the log start that is wanted."""
        replica = self._partitions.get(tp)
        if self._ctx.image.partition(tp) is None:
            return ErrorCode.unknown_topic_or_partition, -1
        if replica is None or replica.leader is None:
            storage = replica is not None and replica.failed
            return ErrorCode.kafka_storage_error if storage else ErrorCode.not_leader_or_follower, -1
        target = replica.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
        if not 0 <= target <= replica.high_watermark:
            return ErrorCode.offset_out_of_range, -1
        replica.move_log_start(target)
        return ErrorCode.none, target

    def look(self) -> None:
        """Looks again after a change: a follower's log start, who leads, who is alive."""
        for waiting in list(self._waiting.values()):
            self._look(waiting)

    def _look(self, waiting: _Waiting) -> None:
        for tp, target in list(waiting.until.items()):
            replica = self._partitions.get(tp)
            if replica is None or replica.leader is None:
                failed = replica is not None and replica.failed
                error = ErrorCode.kafka_storage_error if failed else ErrorCode.not_leader_or_follower
                waiting.results[tp] = DeleteRecordsResult(tp, error=error)
                del waiting.until[tp]
                continue
            low = self._low_watermark(replica)
            if low >= target:
                waiting.results[tp] = DeleteRecordsResult(tp, low)
                del waiting.until[tp]
        if not waiting.until:
            self._answer(waiting)

    def _low_watermark(self, replica: Replica) -> int:
        followers = replica.leading.followers.items()
        alive = [state.log_start for other, state in followers if self._ctx.is_active(other)]
        return min([replica.log.log_start, *alive])

    def _expire(self, request_id: int) -> None:
        waiting = self._waiting[request_id]
        for tp in waiting.until:
            waiting.results[tp] = DeleteRecordsResult(tp, error=ErrorCode.request_timed_out)
        self._answer(waiting)

    def _answer(self, waiting: _Waiting) -> None:
        self.cancel(waiting.request_id)
        self._ctx.reply(waiting.request_id, DeleteRecordsResponse(tuple(waiting.results.values())))

    def cancel(self, request_id: int) -> None:
        self._waiting.pop(request_id, None)
        self.deadlines.drop(request_id)

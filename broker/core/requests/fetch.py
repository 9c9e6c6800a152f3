"""Fetch requests at the leader, of followers and of consumers (docs/protocol.md 2.2)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.purgatory import FetchPurgatory
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.core.requests.fetch_sessions import FetchSessions
from wrackline.broker.model.messages.requests import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
)
from wrackline.broker.model.types import LogSlice, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.replication.epoch_end import end_of_epoch


class FetchHandler:
    def __init__(self, ctx: Context, partitions: Partitions) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self.sessions = FetchSessions(ctx)
        self.purgatory = FetchPurgatory(ctx, self._answer, self._readable_of)

    def handle(self, request_id: int, request: FetchRequest) -> None:
        opened = self.sessions.open(request)
        if isinstance(opened, ErrorCode):
            self._ctx.reply(request_id, FetchResponse((), opened))
            return
        request = opened.at_most(self._ctx.config.fetch_max_bytes)
        faults = [self._arrived(request, part) for part in request.partitions]
        if request.max_wait_ms <= 0 or any(faults) or not request.partitions:
            self._answer(request_id, request)
            return
        readable = {part.tp: self._readable(request, part) for part in request.partitions}
        if sum(readable.values()) >= request.min_bytes:
            self._answer(request_id, request)
            return
        waited_for = [self._leading(part.tp) for part in request.partitions]
        self.purgatory.park(request_id, request, readable, waited_for)

    def _leading(self, tp: TopicPartition) -> Replica:
        replica = self._partitions.get(tp)
        if replica is None:
            raise RuntimeError(f"{tp} was checked and is not here")
        return replica

    def _arrived(self, request: FetchRequest, part: FetchPartition) -> bool:
        """First sight of one partition of a request. True when it calls for an answer at once.

        A follower's state is taken from the request before anything is read for it, so that the answer
        carries the high watermark its own progress made (H06, H11).
        """
        fault = self._fault(request, part)
        if fault is not None:
            self._trace_fault(request, part, fault)
            return True
        if request.replica_id >= 0:
            replica = self._leading(part.tp)
            leader.fetched(replica, request.replica_id, part.fetch_offset, request.broker_epoch)
            leader.log_start_of(replica, request.replica_id, part.log_start)
        return False

    def _trace_fault(self, request: FetchRequest, part: FetchPartition, fault: FetchResult) -> None:
        """A follower's fetch that changes nothing here; those that do are traced by the leader."""
        if request.replica_id >= 0:
            self._ctx.trace(
                "fetch_rx",
                tp=str(part.tp),
                id=request.replica_id,
                offset=part.fetch_offset,
                last_epoch=part.last_fetched_epoch,
                error=fault.error.name,
                diverging=fault.diverging and _pair(fault.diverging),
            )

    # --- checks (docs/protocol.md 2.2.2 to 2.2.5) --------------------------------------------------------

    def _fault(self, request: FetchRequest, part: FetchPartition) -> FetchResult | None:
        """An error or a divergence; None when records may be read."""
        replica = self._partitions.get(part.tp)
        topic_id = part.topic_id
        if replica is None or (
            topic_id is not None and topic_id is not replica.topic_id and topic_id != replica.topic_id
        ):
            return self._elsewhere(part)
        if replica.failed:
            return _error(part, ErrorCode.kafka_storage_error)
        if replica.leader is None or (request.replica_id < 0 and not replica.leader.open):
            return self._elsewhere(part)
        rules = self._ctx.rules.reads
        error = rules.epoch_check(part.current_leader_epoch, replica.leader_epoch)
        if error is NO_ERROR and request.replica_id >= 0:
            error = rules.follower_check(
                request.replica_id,
                replica.leading.followers,
                part.current_leader_epoch,
                request.broker_epoch,
                self._ctx.registered_epoch(request.replica_id),
            )
        if error is not NO_ERROR:
            return FetchResult(
                part.tp, error, current_leader=self._ctx.leader_of(part.tp), topic_id=part.topic_id
            )
        return self._log_fault(replica, part)

    def _log_fault(self, replica: Replica, part: FetchPartition) -> FetchResult | None:
        log = replica.log
        if part.last_fetched_epoch >= 0:
            end = end_of_epoch(log.epochs, part.last_fetched_epoch, log.leo)
            if end is None or part.fetch_offset < log.log_start:
                return self._out_of_range(replica, part)
            rules = self._ctx.rules.truncation
            diverging = rules.diverges(part.last_fetched_epoch, part.fetch_offset, end)
            if diverging is not None:
                return FetchResult(
                    part.tp,
                    high_watermark=replica.high_watermark,
                    last_stable_offset=replica.high_watermark,
                    log_start=log.log_start,
                    diverging=diverging,
                    topic_id=part.topic_id,
                )
        error = self._ctx.rules.reads.range_check(part.fetch_offset, log.log_start, log.leo)
        return None if error is NO_ERROR else self._out_of_range(replica, part)

    def _out_of_range(self, replica: Replica, part: FetchPartition) -> FetchResult:
        return FetchResult(
            part.tp,
            ErrorCode.offset_out_of_range,
            high_watermark=replica.high_watermark,
            log_start=replica.log.log_start,
            topic_id=part.topic_id,
        )

    def _elsewhere(self, part: FetchPartition) -> FetchResult:
        error, leader = self._ctx.refuse_leadership(part.tp, part.topic_id)
        return FetchResult(part.tp, error, current_leader=leader, topic_id=part.topic_id)

    # --- reading -------------------------------------------------------------------------------------------

    def _end(self, request: FetchRequest, replica: Replica) -> int:
        return self._ctx.rules.reads.readable_end(
            request.replica_id >= 0, replica.high_watermark, replica.log.leo
        )

    def _readable(self, request: FetchRequest, part: FetchPartition) -> int:
        """Bytes there are for a partition that has no fault, at most what is asked for."""
        replica = self._leading(part.tp)
        there = replica.log.bytes_between(part.fetch_offset, self._end(request, replica))
        return min(there, part.max_bytes)

    def _readable_of(self, request: FetchRequest, tp: TopicPartition) -> int | None:
        for part in request.partitions:
            if part.tp == tp:
                return None if self._fault(request, part) else self._readable(request, part)
        return None

    def _answer(self, request_id: int, request: FetchRequest) -> None:
        """Slices for the shell to read, within the request's byte limit; the first has at least one batch."""
        left = request.max_bytes
        first = True
        results = []
        for part in request.partitions:
            result = self._fault(request, part)
            if result is None:
                result, used = self._slice(request, part, left, first)
                left -= used
                first = first and used == 0
            results.append(result)
        self._ctx.reply(request_id, self.sessions.close(request, tuple(results)))

    def _slice(
        self, request: FetchRequest, part: FetchPartition, left: int, first: bool
    ) -> tuple[FetchResult, int]:
        """The result, and how many bytes it will have (at least roughly)."""
        replica = self._leading(part.tp)
        end = self._end(request, replica)
        records: LogSlice | bytes = b""
        used = 0
        if part.fetch_offset < end and (left > 0 or first):
            limit = min(part.max_bytes, max(left, 0))
            used = max(1, min(replica.log.bytes_between(part.fetch_offset, end), limit))
            records = LogSlice(part.tp, part.fetch_offset, end, limit, at_least_one=first)
        return (
            FetchResult(
                part.tp,
                high_watermark=replica.high_watermark,
                last_stable_offset=replica.high_watermark,
                log_start=replica.log.log_start,
                records=records,
                topic_id=part.topic_id,
            ),
            used,
        )


def _pair(end: EpochEndOffset) -> tuple[int, int]:
    return end.epoch, end.end_offset


def _error(part: FetchPartition, error: ErrorCode) -> FetchResult:
    return FetchResult(part.tp, error, topic_id=part.topic_id)

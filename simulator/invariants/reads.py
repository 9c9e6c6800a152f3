"""What a broker answers to those who read, looked at as a run goes.

``read``  each answer to Fetch, ListOffsets and OffsetForLeaderEpoch is what its broker's state calls for;
          who asks a broker that does not lead, a leader of another epoch, outside of the log or after another
          history is refused, and nobody else (docs/protocol.md 2.2, 2.3, 2.4, 2.13)
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.effects import Reply
from wrackline.broker.model.events import RequestCancelled, RequestReceived
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from wrackline.broker.model.types import NO_EPOCH, LogSlice, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.simulator.invariants.watchers import Scope, Watcher
from wrackline.simulator.world.world import StepRecord, World

_Key = tuple[UUID | str, int]
_Parts = dict[_Key, FetchPartition]
_Fault = tuple[ErrorCode, EpochEndOffset | None]
_GOOD: _Fault = (NO_ERROR, None)


class Reads(Watcher):
    """Looks at the steps of brokers under a controller."""

    scope = Scope.READS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._fetches: dict[int, tuple[FetchRequest, _Parts]] = {}
        """Request id -> the fetch, which has no answer yet, with all partitions of its session."""
        self._sessions: dict[tuple[NodeId, int, int], tuple[_Parts, int]] = {}
        """(broker, its life, id) -> what is asked for in a session, and the epoch of its next request."""

    def __call__(self, world: World, step: StepRecord) -> None:
        event = step.event
        kind = type(event)
        server = world.brokers[step.node]
        core = server.core
        request: Any = None
        if kind is RequestReceived:
            request = event.request  # type: ignore[union-attr]
            if type(request) is FetchRequest:
                self._fetches[event.request_id] = (  # type: ignore[union-attr]
                    request,
                    self._parts_of(step.node, server.incarnation, request),
                )
        elif kind is RequestCancelled:
            self._fetches.pop(event.request_id, None)  # type: ignore[union-attr]
        if step.cut or not isinstance(core, Broker):
            return
        for effect in step.effects:
            if type(effect) is not Reply:
                continue
            response = effect.response
            if type(response) is FetchResponse:
                fetch = self._fetches.pop(effect.request_id, None)
                if fetch is not None and response.error is NO_ERROR:
                    self._look_at_fetch(step, core, server.incarnation, *fetch, response)
            elif type(response) is ListOffsetsResponse:
                self._look_at_offsets(step, core, request, response)
            elif type(response) is OffsetForLeaderEpochResponse:
                self._look_at_epochs(step, core, request, response)

    # --- fetches -------------------------------------------------------------------------------------------

    def _parts_of(self, node: NodeId, life: int, request: FetchRequest) -> _Parts:
        """The partitions of a request that has come in, with those of its session."""
        if request.session_epoch <= 0:
            return {_key(part): part for part in request.partitions}
        session = node, life, request.session_id
        parts, epoch = self._sessions.get(session, ({}, 0))
        if epoch != request.session_epoch:
            return {}
        if request.partitions or request.forgotten:
            parts = parts | {_key(part): part for part in request.partitions}
            for tp, topic_id in request.forgotten:
                parts.pop((topic_id or tp.topic, tp.partition), None)
        self._sessions[session] = parts, epoch + 1
        return parts

    def _look_at_fetch(
        self, step: StepRecord, core: Broker, life: int, request: FetchRequest, parts: _Parts,
        response: FetchResponse,
    ) -> None:  # fmt: skip
        results = {_key(result): result for result in response.partitions}
        full = request.session_epoch <= 0
        if full and response.session_id:
            self._sessions[step.node, life, response.session_id] = parts, 1
        if len(results) < len(response.partitions) or not results.keys() <= parts.keys():
            self._find(step, f"a fetch of {[*parts]} is answered for {[*results]}")
        most: tuple[int, FetchPartition | None] = 0, None
        for key, part in parts.items():
            result, replica = results.get(key), _replica(core, part)
            right = _fault(core, replica, request, part)
            if result is None:
                if full or right != _GOOD:
                    self._find(step, f"{request} has no result for {part.tp}, which owes {right}")
                continue
            if (result.error, result.diverging) != right:
                self._find(step, f"{part} of {request.replica_id} is answered {result}, not {right}")
            elif right == _GOOD and replica is not None:
                most = max(
                    most, self._look_at_result(step, replica, request, part, result), key=lambda one: one[0]
                )
        if most[0] > 0 and not any(result.records for result in response.partitions):
            self._find(step, f"{most[1]} has {most[0]} records, and is answered without any")

    def _look_at_result(
        self, step: StepRecord, replica: Replica, request: FetchRequest, part: FetchPartition,
        result: FetchResult,
    ) -> tuple[int, FetchPartition]:  # fmt: skip
        """Returns how many records could be had."""
        until = replica.log.leo if request.replica_id >= 0 else replica.high_watermark
        bounds = result.high_watermark, result.last_stable_offset, result.log_start
        right = replica.high_watermark, replica.high_watermark, replica.log.log_start
        if bounds != right:
            self._find(step, f"{part} is told high watermark, stable end, log start {bounds}, not {right}")
        records = result.records
        ends = part.fetch_offset, until
        if isinstance(records, LogSlice) and (records.start_offset, records.end_offset) != ends:
            self._find(step, f"{part} is answered with {records}, of {until}")
        return until - part.fetch_offset, part

    # --- ends of logs and of epochs ------------------------------------------------------------------------

    def _look_at_offsets(
        self, step: StepRecord, core: Broker, request: ListOffsetsRequest, response: ListOffsetsResponse
    ) -> None:
        for part, result in zip(request.partitions, response.partitions, strict=True):
            replica = core.replica(part.tp)
            error = _refusal(core, replica, part.tp, part.current_leader_epoch)
            offset = -1
            if error is NO_ERROR and replica is not None:
                consumer, log = request.replica_id < 0, replica.log
                end = replica.high_watermark if consumer else log.leo
                if part.timestamp == EARLIEST:
                    offset = log.log_start
                elif consumer and replica.high_watermark < replica.leading.leso:
                    new = request.knows_offset_not_available
                    error = ErrorCode.offset_not_available if new else ErrorCode.leader_not_available
                elif part.timestamp == LATEST:
                    offset = end
                elif result.lookup is None or result.lookup.end_offset != end:
                    self._find(step, f"{part} is looked up by {result.lookup}, up to {end}")
            if (result.tp, result.error, result.offset) != (part.tp, error, offset):
                self._find(step, f"{part} of {request.replica_id} is answered {result}, not {error} {offset}")
            elif offset >= 0 and replica is not None:
                epoch = max(
                    (e.epoch for e in replica.log.epochs.entries if e.start_offset <= offset), default=-1
                )
                if result.leader_epoch != epoch:
                    self._find(step, f"{part} is told epoch {result.leader_epoch} at {offset}, not {epoch}")

    def _look_at_epochs(
        self, step: StepRecord, core: Broker, request: OffsetForLeaderEpochRequest,
        response: OffsetForLeaderEpochResponse,
    ) -> None:  # fmt: skip
        for part, result in zip(request.partitions, response.partitions, strict=True):
            replica = core.replica(part.tp)
            error = _refusal(core, replica, part.tp, part.current_leader_epoch)
            end = None
            if error is NO_ERROR and replica is not None:
                end = _end_of(replica, part.leader_epoch)
            epoch, offset = (-1, -1) if end is None else (end.epoch, end.end_offset)
            right = part.tp, error, epoch, offset
            if (result.tp, result.error, result.leader_epoch, result.end_offset) != right:
                self._find(step, f"{part} is answered {result}, not {right}")

    def _find(self, step: StepRecord, text: str) -> None:
        self.find(step, "read", f"at broker {step.node}: {text}")


def _key(part: FetchPartition | FetchResult) -> _Key:
    return (part.topic_id or part.tp.topic, part.tp.partition)


def _replica(core: Broker, part: FetchPartition) -> Replica | None:
    """The replica that is asked for; a topic id that meant nothing here at first has its name by now."""
    tp, topic_id = part.tp, part.topic_id
    if topic_id is None or tp.topic:
        return core.replica(tp)
    topic = core.image.topics_by_id.get(topic_id)
    return None if topic is None else core.replica(TopicPartition(topic.name, tp.partition))


def _fault(core: Broker, replica: Replica | None, request: FetchRequest, part: FetchPartition) -> _Fault:
    """What a fetch of one partition is refused with, if it is."""
    topic_id = part.topic_id
    if topic_id is not None and (replica is None or replica.topic_id != topic_id):
        if topic_id not in core.image.topics_by_id:
            return ErrorCode.unknown_topic_id, None
        replica = None
    error = _refusal(core, replica, part.tp, part.current_leader_epoch, request.replica_id)
    if error is not NO_ERROR or replica is None:
        return error, None
    if request.replica_id >= 0 and 0 <= request.broker_epoch < _registered(core, request.replica_id):
        return ErrorCode.not_leader_or_follower, None
    log, offset, last = replica.log, part.fetch_offset, part.last_fetched_epoch
    if not log.log_start <= offset:
        return ErrorCode.offset_out_of_range, None
    if last >= 0:
        end = _end_of(replica, last)
        if end is None:
            return ErrorCode.offset_out_of_range, None
        if end.epoch != last or end.end_offset < offset:
            return NO_ERROR, end
    return (NO_ERROR if offset <= log.leo else ErrorCode.offset_out_of_range), None


def _registered(core: Broker, node: NodeId) -> int:
    broker = core.image.brokers.get(node)
    return NO_EPOCH if broker is None else broker.epoch


def _refusal(
    core: Broker, replica: Replica | None, tp: TopicPartition, epoch: int, follower: NodeId = -1
) -> ErrorCode:
    """Why this broker does not read for who names this epoch. ``follower``: -1 for who is none."""
    if replica is None:
        exists = core.image.partition(tp) is not None
        return ErrorCode.not_leader_or_follower if exists else ErrorCode.unknown_topic_or_partition
    if replica.failed:
        return ErrorCode.kafka_storage_error
    if replica.leader is None:
        return ErrorCode.not_leader_or_follower
    if epoch != NO_EPOCH and epoch != replica.leader_epoch:
        later = epoch > replica.leader_epoch
        return ErrorCode.unknown_leader_epoch if later else ErrorCode.fenced_leader_epoch
    if follower >= 0 and follower not in replica.leader.followers:
        return ErrorCode.not_leader_or_follower if epoch == NO_EPOCH else ErrorCode.unknown_leader_epoch
    return NO_ERROR


def _end_of(replica: Replica, epoch: int) -> EpochEndOffset | None:
    """Where a leader epoch ends in the log, or the last one before it; None: nobody can tell."""
    entries = replica.log.epochs.entries
    if not entries or epoch < 0 or epoch > entries[-1].epoch:
        return None
    if epoch == entries[-1].epoch:
        return EpochEndOffset(epoch, replica.log.leo)
    before = [entry.epoch for entry in entries if entry.epoch <= epoch]
    after = min(entry.start_offset for entry in entries if entry.epoch > epoch)
    return EpochEndOffset(max(before, default=epoch), after)

"""State of a leader of the quorum: how far each voter's log reaches and when it last asked, and the fetches
that wait for more (docs/protocol.md 2.12.3-6, K03)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.context import RaftContext
from wrackline.broker.core.quorum.log import Entry, MetadataLog, check_epoch
from wrackline.broker.model.effects import CancelTimer, Reply, SetTimer
from wrackline.broker.model.messages.admin import DescribeQuorumResponse, QuorumReplica
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderIdAndEpoch,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, LogSlice, NodeId, SnapshotSlice
from wrackline.broker.model.values import NO_ERROR, dataclass
from wrackline.broker.rules.leadership.raft import RaftRules

_UNSET = UUID(int=0)
FETCH_TIMERS = "metadata-fetch:"
FULL_WINDOW = 1.5
"""Fetch timeouts without a majority after which a leader resigns (docs/protocol.md 2.12.6)."""
OBSERVER_SESSION_MS = 300_000
"""An observer that has not asked for so long is described no more."""


@dataclass(slots=True)
class Progress:
    """Progress of another voter, in this epoch."""

    last_fetch_ms: float
    end: int = 0
    """Its log is the leader's up to here, and safe."""
    knows: bool = False
    """It has acknowledged the leader."""
    directory_id: UUID | None = None
    leo_then: int = 0
    """The leader's, when it last asked."""
    caught_up_ms: float | None = None
    """When it last had everything that there was when it asked before (as in docs/protocol.md 2.2.6)."""
    fetched: bool = False

    def asked(self, offset: int, leo: int, now_ms: float) -> None:
        if offset >= leo:
            self.caught_up_ms = now_ms
        elif self.fetched and offset >= self.leo_then:
            self.caught_up_ms = self.last_fetch_ms
        self.leo_then, self.last_fetch_ms, self.fetched = leo, now_ms, True


@dataclass(frozen=True, slots=True)
class _Parked:
    request_id: int
    request: FetchRequest

    @property
    def timer(self) -> str:
        return f"{FETCH_TIMERS}{self.request_id}"


class Leadership:
    """The state of one leadership, from an election to the resignation."""

    def __init__(self, ctx: RaftContext, rules: RaftRules, log: MetadataLog, epoch: int) -> None:
        self._ctx = ctx
        self._rules = rules
        self._log = log
        self.hint = LeaderIdAndEpoch(ctx.me, epoch)
        self.epoch_start = log.leo
        """The first record of the epoch lies here: the LeaderChangeRecord."""
        self.voters = {voter: Progress(ctx.now_ms) for voter in ctx.others}
        self._observers: dict[NodeId, Progress] = {}
        """Brokers that fetch."""
        self._parked: dict[int, _Parked] = {}

    # --- commitment ----------------------------------------------------------------------------------------

    def commit(self) -> list[Entry]:
        """Returns what has become committed since the last call."""
        own = self._rules.held(self._log.leo, self._log.flushed_to)
        end = self._rules.majority_end([own, *(progress.end for progress in self.voters.values())])
        end = min(end, self._log.leo)
        if end <= self._log.high_watermark or not self._rules.may_commit(end, self.epoch_start):
            return []
        return self._log.advance(end)

    def lost_quorum(self) -> bool:
        window_ms = FULL_WINDOW * self._ctx.config.quorum_fetch_timeout_ms
        silences = [self._ctx.now_ms - progress.last_fetch_ms for progress in self.voters.values()]
        return bool(silences) and self._rules.lost_quorum(silences, window_ms)

    def successors(self) -> tuple[NodeId, ...]:
        """The other voters, the longest log first."""
        return tuple(sorted(self.voters, key=lambda voter: (-self.voters[voter].end, voter)))

    # --- fetches -------------------------------------------------------------------------------------------

    def fetch(self, request_id: int, request: FetchRequest) -> None:
        response = self._answer(request)
        if request.max_wait_ms <= 0 or request.min_bytes <= 0 or not _waits(response):
            self._ctx.out.append(Reply(request_id, response))
            return
        parked = self._parked[request_id] = _Parked(request_id, request)
        self._ctx.out.append(SetTimer(parked.timer, self._ctx.now_ms + request.max_wait_ms))

    def note(self, request: FetchRequest) -> None:
        """A voter that asks is there, and holds what it does not ask for, unless its log is another."""
        progress = self.voters.get(request.replica_id)
        for asked in request.partitions:
            if progress is None and request.replica_id >= 0 and _is_metadata(asked):
                self._observed(request.replica_id, asked.fetch_offset)
            if progress is None or asked.directory_id is None or not _is_metadata(asked):
                continue
            if asked.current_leader_epoch != self.hint.leader_epoch:
                continue
            progress.asked(asked.fetch_offset, self._log.leo, self._ctx.now_ms)
            progress.knows, progress.directory_id = True, asked.directory_id
            result = self._read(asked, request)
            if result.error is NO_ERROR and result.diverging is None and result.snapshot is None:
                progress.end = asked.fetch_offset

    def _observed(self, node: NodeId, offset: int) -> None:
        now_ms = self._ctx.now_ms
        known = self._observers.get(node)
        if known is None:
            known = self._observers[node] = Progress(now_ms)
        known.asked(offset, self._log.leo, now_ms)
        known.end = offset

    def describe(self, directory_id: UUID) -> DescribeQuorumResponse:
        """Describes the quorum; ``directory_id``: the leader's own. Observers that were silent for long are
        let go."""
        now_ms = self._ctx.now_ms
        for node, known in list(self._observers.items()):
            if now_ms - known.last_fetch_ms > OBSERVER_SESSION_MS:
                del self._observers[node]

        def replica(node: NodeId, progress: Progress) -> QuorumReplica:
            if not progress.fetched:
                return QuorumReplica(node, -1, progress.directory_id)
            caught_up = progress.caught_up_ms
            return QuorumReplica(
                node,
                progress.end,
                progress.directory_id,
                now_ms - progress.last_fetch_ms,
                None if caught_up is None else now_ms - caught_up,
            )

        me = QuorumReplica(self._ctx.me, self._log.leo, directory_id, 0.0, 0.0)
        voters = [me, *(replica(*item) for item in self.voters.items())]
        return DescribeQuorumResponse(
            leader_id=self._ctx.me,
            leader_epoch=self.hint.leader_epoch,
            high_watermark=self._log.high_watermark,
            voters=tuple(sorted(voters)),
            observers=tuple(replica(*item) for item in sorted(self._observers.items(), key=lambda i: i[0])),
            nodes=self._ctx.config.controllers,
        )

    def piece(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """Returns a piece of a snapshot. A voter that asks is there."""
        response = FetchSnapshotResponse(
            NO_ERROR,
            request.snapshot,
            position=request.position,
            leader_id=self.hint.leader_id,
            leader_epoch=self.hint.leader_epoch,
        )
        error = check_epoch(request.current_leader_epoch, self.hint.leader_epoch)
        size = self._log.snapshots.size_of(request.snapshot)
        if error is NO_ERROR and request.directory_id is not None and request.replica_id in self.voters:
            self.voters[request.replica_id].last_fetch_ms = self._ctx.now_ms
            self.voters[request.replica_id].knows = True
        if error is NO_ERROR and size is None:
            error = ErrorCode.snapshot_not_found
        elif error is NO_ERROR and not 0 <= request.position < (size or 0):
            error = ErrorCode.position_out_of_range
        if error is not NO_ERROR or size is None:
            return replace(response, error=error)
        return replace(
            response, size=size, records=SnapshotSlice(request.snapshot, request.position, request.max_bytes)
        )

    def wake(self) -> None:
        """Records were flushed or committed."""
        for parked in list(self._parked.values()):
            request = parked.request
            if all(asked.fetch_offset >= self._limit(asked, request) for asked in request.partitions):
                continue  # it is at the end still, and what a leader has is never cut
            response = self._answer(request)
            if not _waits(response):
                del self._parked[parked.request_id]
                self._ctx.out += [CancelTimer(parked.timer), Reply(parked.request_id, response)]

    def timer(self, key: str) -> None:
        parked = (
            self._parked.pop(int(key.removeprefix(FETCH_TIMERS)), None)
            if key.startswith(FETCH_TIMERS)
            else None
        )
        if parked is not None:
            self._ctx.out.append(Reply(parked.request_id, self._answer(parked.request)))

    def forget(self, request_id: int) -> None:
        parked = self._parked.pop(request_id, None)
        if parked is not None:
            self._ctx.out.append(CancelTimer(parked.timer))

    def dismiss(self, hint: LeaderIdAndEpoch) -> None:
        """The leadership is over: those who wait are sent elsewhere."""
        for parked in self._parked.values():
            self._ctx.out += [
                CancelTimer(parked.timer),
                Reply(parked.request_id, not_leader(parked.request, hint)),
            ]
        self._parked.clear()

    def _answer(self, request: FetchRequest) -> FetchResponse:
        return FetchResponse(tuple(self._read(asked, request) for asked in request.partitions))

    def _read(self, asked: FetchPartition, request: FetchRequest) -> FetchResult:
        if not _is_metadata(asked):
            return FetchResult(asked.tp, ErrorCode.unknown_topic_or_partition, topic_id=asked.topic_id)
        return self._log.read(asked, self.hint, self._limit(asked, request), request.max_bytes)

    def _limit(self, asked: FetchPartition, request: FetchRequest) -> int:
        """Voters read what is safe here, observers what is committed."""
        if asked.directory_id is not None and request.replica_id in self.voters:
            return self._rules.held(self._log.leo, self._log.flushed_to)
        return self._log.high_watermark


def not_leader(request: FetchRequest, hint: LeaderIdAndEpoch) -> FetchResponse:
    """``hint``: who leads, -1 when that is not known."""
    error = ErrorCode.not_leader_or_follower
    return FetchResponse(
        tuple(
            FetchResult(asked.tp, error, current_leader=hint, topic_id=asked.topic_id)
            if _is_metadata(asked)
            else FetchResult(asked.tp, ErrorCode.unknown_topic_or_partition, topic_id=asked.topic_id)
            for asked in request.partitions
        )
    )


def _is_metadata(asked: FetchPartition) -> bool:
    topic_id = asked.topic_id
    if topic_id is not METADATA_TOPIC_ID and topic_id in (None, _UNSET):
        return asked.tp == METADATA
    return topic_id == METADATA_TOPIC_ID and asked.tp.partition == METADATA.partition


def _waits(response: FetchResponse) -> bool:
    """Tells whether a response has nothing to report yet: no records, no error, no divergence, no
    snapshot."""
    return all(
        result.error is NO_ERROR
        and result.diverging is None
        and result.snapshot is None
        and not isinstance(result.records, LogSlice)
        for result in response.partitions
    )

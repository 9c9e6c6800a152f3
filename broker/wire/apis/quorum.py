"""Controllers among themselves: Vote, BeginQuorumEpoch, EndQuorumEpoch and FetchSnapshot (KIP-595, KIP-630,
KIP-996). Each speaks of one partition, the metadata log."""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import quorum as q
from wrackline.broker.model.messages import snapshots as s
from wrackline.broker.model.types import METADATA
from wrackline.broker.wire.api import api, of_nodes
from wrackline.broker.wire.declarations import message
from wrackline.broker.wire.schema import Entity, WireError

_HIGHEST_EPOCH = 2**31 - 1 - 2**24
"""From here on there are sixteen million elections to go."""
_PART = "topics.partitions"
_PARTITION = {
    "topics.topic_name": METADATA.topic,
    "topics.partitions.partition_index": METADATA.partition,
}
_ANSWERED = {"error_code": ErrorCode.none, **_PARTITION}
"""The errors are those of the partition."""


def _of_metadata(entity: Entity, name: str = "topic_name", index: str = "partition_index") -> Entity:
    """What is said of the metadata log. Raises WireError when that is not exactly one thing."""
    parts = [part for topic in entity.topics for part in topic.partitions]
    names = {getattr(topic, name) for topic in entity.topics}
    if len(parts) != 1 or names != {METADATA.topic} or getattr(parts[0], index) != METADATA.partition:
        raise WireError(f"{type(entity).__name__} is not of {METADATA} alone")
    return parts[0]


def _with_room_for_epochs(entity: Entity) -> None:
    """Raises WireError also when the epoch leaves no room: whoever took it over, and then stood for election
    in the one behind it, would have none to write down."""
    part = _of_metadata(entity)
    epoch = part.replica_epoch if hasattr(part, "replica_epoch") else part.leader_epoch
    if epoch > _HIGHEST_EPOCH:
        raise WireError(
            f"{type(entity).__name__} of epoch {epoch}; the highest taken over is {_HIGHEST_EPOCH}"
        )


def _error_alone(model: Callable[[ErrorCode], object]) -> Callable[[Entity], object | None]:
    """An answer with an error for the whole request says nothing of the metadata log."""

    def first(entity: Entity) -> object | None:
        if entity.error_code is not ErrorCode.none:
            return model(entity.error_code)
        _with_room_for_epochs(entity)
        return None

    return first


_EPOCH_ANSWER = message(
    q.QuorumEpochResponse,
    within=_PART,
    fixed=_ANSWERED,
    first=_error_alone(q.QuorumEpochResponse),
    epoch="leader_epoch",
)


# --- FetchSnapshot ------------------------------------------------------------------------------------------


def _snapshot_asked(entity: Entity) -> None:
    _of_metadata(entity, "name", "partition")


def _snapshot_answer(entity: Entity) -> s.FetchSnapshotResponse | None:
    if entity.error_code is not ErrorCode.none:
        return s.FetchSnapshotResponse(entity.error_code)
    _of_metadata(entity, "name", "index")
    return None


def _refused_snapshot(
    request: s.FetchSnapshotRequest, error: ErrorCode, _: str | None
) -> s.FetchSnapshotResponse:
    return s.FetchSnapshotResponse(error, request.snapshot)


APIS = (
    api(
        52,
        "Vote",
        of_nodes(2, "candidate_id"),
        request=message(
            q.VoteRequest,
            first=_with_room_for_epochs,
            within=_PART,
            fixed={**_PARTITION, "topics.partitions.voter_directory_id": None},
            epoch="replica_epoch",
            candidate_id="replica_id",
            candidate_directory="replica_directory_id",
            last_epoch="last_offset_epoch",
        ),
        response=message(
            q.VoteResponse,
            within=_PART,
            fixed=_ANSWERED,
            first=_error_alone(q.VoteResponse),
            epoch="leader_epoch",
            granted="vote_granted",
        ),
    ),
    api(
        53,
        "BeginQuorumEpoch",
        of_nodes(0, "leader_id"),
        request=message(
            q.BeginQuorumEpochRequest,
            first=_with_room_for_epochs,
            within=_PART,
            fixed=_PARTITION,
            epoch="leader_epoch",
        ),
        response=_EPOCH_ANSWER,
    ),
    api(
        54,
        "EndQuorumEpoch",
        of_nodes(0, "leader_id"),
        request=message(
            q.EndQuorumEpochRequest,
            first=_with_room_for_epochs,
            within=_PART,
            fixed=_PARTITION,
            epoch="leader_epoch",
            successors="preferred_successors",
        ),
        response=_EPOCH_ANSWER,
    ),
    api(
        59,
        "FetchSnapshot",
        of_nodes(1, "replica_id"),
        request=message(
            s.FetchSnapshotRequest,
            within=_PART,
            first=_snapshot_asked,
            fixed={"topics.name": METADATA.topic, "topics.partitions.partition": METADATA.partition},
            snapshot="snapshot_id",
            directory_id="replica_directory_id",
        ),
        response=message(
            s.FetchSnapshotResponse,
            within=_PART,
            first=_snapshot_answer,
            fixed={
                "error_code": ErrorCode.none,
                "topics.name": METADATA.topic,
                "topics.partitions.index": METADATA.partition,
            },
            snapshot="snapshot_id",
            records="unaligned_records",
            leader_id="current_leader.leader_id",
            leader_epoch="current_leader.leader_epoch",
        ),
        refuse=_refused_snapshot,
    ),
)

"""Controllers among themselves: Vote, BeginQuorumEpoch, EndQuorumEpoch and FetchSnapshot (KIP-595, KIP-630,
KIP-996). Each speaks of one partition, the metadata log."""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import quorum as q
from wrackline.broker.model.messages import snapshots as s
from wrackline.broker.model.types import METADATA
from wrackline.broker.wire.api import api, node_access
from wrackline.broker.wire.schema import Entity, WireError
from wrackline.broker.wire.translation.declarations import message

_HIGHEST_EPOCH = 2**31 - 1 - 2**24
"""From here on there are sixteen million elections to go."""
_PART = "topics.partitions"
_PARTITION = {"topics.topic_name": METADATA.topic, "topics.partitions.partition_index": METADATA.partition}
_RESPONSE = {"error_code": ErrorCode.none, **_PARTITION}
"""The errors are those of the partition."""


def _of_metadata(entity: Entity, name: str = "topic_name", index: str = "partition_index") -> Entity:
    """Returns the part of the entity about the metadata log. Raises WireError when that is not exactly one
    thing."""
    parts = [part for topic in entity.topics for part in topic.partitions]
    names = {getattr(topic, name) for topic in entity.topics}
    if len(parts) != 1 or names != {METADATA.topic} or getattr(parts[0], index) != METADATA.partition:
        raise WireError(f"{type(entity).__name__} is not of {METADATA} alone")
    return parts[0]


def _check_epoch(entity: Entity) -> None:
    """Raises WireError also when the epoch leaves no room: whoever took it over, and then stood for election
    in the one behind it, would have none to write down."""
    part = _of_metadata(entity)
    epoch = part.replica_epoch if hasattr(part, "replica_epoch") else part.leader_epoch
    if epoch > _HIGHEST_EPOCH:
        raise WireError(
            f"{type(entity).__name__} of epoch {epoch}; the highest taken over is {_HIGHEST_EPOCH}"
        )


def _check_error(model: Callable[[ErrorCode], object]) -> Callable[[Entity], object | None]:
    """An answer with an error for the whole request says nothing of the metadata log."""

    def first(entity: Entity) -> object | None:
        if entity.error_code is not ErrorCode.none:
            return model(entity.error_code)
        _check_epoch(entity)
        return None

    return first


_EPOCH_RESPONSE = message(
    q.QuorumEpochResponse,
    prefix=_PART,
    constants=_RESPONSE,
    check=_check_error(q.QuorumEpochResponse),
    epoch="leader_epoch",
)


# --- FetchSnapshot ------------------------------------------------------------------------------------------


def _check_snapshot_request(entity: Entity) -> None:
    _of_metadata(entity, "name", "partition")


def _check_snapshot_response(entity: Entity) -> s.FetchSnapshotResponse | None:
    if entity.error_code is not ErrorCode.none:
        return s.FetchSnapshotResponse(entity.error_code)
    _of_metadata(entity, "name", "index")
    return None


def _snapshot_refusal(
    request: s.FetchSnapshotRequest, error: ErrorCode, _: str | None
) -> s.FetchSnapshotResponse:
    return s.FetchSnapshotResponse(error, request.snapshot)


APIS = (
    api(
        52,
        "Vote",
        node_access(2, "candidate_id"),
        request=message(
            q.VoteRequest,
            check=_check_epoch,
            prefix=_PART,
            constants={**_PARTITION, "topics.partitions.voter_directory_id": None},
            epoch="replica_epoch",
            candidate_id="replica_id",
            candidate_directory="replica_directory_id",
            last_epoch="last_offset_epoch",
        ),
        response=message(
            q.VoteResponse,
            prefix=_PART,
            constants=_RESPONSE,
            check=_check_error(q.VoteResponse),
            epoch="leader_epoch",
            granted="vote_granted",
        ),
    ),
    api(
        53,
        "BeginQuorumEpoch",
        node_access(0, "leader_id"),
        request=message(
            q.BeginQuorumEpochRequest,
            check=_check_epoch,
            prefix=_PART,
            constants=_PARTITION,
            epoch="leader_epoch",
        ),
        response=_EPOCH_RESPONSE,
    ),
    api(
        54,
        "EndQuorumEpoch",
        node_access(0, "leader_id"),
        request=message(
            q.EndQuorumEpochRequest,
            check=_check_epoch,
            prefix=_PART,
            constants=_PARTITION,
            epoch="leader_epoch",
            successors="preferred_successors",
        ),
        response=_EPOCH_RESPONSE,
    ),
    api(
        59,
        "FetchSnapshot",
        node_access(1, "replica_id"),
        request=message(
            s.FetchSnapshotRequest,
            prefix=_PART,
            check=_check_snapshot_request,
            constants={"topics.name": METADATA.topic, "topics.partitions.partition": METADATA.partition},
            snapshot="snapshot_id",
            directory_id="replica_directory_id",
        ),
        response=message(
            s.FetchSnapshotResponse,
            prefix=_PART,
            check=_check_snapshot_response,
            constants={
                "error_code": ErrorCode.none,
                "topics.name": METADATA.topic,
                "topics.partitions.index": METADATA.partition,
            },
            snapshot="snapshot_id",
            records="unaligned_records",
            leader_id="current_leader.leader_id",
            leader_epoch="current_leader.leader_epoch",
        ),
        refuse=_snapshot_refusal,
    ),
)

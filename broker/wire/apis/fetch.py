"""Fetch: versions 4 to 12 from clients, 17 between nodes (topic ids, and the replica's broker epoch, without
which KIP-903 cannot tell a restarted follower from the one that was caught up)."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, SnapshotId
from wrackline.broker.wire.api import CLIENT, CONTROLLER, REPLICATION, Access, api
from wrackline.broker.wire.translation.declarations import FieldPath, Rows, Struct, TopicNames, message
from wrackline.broker.wire.translation.values import uuid_or_none

_BY_TOPIC_ID = 13


def _names_with_metadata(names: TopicNames) -> TopicNames:
    def name_of(topic_id: UUID) -> str | None:
        if topic_id == METADATA_TOPIC_ID:
            return METADATA.topic
        return None if topic_id is None else names(topic_id)

    return name_of


def _names_in_request(request: m.FetchRequest) -> TopicNames:
    """An answer names topics by id alone, and may speak of all in the session."""
    names: dict[UUID | None, str] = dict(request.session_topics)
    names |= {_id_of(part): part.tp.topic for part in request.partitions}
    return names.get


def _id_of(part: m.FetchPartition) -> UUID | None:
    if part.topic_id is None and part.tp == METADATA:
        return METADATA_TOPIC_ID
    return uuid_or_none(part.topic_id)


def _form_of_request(request: m.FetchRequest, *_: object) -> m.FetchRequest:
    return request.with_partitions(tuple(replace(part, topic_id=_id_of(part)) for part in request.partitions))


def _form_of_response(response: m.FetchResponse, request: m.FetchRequest, version: int) -> m.FetchResponse:
    if version < _BY_TOPIC_ID or all(part.topic_id is not None for part in response.partitions):
        return response
    ids = {part.tp: part.topic_id for part in request.partitions}
    results = (replace(part, topic_id=part.topic_id or ids.get(part.tp)) for part in response.partitions)
    return replace(response, partitions=tuple(results))


def _refusal(request: m.FetchRequest, error: ErrorCode, _: str | None) -> m.FetchResponse:
    results = (m.FetchResult(part.tp, error, topic_id=part.topic_id) for part in request.partitions)
    return m.FetchResponse(tuple(results), error)


APIS = (
    api(
        1,
        "Fetch",
        Access(
            clients=(4, 12),
            peers=(13, 17),
            sent=17,
            open_on=(CLIENT,),
            nodes_on=(REPLICATION, CONTROLLER),
            speaks_for=attrgetter("replica_id"),
        ),
        request=message(
            m.FetchRequest,
            topic_names=_names_with_metadata,
            to_form=_form_of_request,
            missing=("session_topics",),
            partitions=Rows(
                "topics",
                message(
                    m.FetchPartition, max_bytes="partition_max_bytes", directory_id="replica_directory_id"
                ),
            ),
            replica_id=FieldPath("replica_state.replica_id", "replica_id"),
            broker_epoch="replica_state.replica_epoch",
            forgotten="forgotten_topics_data",
        ),
        response=message(
            m.FetchResponse,
            topic_names=_names_in_request,
            to_form=_form_of_response,
            partitions=Rows(
                "responses",
                message(
                    m.FetchResult,
                    constants={"aborted_transactions": (), "preferred_read_replica": -1},
                    diverging=Struct(
                        "diverging_epoch",
                        m.EpochEndOffset,
                        is_none=lambda found: found.epoch < 0 and found.end_offset < 0,
                    ),
                    current_leader=Struct(
                        "current_leader", m.LeaderIdAndEpoch, is_none=lambda found: found.leader_epoch < 0
                    ),
                    snapshot=Struct("snapshot_id", SnapshotId, is_none=lambda found: found.end_offset < 0),
                ),
            ),
        ),
        refuse=_refusal,
    ),
)

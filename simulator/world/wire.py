"""Messages as they come out of the broker's own codec, for runs that have it in the loop (``--codec``).

Each request and response is encoded, and the receiver gets what was decoded. Nodes speak the one version in
which they send; of a client the version is drawn, for each message, among those that carry all that it says.
Observers see a message as it was sent. A message that says something else when it is decoded is a violation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import timedelta
from functools import cache
from random import Random
from typing import Any, NamedTuple, cast
from uuid import UUID

from wrackline.broker.model.messages import metadata, requests
from wrackline.broker.model.messages.admin import DescribeConfigsRequest, DescribeQuorumRequest
from wrackline.broker.model.messages.requests import LeaderIdAndEpoch, Refused, Request, Response
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.wire.api import Api
from wrackline.broker.wire.apis import BY_REQUEST
from wrackline.broker.wire.codec import Caller, Codec, Incoming
from wrackline.broker.wire.refusals import expand
from wrackline.broker.wire.schema import WireError, request_schema, response_schema
from wrackline.broker.wire.translation.declarations import Array, Items, Message
from wrackline.broker.wire.translation.writing import writer
from wrackline.simulator.world.errors import CodecError
from wrackline.simulator.world.nodes import PROBE

_HEADER = struct.Struct(">hhih")
"""API key, version, correlation, a client id without a letter."""
_CORRELATION = 7
_ANY = 1 << 15
"""Above every version: a request is sent in one that carries all that it says."""

WITHOUT: Mapping[type, str] = {
    metadata.DescribeTopicPartitionsRequest: "its answer goes page by page, which a client puts together",
    DescribeConfigsRequest: "its answer is read by clients alone, and the broker has no reader of it",
    DescribeQuorumRequest: "its answer has times of the wall clock, so no run could be repeated",
}
"""Requests that travel as objects, and why."""
SINCE: Mapping[str, int] = {
    "FetchPartition.current_leader_epoch": 9,
    "FetchPartition.last_fetched_epoch": 12,
    "FetchPartition.log_start": 5,
    "FetchPartition.topic_id": 13,
    "FetchPartition.directory_id": 17,
    "FetchRequest.broker_epoch": 15,
    "FetchRequest.forgotten": 7,
    "FetchRequest.session_epoch": 7,
    "FetchRequest.session_id": 7,
    "FetchResponse.error": 7,
    "FetchResponse.session_id": 7,
    "FetchResult.current_leader": 12,
    "FetchResult.diverging": 12,
    "FetchResult.log_start": 5,
    "FetchResult.snapshot": 12,
    "FetchResult.topic_id": 13,
    "ForgottenPartition.topic_id": 13,
    "ListOffsetsRequest": 5,
    "OffsetForLeaderEpochRequest.replica_id": 3,
    "InitProducerIdRequest.producer_epoch": 3,
    "InitProducerIdRequest.producer_id": 3,
    "ProduceRequest": 7,
    "ProduceResult.message": 8,
    "CreatedTopic.partitions": 5,
    "CreatedTopic.replication_factor": 5,
    "CreatedTopic.topic_id": 7,
    "DeleteTopicsRequest": 6,
    "ElectLeadersRequest.desired": 3,
    "ElectLeadersRequest.election": 1,
    "ElectLeadersResponse.error": 1,
    "MetadataRequest": 10,
    "MetadataRequest.topic_ids": 12,
    "UpdateFeaturesRequest": 2,
}
"""Field, or whole request (for what its version says by itself, or its answer lacks) -> the first version
that carries it, where older ones are spoken, too."""
NEVER: Mapping[str, str] = {
    "DescribeClusterRequest.include_fenced": "no version that is spoken has it",
    "FetchRequest.session_topics": "for the asker alone",
    "ListOffsetsResult.lookup": "the disk has answered it",
    "DescribeCluster MetadataResponse.topics": "it describes none",
    "Metadata MetadataResponse.error": "each topic has its own",
    "MetadataResponse.fenced": "no version that is spoken has it",
    "PartitionMetadata.elr": "DescribeTopicPartitions alone has it",
    "PartitionMetadata.last_known_elr": "DescribeTopicPartitions alone has it",
    "PartitionMetadata.partition_epoch": "for the broker alone",
    "ProducePartition.topic_id": "no version that is spoken has it",
    "ProduceResult.current_leader": "no version that is spoken has it",
    "ProduceResult.topic_id": "no version that is spoken has it",
}
"""Field (of one API, where it is named) that is not carried -> why."""


NOTHING = (LeaderIdAndEpoch(-1, -1),)
"""Values that the wire has no other word for than for None."""


class _MetadataForm(NamedTuple):
    """MetadataRequest as a client writes it."""

    topics: tuple[tuple[str | None, UUID | None], ...] | None
    allow_auto_topic_creation: bool


def _form_of_metadata(request: metadata.MetadataRequest, *_: object) -> _MetadataForm:
    by_name = tuple((name, None) for name in request.topics or ())
    by_id = tuple((None, topic_id) for topic_id in request.topic_ids)
    everything = request.topics is None and not by_id
    return _MetadataForm(None if everything else by_name + by_id, request.allow_auto_topic_creation)


class _Deletion(NamedTuple):
    """The end of what is deleted of a partition, as a client writes it."""

    tp: TopicPartition
    offset: int


class _DeletionForm(NamedTuple):
    partitions: tuple[_Deletion, ...]
    timeout_ms: int


def _form_of_deletion(request: requests.DeleteRecordsRequest, *_: object) -> _DeletionForm:
    return _DeletionForm(tuple(_Deletion(*part) for part in request.partitions), request.timeout_ms)


_AUTHORIZED = {
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}
_BY_CLIENTS: Mapping[type, Mapping[str, Any]] = {
    metadata.MetadataRequest: {
        "form": _MetadataForm,
        "to_form": _form_of_metadata,
        "places": {"topics": Array("topics", Items("name", "topic_id"))},
        "constants": _AUTHORIZED,
    },
    metadata.DescribeClusterRequest: {"constants": _AUTHORIZED},
    requests.DeleteRecordsRequest: {
        "form": _DeletionForm,
        "to_form": _form_of_deletion,
        "places": {"partitions": "topics"},
    },
    requests.InitProducerIdRequest: {"constants": {"transaction_timeout": timedelta(seconds=60)}},
}
"""What a client adds to requests that the broker never writes itself."""


class Wire:
    """The codec of all nodes of a world."""

    def __init__(self, seed: int | str) -> None:
        self._random = Random(f"{seed}/codec/versions")

    def carry_request(self, source: NodeId, request: Request) -> Incoming | None:
        """The request as the node that is asked decodes it; None: it has no codec. Raises CodecError."""
        if type(request) in WITHOUT:
            return None
        api = BY_REQUEST[type(request)]
        with _codec_errors(api.name):
            codec, speaker = Codec(names=_names_in(request).get), api.speaks_for(request)
            if source < PROBE:
                frame, version = codec.encode_request(_CORRELATION, "", request), cast(int, api.sent)
            else:
                version = self._random.choice(_versions(api, _needs(request)))
                frame = _frame(api, version, request)
            listener = (*api.nodes_on, *api.open_on)[0]
            incoming = codec.decode_request(frame[4:], Caller(listener, speaker if speaker >= 0 else source))
        if not isinstance(incoming, Incoming):
            raise CodecError(f"{api.name} v{version} was answered by the codec itself")
        _compare(api, f"{api.name} v{version}", request, incoming.request, _ANY)
        return incoming

    def carry_response(self, incoming: Incoming, request: Request, response: Response) -> Response:
        """The response as who sent ``request`` decodes it. Raises CodecError."""
        api, version = incoming.api, incoming.version
        with _codec_errors(f"the answer to {api.name} v{version}"):
            if isinstance(response, Refused):
                response = expand(request, response)
            frame = Codec(names=lambda _: None).encode_response(incoming, response)
            schema = response_schema(api.key, version)
            entity = schema.read(frame, 9 if schema.flexible else 8)
            decoded = api.decode_response(entity, request)
        _compare(api, f"the answer to {api.name} v{version}", response, decoded, version)
        return decoded


@contextmanager
def _codec_errors(what: str) -> Iterator[None]:
    try:
        yield
    except WireError as error:
        raise CodecError(f"{what}: {error}") from error


def _frame(api: Api, version: int, request: Request) -> bytes:
    """The whole frame of a client."""
    schema = request_schema(api.key, version)
    body = schema.write(writer(_as_client(api), schema.root)(request, request))
    head = _HEADER.pack(api.key, version, _CORRELATION, 0) + (b"\x00" if schema.flexible else b"")
    return struct.pack(">i", len(head) + len(body)) + head + body


@cache
def _as_client(api: Api) -> Message:
    return replace(api.request, **_BY_CLIENTS.get(api.request.model, {}))


@cache
def _versions(api: Api, least: int) -> tuple[int, ...]:
    """The versions that clients speak, or where none of them does, nodes."""
    spans = (range(span[0], span[1] + 1) for span in (api.clients, api.peers) if span is not None)
    return next(tuple(version for version in span if version >= least) for span in spans if least < span.stop)


def _parts(value: Any) -> Iterator[tuple[str, object, object]]:
    """(class.field, its value, its default) of a structure."""
    name = type(value).__name__
    if is_dataclass(value):
        for field in fields(value):
            yield f"{name}.{field.name}", getattr(value, field.name), field.default
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        defaults: Mapping[str, object] = getattr(value, "_field_defaults", {})
        for field_name in value._fields:
            yield f"{name}.{field_name}", getattr(value, field_name), defaults.get(field_name, MISSING)
    elif isinstance(value, tuple):
        for item in value:
            yield name, item, MISSING


def _needs(value: object) -> int:
    """The first version that carries all that a message says."""
    least = SINCE.get(type(value).__name__, 0)
    for name, part, default in _parts(value):
        if part != default and name not in NEVER:
            least = max(least, SINCE.get(name, 0), _needs(part))
    return least


def _names_in(value: object) -> dict[UUID, str]:
    """The names of the topics whose ids are in a message."""
    names: dict[UUID, str] = {}
    tp, topic_id = getattr(value, "tp", None), getattr(value, "topic_id", None)
    if isinstance(tp, TopicPartition) and topic_id is not None:
        names[topic_id] = tp.topic
    for _, part, _ in _parts(value):
        names |= _names_in(part)
    return names


def _compare(api: Api, what: str, sent: object, decoded: object, version: int) -> None:
    """Raises CodecError for the first field that has changed of those that the version carries."""
    for place, before, after in _changes(api.name, type(sent).__name__, sent, decoded, version):
        raise CodecError(
            f"{what}: {place} was {before!r} when it was sent, and {after!r} when it was decoded"
        )


def _changes(
    api: str, place: str, sent: object, decoded: object, version: int
) -> Iterator[tuple[str, object, object]]:
    if sent == decoded or (decoded is None and sent in NOTHING):
        return
    before, after = list(_parts(sent)), list(_parts(decoded))
    if type(sent) is not type(decoded) or not before or len(before) != len(after):
        yield place, sent, decoded
        return
    for (name, old, _), (_, new, _) in zip(before, after, strict=True):
        if name not in NEVER and f"{api} {name}" not in NEVER and version >= SINCE.get(name, 0):
            yield from _changes(api, name if "." in name else place, old, new, version)

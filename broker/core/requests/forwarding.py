"""Requests that a broker forwards to the controller for clients: administration, producer ids
(docs/protocol.md 5.4)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.purgatory import Deadlines
from wrackline.broker.core.replication.uplink import Uplink, not_in_charge
from wrackline.broker.model.messages.admin import (
    TOPIC,
    AlterConfigsRequest,
    AlterOp,
    ConfigChange,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    ForwardedRequest,
    ForwardedResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from wrackline.broker.model.messages.controller import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
)
from wrackline.broker.model.messages.requests import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    Refused,
    Response,
)
from wrackline.broker.model.metadata.image import CLUSTER_DYNAMIC, ClusterImage

_CHANNEL = "controller-forward"
ForControllerRequest = CreateTopicsRequest | DeleteTopicsRequest | ForwardedRequest
ForControllerResponse = CreateTopicsResponse | DeleteTopicsResponse | ForwardedResponse


@dataclass(slots=True)
class _Forwarded:
    request_id: int
    request: ForControllerRequest
    response: ForControllerResponse | None = None
    """The controller's, held back until the local image shows it."""


class Forwarder:
    """A client that was told of its new topic, partition or setting finds it at the broker that told it."""

    def __init__(self, ctx: Context, uplink: Uplink) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._pending: dict[int, _Forwarded] = {}
        self.deadlines = Deadlines(ctx, "forward-deadlines", self._expire)

    def handle(self, request_id: int, request: ForControllerRequest) -> None:
        """Requests that say no time of their own get the broker's."""
        limit = self._ctx.config.request_timeout_ms
        timeout = max(1.0, min(getattr(request, "timeout_ms", limit), limit))
        self._pending[request_id] = _Forwarded(request_id, request)
        self.deadlines.add(request_id, self._ctx.now_ms + timeout)
        self._forward(request_id, timeout)

    def _forward(self, request_id: int, timeout: float) -> None:
        forwarded = self._pending.get(request_id)
        if forwarded is not None:
            answered = partial(self._answered, request_id)
            self._uplink.send(_CHANNEL, forwarded.request, answered, timeout)

    def create_automatically(self, names: list[str]) -> None:
        """Creates topics for a metadata request that allows it: nobody waits for the outcome, the client asks
        again."""
        timeout = self._uplink.timeout_ms
        request = CreateTopicsRequest(tuple(NewTopic(name) for name in names), int(timeout))
        self._uplink.send(_CHANNEL, request, lambda _: None, timeout)

    def _answered(self, request_id: int, response: Response | None) -> None:
        forwarded = self._pending.get(request_id)
        if forwarded is None:
            return
        if response is None or not_in_charge(response):
            # The next controller is asked, until the client's time is over (as Kafka does; where the first
            # did it after all, the client hears that the topic exists).
            retry_ms, key = self._uplink.retry_ms, f"forward:{request_id}"
            again = partial(self._forward, request_id, self._uplink.timeout_ms)
            self._ctx.set_timer(key, self._ctx.now_ms + retry_ms, again)
            return
        if isinstance(response, ForControllerResponse):
            forwarded.response = response
            self.look()
            return
        self._reply(forwarded, response)

    def look(self) -> None:
        """Looks again after a change of the image."""
        for forwarded in list(self._pending.values()):
            if forwarded.response is not None and _shown(self._ctx.image, forwarded):
                self._reply(forwarded, forwarded.response)

    def _expire(self, request_id: int) -> None:
        forwarded = self._pending[request_id]
        late = Refused(ErrorCode.request_timed_out, "the controller did not answer in time")
        self._reply(forwarded, forwarded.response or late)

    def _reply(self, forwarded: _Forwarded, response: Response) -> None:
        self.cancel(forwarded.request_id)
        self._ctx.reply(forwarded.request_id, response)

    def cancel(self, request_id: int) -> None:
        self._pending.pop(request_id, None)
        self._ctx.cancel_timer(f"forward:{request_id}")
        self.deadlines.drop(request_id)


def _shown(image: ClusterImage, forwarded: _Forwarded) -> bool:
    """Does the local image have what the controller did?"""
    request, response, none = forwarded.request, forwarded.response, ErrorCode.none
    match response:
        case CreateTopicsResponse():
            made = [topic for topic in response.topics if topic.error is none and topic.topic_id.int]
            return all(topic.topic_id in image.topics_by_id for topic in made)
        case DeleteTopicsResponse():
            return not any(
                topic.topic_id in image.topics_by_id
                if topic.topic_id.int
                else topic.name in image.topics_by_name
                for topic in response.topics
                if topic.error is none
            )
        case CreatePartitionsResponse() if isinstance(request, CreatePartitionsRequest):
            done = {topic.topic for topic in response.topics if topic.error is none}
            return request.validate_only or all(
                len(image.topics_by_name[wanted.topic].partitions) >= wanted.count
                for wanted in request.topics
                if wanted.topic in done and wanted.topic in image.topics_by_name
            )
        case IncrementalAlterConfigsResponse() if isinstance(request, IncrementalAlterConfigsRequest):
            return request.validate_only or _has_settings(image, request, response)
        case UpdateFeaturesResponse() if isinstance(request, UpdateFeaturesRequest):
            if request.validate_only or response.error is not none:
                return True
            return all(image.features.get(name) == level for name, level, _ in request.updates)
        case _:
            return True


def _has_settings(
    image: ClusterImage, request: IncrementalAlterConfigsRequest, response: IncrementalAlterConfigsResponse
) -> bool:
    done = {item.resource for item in response.resources if item.error is ErrorCode.none}
    for item in request.resources:
        if item.resource not in done:
            continue
        key = ("topic", item.resource.name) if item.resource.kind == TOPIC else CLUSTER_DYNAMIC
        known = image.configs.get(key, {})
        expected = {change.name: _value(change) for change in item.changes}
        if any(known.get(name) != value for name, value in expected.items()):
            return False
        if isinstance(request, AlterConfigsRequest) and known.keys() - expected.keys():
            return False
    return True


def _value(change: ConfigChange) -> str | None:
    return None if change.op == AlterOp.DELETE else change.value


class ProducerIds:
    """Hands out ids from a block that the controller gave to this broker alone."""

    def __init__(self, ctx: Context, uplink: Uplink) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._next = 0
        self._end = 0
        self._asking = False
        self._waiting: deque[int] = deque()
        self.deadlines = Deadlines(ctx, "producer-id-deadlines", self._expire)

    def handle(self, request_id: int, request: InitProducerIdRequest) -> None:
        if request.transactional_id is not None:
            # Transactions need a coordinator, which this broker does not have; this error ends every client.
            refused = InitProducerIdResponse(ErrorCode.transactional_id_authorization_failed)
            self._ctx.reply(request_id, refused)
            return
        if self._next < self._end:
            self._give(request_id)
            return
        self._waiting.append(request_id)
        self.deadlines.add(request_id, self._ctx.now_ms + self._uplink.timeout_ms)
        self._ask()

    def _give(self, request_id: int) -> None:
        self._ctx.reply(request_id, InitProducerIdResponse(ErrorCode.none, self._next, 0))
        self._next += 1

    def _ask(self) -> None:
        if self._asking or not self._waiting:
            return
        self._asking = True
        request = AllocateProducerIdsRequest(self._ctx.config.node_id, self._ctx.broker_epoch)
        self._uplink.send(_CHANNEL, request, self._answered)

    def _answered(self, response: Response | None) -> None:
        self._asking = False
        if not isinstance(response, AllocateProducerIdsResponse) or response.error is not ErrorCode.none:
            at = self._ctx.now_ms + self._uplink.retry_ms
            self._ctx.set_timer("producer-ids", at, self._ask)
            return
        self._next = response.producer_id_start
        self._end = response.producer_id_start + response.producer_id_len
        while self._waiting and self._next < self._end:
            request_id = self._waiting.popleft()
            self.deadlines.drop(request_id)
            self._give(request_id)
        self._ask()

    def _expire(self, request_id: int) -> None:
        self._waiting.remove(request_id)
        self._ctx.reply(request_id, InitProducerIdResponse(ErrorCode.coordinator_load_in_progress))

    def cancel(self, request_id: int) -> None:
        if request_id in self._waiting:
            self._waiting.remove(request_id)
            self.deadlines.drop(request_id)

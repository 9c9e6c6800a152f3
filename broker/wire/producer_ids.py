"""InitProducerId (key 22, versions 0 to 4) and AllocateProducerIds (key 67, version 0)."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.controller import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from wrackline.broker.model.messages.requests import InitProducerIdRequest, InitProducerIdResponse
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames
from wrackline.broker.wire.schema import Schema


def decode_init(entity: Any, _: TopicNames) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=entity.transactional_id,
        producer_id=getattr(entity, "producer_id", -1),
        producer_epoch=getattr(entity, "producer_epoch", -1),
    )


def encode_init_response(schema: Schema, _: InitProducerIdRequest, response: InitProducerIdResponse) -> Any:
    return schema.make(
        "InitProducerIdResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )


def decode_allocate(entity: Any, _: TopicNames) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(entity.broker_id, entity.broker_epoch)


def encode_allocate_request(schema: Schema, request: AllocateProducerIdsRequest) -> Any:
    return schema.make(
        "AllocateProducerIdsRequest", broker_id=request.broker_id, broker_epoch=request.broker_epoch
    )


def encode_allocate_response(
    schema: Schema, _: AllocateProducerIdsRequest, response: AllocateProducerIdsResponse
) -> Any:
    return schema.make(
        "AllocateProducerIdsResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        producer_id_start=response.producer_id_start,
        producer_id_len=response.producer_id_len,
    )


def decode_allocate_response(entity: Any, _: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(entity.error_code, entity.producer_id_start, entity.producer_id_len)

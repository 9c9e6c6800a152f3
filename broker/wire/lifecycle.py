"""AlterPartition (key 56, version 3), BrokerRegistration (62, version 4), BrokerHeartbeat (63, version 1)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from wrackline.broker.model.messages.controller import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, uuid_or_none
from wrackline.broker.wire.features import features_of, levels_in
from wrackline.broker.wire.schema import NO_UUID, Schema, WireError

_PLAINTEXT, _SASL_PLAINTEXT = 0, 2


def decode_alter(entity: Any, names: TopicNames) -> AlterPartitionRequest:
    return AlterPartitionRequest(
        broker_id=entity.broker_id,
        broker_epoch=entity.broker_epoch,
        partitions=tuple(
            AlterPartitionItem(
                tp=TopicPartition(names(topic.topic_id or NO_UUID) or "", part.partition_index),
                topic_id=topic.topic_id or NO_UUID,
                leader_epoch=part.leader_epoch,
                partition_epoch=part.partition_epoch,
                isr=tuple((member.broker_id, member.broker_epoch) for member in part.new_isr_with_epochs),
                leader_recovery_state=part.leader_recovery_state,
            )
            for topic in entity.topics
            for part in topic.partitions
        ),
    )


def encode_alter_request(schema: Schema, request: AlterPartitionRequest) -> Any:
    make = schema.make
    return make(
        "AlterPartitionRequest",
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        topics=tuple(
            make(
                "TopicData",
                topic_id=uuid_or_none(topic_id),
                partitions=tuple(
                    make(
                        "PartitionData",
                        partition_index=item.tp.partition,
                        leader_epoch=item.leader_epoch,
                        new_isr_with_epochs=tuple(
                            make("BrokerState", broker_id=broker, broker_epoch=epoch)
                            for broker, epoch in item.isr
                        ),
                        leader_recovery_state=item.leader_recovery_state,
                        partition_epoch=item.partition_epoch,
                    )
                    for item in items
                ),
            )
            for topic_id, items in groupby(request.partitions, key=lambda item: item.topic_id)
        ),
    )


def encode_alter_response(schema: Schema, _: AlterPartitionRequest, response: AlterPartitionResponse) -> Any:
    make = schema.make
    return make(
        "AlterPartitionResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        topics=tuple(
            make(
                "TopicData",
                topic_id=uuid_or_none(topic_id),
                partitions=tuple(
                    make(
                        "PartitionData",
                        partition_index=result.tp.partition,
                        error_code=result.error,
                        leader_id=result.leader_id,
                        leader_epoch=result.leader_epoch,
                        isr=result.isr,
                        leader_recovery_state=result.leader_recovery_state,
                        partition_epoch=result.partition_epoch,
                    )
                    for result in results
                ),
            )
            for topic_id, results in groupby(response.partitions, key=lambda result: result.topic_id)
        ),
    )


def decode_alter_response(entity: Any, request: AlterPartitionRequest) -> AlterPartitionResponse:
    names = {item.topic_id: item.tp.topic for item in request.partitions}
    return AlterPartitionResponse(
        error=entity.error_code,
        partitions=tuple(
            AlterPartitionResult(
                tp=TopicPartition(names.get(topic.topic_id or NO_UUID, ""), part.partition_index),
                topic_id=topic.topic_id or NO_UUID,
                error=part.error_code,
                leader_id=part.leader_id,
                leader_epoch=part.leader_epoch,
                isr=tuple(part.isr),
                partition_epoch=part.partition_epoch,
                leader_recovery_state=part.leader_recovery_state,
            )
            for topic in entity.topics
            for part in topic.partitions
        ),
    )


def decode_registration(entity: Any, _: TopicNames) -> BrokerRegistrationRequest:
    """Raises WireError when the broker lacks a listener: nobody could reach it."""
    at = {listener.name: listener for listener in entity.listeners}
    for needed in (Listener.CLIENT, Listener.REPLICATION):
        if needed.value not in at:
            raise WireError(f"broker {entity.broker_id} registers without a listener {needed.value}")
    listener = at[Listener.CLIENT.value]
    return BrokerRegistrationRequest(
        broker_id=entity.broker_id,
        cluster_id=entity.cluster_id,
        incarnation_id=entity.incarnation_id or NO_UUID,
        host=listener.host,
        port=listener.port,
        rack=entity.rack,
        previous_broker_epoch=entity.previous_broker_epoch,
        levels=levels_in(entity.features),
        replication_port=at[Listener.REPLICATION.value].port,
    )


def encode_registration_request(schema: Schema, request: BrokerRegistrationRequest) -> Any:
    make = schema.make
    return make(
        "BrokerRegistrationRequest",
        broker_id=request.broker_id,
        cluster_id=request.cluster_id,
        incarnation_id=request.incarnation_id,
        listeners=tuple(
            make("Listener", name=name.value, host=request.host, port=port, security_protocol=security)
            for name, port, security in (
                (Listener.CLIENT, request.port, _PLAINTEXT),
                (Listener.REPLICATION, request.replication_port, _SASL_PLAINTEXT),
            )
        ),
        features=features_of(schema, request.levels),
        rack=request.rack,
        previous_broker_epoch=request.previous_broker_epoch,
    )


def encode_registration_response(
    schema: Schema, _: BrokerRegistrationRequest, response: BrokerRegistrationResponse
) -> Any:
    return schema.make(
        "BrokerRegistrationResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        broker_epoch=response.broker_epoch,
    )


def decode_registration_response(entity: Any, _: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(entity.error_code, entity.broker_epoch)


def decode_heartbeat(entity: Any, _: TopicNames) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=entity.broker_id,
        broker_epoch=entity.broker_epoch,
        current_metadata_offset=entity.current_metadata_offset,
        want_fence=entity.want_fence,
        want_shut_down=entity.want_shut_down,
    )


def encode_heartbeat_request(schema: Schema, request: BrokerHeartbeatRequest) -> Any:
    return schema.make(
        "BrokerHeartbeatRequest",
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        current_metadata_offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
    )


def encode_heartbeat_response(
    schema: Schema, _: BrokerHeartbeatRequest, response: BrokerHeartbeatResponse
) -> Any:
    return schema.make(
        "BrokerHeartbeatResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        is_caught_up=response.is_caught_up,
        is_fenced=response.is_fenced,
        should_shut_down=response.should_shut_down,
    )


def decode_heartbeat_response(entity: Any, _: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        error=entity.error_code,
        is_caught_up=entity.is_caught_up,
        is_fenced=entity.is_fenced,
        should_shut_down=entity.should_shut_down,
    )

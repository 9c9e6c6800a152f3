"""Samples of the messages of administration: as a client writes them, and as the core is to see them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.wire import entities
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.types import METADATA, Endpoint, TopicPartition
from wrackline.broker.wire.schema import Schema

TP = TopicPartition("t", 3)
TOPIC = a.Resource(a.TOPIC, "t")
SECONDS = timedelta(seconds=2)


def asked(key: int, s: Schema) -> Any:
    make = partial(entities.make, s)
    match key:
        case 32:
            item = make(
                "DescribeConfigsResource",
                resource_type=2,
                resource_name="t",
                configuration_keys=("retention.ms",),
            )
            return make(
                "DescribeConfigsRequest",
                resources=(item,),
                include_synonyms=True,
                include_documentation=False,
            )
        case 37:
            new = make("CreatePartitionsAssignment", broker_ids=(1, 2))
            topic = make("CreatePartitionsTopic", name="t", count=4, assignments=(new,))
            return make("CreatePartitionsRequest", topics=(topic,), timeout=SECONDS, validate_only=True)
        case 55:
            part = make("PartitionData", partition_index=0)
            topic = make("TopicData", topic_name="__cluster_metadata", partitions=(part,))
            return make("DescribeQuorumRequest", topics=(topic,))
        case 43:
            kind = "ElectedTopic" if s.version == 3 else "TopicPartitions"
            topic = make(kind, topic="t", partitions=(3,), desired_leaders=(5,))
            return make("ElectLeadersRequest", election_type=1, topic_partitions=(topic,), timeout=SECONDS)
        case 33:
            change = make("AlterableConfig", name="min.insync.replicas", value="1")
            item = make("AlterConfigsResource", resource_type=2, resource_name="t", configs=(change,))
            return make("AlterConfigsRequest", resources=(item,), validate_only=True)
        case 44:
            change = make("AlterableConfig", name="min.insync.replicas", config_operation=0, value="1")
            item = make("AlterConfigsResource", resource_type=2, resource_name="t", configs=(change,))
            return make("IncrementalAlterConfigsRequest", resources=(item,), validate_only=True)
        case 45:
            parts = (
                make("ReassignablePartition", partition_index=3, replicas=(4, 5)),
                make("ReassignablePartition", partition_index=4, replicas=None),
            )
            topic = make("ReassignableTopic", name="t", partitions=parts)
            return make("AlterPartitionReassignmentsRequest", timeout=SECONDS, topics=(topic,))
        case 46:
            topic = make("ListPartitionReassignmentsTopics", name="t", partition_indexes=(3,))
            return make("ListPartitionReassignmentsRequest", timeout=SECONDS, topics=(topic,))
        case 57:
            update = make(
                "FeatureUpdateKey",
                feature="metadata.version",
                max_version_level=23,
                upgrade_type=2,
                allow_downgrade=True,
            )
            return make("UpdateFeaturesRequest", timeout=SECONDS, feature_updates=(update,))
        case _:
            return make("UnregisterBrokerRequest", broker_id=7)


_MOVES = (a.Reassignment(TP, (4, 5)), a.Reassignment(TopicPartition("t", 4), None))
_REFUSED = a.PartitionOutcome(TP, ErrorCode.invalid_replica_assignment, "no")
EXPECTED: dict[int, tuple[Any, Any]] = {
    32: (
        a.DescribeConfigsRequest(((TOPIC, ("retention.ms",)),), include_synonyms=True),
        a.DescribeConfigsResponse(
            (a.DescribedResource(TOPIC, ((a.Setting("retention.ms", "77", a.Source.TOPIC),),)),)
        ),
    ),
    37: (
        a.CreatePartitionsRequest((a.NewPartitions("t", 4, ((1, 2),)),), 2_000, True),
        a.CreatePartitionsResponse((a.TopicOutcome("t", ErrorCode.invalid_partitions, "no"),)),
    ),
    43: (a.ElectLeadersRequest(1, (TP,), 2_000, (5,)), a.ElectLeadersResponse((_REFUSED,))),
    33: (
        a.AlterConfigsRequest(
            (a.AlteredResource(TOPIC, (a.ConfigChange("min.insync.replicas", 0, "1"),)),), True
        ),
        a.IncrementalAlterConfigsResponse((a.ResourceOutcome(TOPIC, ErrorCode.invalid_config, "no"),)),
    ),
    44: (
        a.IncrementalAlterConfigsRequest(
            (a.AlteredResource(TOPIC, (a.ConfigChange("min.insync.replicas", 0, "1"),)),), True
        ),
        a.IncrementalAlterConfigsResponse((a.ResourceOutcome(TOPIC, ErrorCode.invalid_config, "no"),)),
    ),
    45: (
        a.AlterPartitionReassignmentsRequest(_MOVES, 2_000),
        a.AlterPartitionReassignmentsResponse((_REFUSED,)),
    ),
    46: (
        a.ListPartitionReassignmentsRequest((TP,), 2_000),
        a.ListPartitionReassignmentsResponse((a.OngoingReassignment(TP, (4, 5, 1), (4, 5), (1,)),)),
    ),
    55: (
        a.DescribeQuorumRequest((METADATA,)),
        a.DescribeQuorumResponse(
            leader_id=101,
            leader_epoch=4,
            high_watermark=40,
            voters=(a.QuorumReplica(101, 41, UUID(int=5)), a.QuorumReplica(102, -1)),
            observers=(a.QuorumReplica(1, 39),),
            nodes=(Endpoint(101, "h1", 9_093),),
        ),
    ),
    57: (
        a.UpdateFeaturesRequest((a.FeatureUpdate("metadata.version", 23, 2),), 2_000),
        a.UpdateFeaturesResponse(ErrorCode.invalid_update_version, "no"),
    ),
    64: (
        a.UnregisterBrokerRequest(7),
        a.UnregisterBrokerResponse(ErrorCode.broker_id_not_registered, "no"),
    ),
}
TOLD = {
    32: ["name='retention.ms'", "value='77'", "config_source=1"],
    37: ["name='t'", "ErrorCode.invalid_partitions"],
    43: ["topic='t'", "partition_id=3", "ErrorCode.invalid_replica_assignment"],
    33: ["resource_name='t'", "ErrorCode.invalid_config"],
    44: ["resource_name='t'", "ErrorCode.invalid_config"],
    45: ["partition_index=3", "ErrorCode.invalid_replica_assignment"],
    46: ["adding_replicas=(4, 5)", "removing_replicas=(1,)", "replicas=(4, 5, 1)"],
    55: ["leader_id=101", "high_watermark=40", "log_end_offset=41", "log_end_offset=39"],
    57: ["ErrorCode.invalid_update_version", "error_message='no'"],
    64: ["ErrorCode.broker_id_not_registered"],
}

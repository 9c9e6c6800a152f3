"""Log directories of one broker (JBOD): what lies in each, and moves of replicas between them (KIP-113).

In the versions that Apache Kafka from 2.8 to 4.x speaks.
"""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.alter_replica_log_dirs.v2.response import AlterReplicaLogDirsResponse
from kio.schema.describe_log_dirs.v2.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v2.response import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from wrackline.kafka_client.connection import Connection, by_topic
from wrackline.kafka_client.model import LogDir, Outcome, Place, StoredLog


def describe_log_dirs(connection: Connection) -> tuple[LogDir, ...]:
    """Returns the log directories of the broker that is asked, and all logs in them. Raises ProtocolError."""
    answer = connection.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return tuple(
        LogDir(
            one.log_dir,
            one.error_code is not ErrorCode.none,
            tuple(
                StoredLog((str(topic.name), int(log.partition_index)), log.is_future_key, int(log.offset_lag))
                for topic in one.topics
                for log in topic.partitions
            ),
        )
        for one in answer.results
    )


def move_logs(connection: Connection, targets: Mapping[Place, str]) -> list[Outcome]:
    """Begins to move replicas of the broker that is asked to other log directories, by path. Raises
    ProtocolError."""
    dirs = tuple(
        AlterReplicaLogDir(
            path=path,
            topics=tuple(
                AlterReplicaLogDirTopic(name=TopicName(topic), partitions=tuple(map(i32, partitions)))
                for topic, partitions in by_topic(
                    (place, place[1]) for place, to in sorted(targets.items()) if to == path
                )
            ),
        )
        for path in sorted(set(targets.values()))
    )
    answer = connection.request(AlterReplicaLogDirsRequest(dirs=dirs), AlterReplicaLogDirsResponse)
    return [
        Outcome((str(topic.topic_name), int(one.partition_index)), one.error_code, None)
        for topic in answer.results
        for one in topic.partitions
    ]

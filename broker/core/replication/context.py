"""Context that the parts of one broker share: the event's clock and effects, settings, rules, the cluster
image."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.continuations import Continuations
from wrackline.broker.core.replication.throttle import Throttle
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.events import Boot
from wrackline.broker.model.messages.requests import LeaderIdAndEpoch
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import NO_EPOCH, NodeId, TopicPartition
from wrackline.broker.rules.profile import Rules


class Context(Continuations):
    def __init__(self, config: BrokerConfig, rules: Rules) -> None:
        super().__init__()
        self.config = config
        self.rules = rules
        self.image = ClusterImage()
        self.throttle = Throttle(config)
        self.clock_ms: float | None = None
        """The time of day when the last request came."""
        self.broker_epoch = NO_EPOCH
        self.incarnation = UUID(int=0)

    def started(self, boot: Boot) -> None:
        """A new life of the process, with what it found on the disk."""
        self.incarnation = boot.incarnation_id
        self.trace(
            "start",
            previous_epoch=boot.previous_broker_epoch,
            clean=boot.previous_broker_epoch != NO_EPOCH,
            incarnation=str(boot.incarnation_id),
            logs={
                str(tp): {
                    "topic_id": str(log.topic_id),
                    "start": log.log_start,
                    "leo": log.leo,
                    "flushed": log.flushed,
                    "hwm": log.high_watermark,
                }
                for tp, log in sorted(boot.logs.items())
            },
        )

    # --- what the image says -------------------------------------------------------------------------------

    def refuse_leadership(
        self, tp: TopicPartition, topic_id: UUID | None
    ) -> tuple[ErrorCode, LeaderIdAndEpoch | None]:
        """Returns the error for a partition that this broker does not lead, and its leader: it is unknown
        altogether, or another broker leads it."""
        if topic_id is not None and topic_id not in self.image.topics_by_id:
            return ErrorCode.unknown_topic_id, None
        leader = self.leader_of(tp)
        known = leader is not None
        return ErrorCode.not_leader_or_follower if known else ErrorCode.unknown_topic_or_partition, leader

    def leader_of(self, tp: TopicPartition) -> LeaderIdAndEpoch | None:
        """Returns the leader for answers that send the asker elsewhere."""
        partition = self.image.partition(tp)
        return None if partition is None else LeaderIdAndEpoch(partition.leader, partition.leader_epoch)

    def registered_epoch(self, broker: NodeId) -> int:
        registration = self.image.brokers.get(broker)
        return NO_EPOCH if registration is None else registration.epoch

    def is_active(self, broker: NodeId) -> bool:
        registration = self.image.brokers.get(broker)
        return registration is not None and registration.active

    def max_message_bytes(self, topic: str) -> int:
        configured = self.image.setting(topic, "max.message.bytes")
        return self.config.max_message_bytes if configured is None else int(configured)

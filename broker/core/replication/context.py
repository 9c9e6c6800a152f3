"""What the parts of one broker share: the event's clock and effects, settings, rules, the cluster image.

Requests and timers carry their continuation, kept here under their correlation or key, so that a part says
in one place what it asks and what it does with the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from wrackline.broker.core.replication.throttle import Throttle
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import CancelTimer, Effect, Reply, Send, SetTimer, Trace
from wrackline.broker.model.events import Boot
from wrackline.broker.model.image import ClusterImage
from wrackline.broker.model.messages import LeaderIdAndEpoch, Request, Response
from wrackline.broker.model.types import NO_EPOCH, NodeId, TopicPartition
from wrackline.broker.rules.profile import Rules

OnAnswer = Callable[[Response | None], None]
"""Takes the response, or None when none will come (the request may have been carried out)."""
OnFire = Callable[[], None]


class Context:
    def __init__(self, config: BrokerConfig, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.image = ClusterImage()
        self.throttle = Throttle(config)
        self.out: list[Effect] = []
        self.now_ms = 0.0
        self.clock_ms: float | None = None
        """The time of day when the last request came."""
        self.broker_epoch = NO_EPOCH
        self.incarnation = UUID(int=0)
        self._correlation = 0
        self._answers: dict[int, OnAnswer] = {}
        self._timers: dict[str, OnFire] = {}

    def begin(self, now_ms: float) -> None:
        self.out = []
        self.now_ms = now_ms

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

    def reply(self, request_id: int, response: Response) -> None:
        self.out.append(Reply(request_id, response))

    def trace(self, kind: str, **fields: Any) -> None:
        self.out.append(Trace(kind, fields))

    # --- questions and answers -----------------------------------------------------------------------------

    def send(
        self, destination: NodeId, channel: str, request: Request, timeout_ms: float, on_answer: OnAnswer
    ) -> int:
        """The request's correlation. ``on_answer`` is called exactly once, unless ``forget`` is."""
        self._correlation += 1
        self._answers[self._correlation] = on_answer
        self.out.append(Send(self._correlation, destination, channel, request, int(timeout_ms)))
        return self._correlation

    def answered(self, correlation: int, response: Response | None) -> None:
        on_answer = self._answers.pop(correlation, None)
        if on_answer is not None:
            on_answer(response)

    # --- timers --------------------------------------------------------------------------------------------

    def set_timer(self, key: str, at_ms: float, on_fire: OnFire) -> None:
        self._timers[key] = on_fire
        self.out.append(SetTimer(key, at_ms))

    def cancel_timer(self, key: str) -> None:
        if self._timers.pop(key, None) is not None:
            self.out.append(CancelTimer(key))

    def fired(self, key: str) -> None:
        on_fire = self._timers.pop(key, None)
        if on_fire is not None:
            on_fire()

    # --- what the image says -------------------------------------------------------------------------------

    def leader_of(self, tp: TopicPartition) -> LeaderIdAndEpoch | None:
        """For answers that send the asker elsewhere."""
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

"""CreateTopics, served by a broker as the administrator that the document has do it (docs/protocol.md Z03).

The document's administrator writes into ZooKeeper; clients of Kafka's protocol ask a broker.
"""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.coordination import Answer, Operation, Outcome
from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
)
from wrackline.broker.model.types import NodeId
from wrackline.zookeeper.core.administration import create_topic
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.view import View

DEFAULT_PARTITIONS = 1
DEFAULT_REPLICATION_FACTOR = 3


class Topics:
    def __init__(self, ctx: Context, coordination: Coordination, view: View) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._view = view

    def create(self, request_id: int, request: CreateTopicsRequest) -> None:
        results: list[CreatedTopic] = []
        left = list(request.topics)

        def next_one() -> None:
            if not left:
                self._ctx.reply(request_id, CreateTopicsResponse(tuple(results)))
                return
            topic = left.pop(0)
            assignment = self._placed(topic)
            if isinstance(assignment, CreatedTopic) or request.validate_only:
                results.append(
                    assignment if isinstance(assignment, CreatedTopic) else CreatedTopic(topic.name)
                )
                next_one()
                return
            operations = create_topic(topic.name, assignment, dict(topic.configs))
            self._write(topic, operations, made)

        def made(topic: CreatedTopic) -> None:
            results.append(topic)
            next_one()

        next_one()

    def _write(
        self, topic: NewTopic, operations: list[Operation], then: Callable[[CreatedTopic], None]
    ) -> None:
        """All at once, since ZooKeeper keeps their order; the first answer that is not OK is the outcome."""
        outcomes: list[Outcome] = []

        def answered(answer: Answer) -> None:
            outcomes.append(answer.outcome)
            if len(outcomes) == len(operations):
                error = next((outcome for outcome in outcomes if outcome is not Outcome.OK), Outcome.OK)
                then(CreatedTopic(topic.name, _ERRORS.get(error, ErrorCode.request_timed_out), error.value))

        for operation in operations:
            self._coordination.ask(operation, answered)

    def _placed(self, topic: NewTopic) -> dict[int, tuple[NodeId, ...]] | CreatedTopic:
        """Places the topic's replicas on the brokers that are live now."""
        rules, live = self._ctx.rules, sorted(self._view.live)
        if reason := rules.topics.name_error(topic.name, self._ctx.image.topics_by_name):
            return CreatedTopic(topic.name, ErrorCode.invalid_topic_exception, reason)
        if reason := rules.topics.config_error(topic.configs):
            return CreatedTopic(topic.name, ErrorCode.invalid_config, reason)
        if topic.assignments:
            named = {number: tuple(replicas) for number, replicas in topic.assignments.items()}
            if any(len(set(replicas)) != len(replicas) for replicas in named.values()):
                error = ErrorCode.invalid_replica_assignment
                return CreatedTopic(topic.name, error, "a broker is named twice for one partition")
            return named
        factor = topic.replication_factor if topic.replication_factor > 0 else DEFAULT_REPLICATION_FACTOR
        partitions = topic.partitions if topic.partitions > 0 else DEFAULT_PARTITIONS
        if factor > len(live):
            error = ErrorCode.invalid_replication_factor
            return CreatedTopic(topic.name, error, f"{factor} replicas on {len(live)} brokers")
        return dict(enumerate(rules.placement.place(live, partitions, factor)))


_ERRORS = {
    Outcome.OK: ErrorCode.none,
    Outcome.NODE_EXISTS: ErrorCode.topic_already_exists,
}

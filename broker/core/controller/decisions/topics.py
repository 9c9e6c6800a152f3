"""Topics come and go (docs/protocol.md Z02-Z07, 2.16): CreateTopics and DeleteTopics at the controller."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.model.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    NewPartitions,
    TopicOutcome,
)
from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
)
from wrackline.broker.model.metadata.image import TopicImage
from wrackline.broker.model.metadata.records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from wrackline.broker.model.types import NodeId, Placement
from wrackline.broker.rules.placement.reassign import Assignment as Replicas

MAX_PARTITIONS = 10_000
"""Of one topic: all its records are one batch of the metadata log (Kafka's limit for one operation)."""

Assignment = tuple[tuple[NodeId, ...], ...]


class TopicRefused(Exception):
    """The topic cannot be made like this."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def create_topics(draft: Draft, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Each topic of its own: one that is refused does not stop the others."""
    times = Counter(topic.name for topic in request.topics)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if times[topic.name] > 1:
                raise TopicRefused(ErrorCode.invalid_request, f"topic {topic.name!r} asked for twice")
            assignment = _check(draft, topic)
        except TopicRefused as refused:
            results.append(CreatedTopic(topic.name, refused.error, str(refused)))
            continue
        topic_id = UUID(int=0) if request.validate_only else _create(draft, topic, assignment)
        results.append(
            CreatedTopic(
                name=topic.name,
                topic_id=topic_id,
                partitions=len(assignment),
                replication_factor=len(assignment[0]),
            )
        )
    return CreateTopicsResponse(tuple(results))


def _check(draft: Draft, topic: NewTopic) -> Assignment:
    """The replicas of each partition. Raises TopicRefused."""
    rules = draft.rules.topics
    if reason := rules.name_error(topic.name, draft.image.topics_by_name):
        raise TopicRefused(ErrorCode.invalid_topic_exception, reason)
    if topic.name in draft.image.topics_by_name:
        raise TopicRefused(ErrorCode.topic_already_exists, f"topic {topic.name!r} exists already")
    if reason := rules.config_error(topic.configs):
        raise TopicRefused(ErrorCode.invalid_config, reason)
    return _manual(draft, topic) if topic.assignments else _placed(draft, topic)


def _placed(draft: Draft, topic: NewTopic) -> Assignment:
    partitions = draft.config.default_partitions if topic.partitions == -1 else topic.partitions
    factor = (
        draft.config.default_replication_factor
        if topic.replication_factor == -1
        else topic.replication_factor
    )
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise TopicRefused(
            ErrorCode.invalid_partitions, f"{partitions} partitions: 1 to {MAX_PARTITIONS} are allowed"
        )
    return _place(draft, partitions, factor)


def _place(draft: Draft, partitions: int, factor: int, first: int = 0) -> Assignment:
    """Places partitions by the configured rule, on the brokers that are live now. Raises TopicRefused."""
    live = sorted(draft.active_brokers())
    if not 1 <= factor <= len(live):
        raise TopicRefused(
            ErrorCode.invalid_replication_factor,
            f"replication factor {factor} with {len(live)} brokers unfenced {live}",
        )
    rules = draft.rules.placement
    if draft.config.placement is Placement.STRIPED:
        racks = {broker: draft.image.brokers[broker].rack for broker in live}
        return rules.place_striped(racks, partitions, factor, first)
    return rules.place(live, partitions, factor, first)


def _manual(draft: Draft, topic: NewTopic) -> Assignment:
    if (topic.partitions, topic.replication_factor) != (-1, -1):
        raise TopicRefused(
            ErrorCode.invalid_request, "with an assignment, partitions and replication factor must be -1"
        )
    numbers = sorted(topic.assignments)
    assignment = tuple(tuple(topic.assignments[number]) for number in numbers)
    if numbers != list(range(len(numbers))):
        raise TopicRefused(
            ErrorCode.invalid_replica_assignment,
            f"partitions {numbers}: they must be numbered from 0 without gaps",
        )
    return _checked(draft, assignment)


def _checked(draft: Draft, assignment: Assignment) -> Assignment:
    """Raises TopicRefused when the cluster cannot have such replicas."""
    problem = None
    if len({len(replicas) for replicas in assignment}) != 1 or not assignment[0]:
        problem = "every partition needs the same number of replicas, at least one"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment):
        problem = "a broker is named twice for one partition"
    elif unknown := {b for replicas in assignment for b in replicas} - set(draft.image.brokers):
        problem = f"brokers {sorted(unknown)} are not registered"
    elif not all(draft.active_brokers() & set(replicas) for replicas in assignment):
        problem = "a partition has no replica on an unfenced broker"
    if problem:
        raise TopicRefused(ErrorCode.invalid_replica_assignment, problem)
    return assignment


def _create(draft: Draft, topic: NewTopic, assignment: Assignment) -> UUID:
    """Replicas on fenced brokers start outside the ISR."""
    topic_id = draft.new_id(topic.name)
    draft.add(TopicRecord(topic.name, topic_id))
    for key, value in topic.configs.items():
        draft.add(ConfigRecord("topic", topic.name, key, value))
    _add_partitions(draft, topic_id, assignment)
    return topic_id


def _add_partitions(draft: Draft, topic_id: UUID, assignment: Assignment, first: int = 0) -> None:
    active = draft.active_brokers()
    for number, replicas in enumerate(assignment, first):
        isr = tuple(replica for replica in replicas if replica in active)
        draft.add(
            PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                leader=isr[0],
                leader_epoch=0,
                partition_epoch=0,
            )
        )


def create_partitions(draft: Draft, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """More partitions for topics that exist; the ones there are stay as they are."""
    times = Counter(wanted.topic for wanted in request.topics)
    results = []
    for expected in {wanted.topic: wanted for wanted in request.topics}.values():
        try:
            if times[expected.topic] > 1:
                raise TopicRefused(ErrorCode.invalid_request, f"topic {expected.topic!r} asked for twice")
            topic, assignment = _check_more(draft, expected)
        except TopicRefused as refused:
            results.append(TopicOutcome(expected.topic, refused.error, str(refused)))
            continue
        if not request.validate_only:
            _add_partitions(draft, topic.topic_id, assignment, len(topic.partitions))
        results.append(TopicOutcome(expected.topic))
    return CreatePartitionsResponse(tuple(results))


def _check_more(draft: Draft, wanted: NewPartitions) -> tuple[TopicImage, Assignment]:
    """The topic, and the replicas of its new partitions. Raises TopicRefused."""
    topic = draft.image.topics_by_name.get(wanted.topic)
    if topic is None:
        raise TopicRefused(ErrorCode.unknown_topic_or_partition, f"there is no topic {wanted.topic!r}")
    known = len(topic.partitions)
    if not known < wanted.count <= MAX_PARTITIONS:
        raise TopicRefused(
            ErrorCode.invalid_partitions,
            f"{wanted.count} partitions: topic {wanted.topic!r} has {known}, at most {MAX_PARTITIONS} are "
            "allowed",
        )
    more = wanted.count - known
    factor = Replicas.of(topic.partitions[0]).factor
    if wanted.assignments is None:
        return topic, _place(draft, more, factor, first=known)
    if len(wanted.assignments) != more or {len(replicas) for replicas in wanted.assignments} != {factor}:
        raise TopicRefused(
            ErrorCode.invalid_replica_assignment,
            f"{len(wanted.assignments)} assignments; {more} of {factor} replicas each are needed",
        )
    return topic, _checked(draft, wanted.assignments)


def delete_topics(draft: Draft, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    results = []
    for name in dict.fromkeys(request.topics):
        topic = draft.image.topics_by_name.get(name)
        if topic is None:
            results.append(DeletedTopic(name, ErrorCode.unknown_topic_or_partition))
            continue
        draft.add(RemoveTopicRecord(topic.topic_id))
        results.append(DeletedTopic(name, topic_id=topic.topic_id))
    for topic_id in dict.fromkeys(request.topic_ids):
        topic = draft.image.topics_by_id.get(topic_id)
        if topic is None:
            results.append(DeletedTopic(None, ErrorCode.unknown_topic_id, topic_id))
            continue
        draft.add(RemoveTopicRecord(topic.topic_id))
        results.append(DeletedTopic(topic.name, topic_id=topic_id))
    return DeleteTopicsResponse(tuple(results))

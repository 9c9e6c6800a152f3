"""Settings that the whole cluster goes by: its defaults, and what is changed while it runs with
IncrementalAlterConfigs or AlterConfigs (docs/protocol.md 2.8, config; KAFKA-16540).

They are records of the metadata log, so everybody counts by them from the same offset on. A change of MinISR
is one batch with what follows from it for each partition.
"""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.partitions import reconsider
from wrackline.broker.model.messages.admin import (
    BROKER,
    TOPIC,
    AlterConfigsRequest,
    AlteredResource,
    AlterOp,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    Resource,
    ResourceOutcome,
)
from wrackline.broker.model.metadata.image import CLUSTER_DEFAULTS, CLUSTER_DYNAMIC, PartitionImage
from wrackline.broker.model.metadata.records import ConfigRecord
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.rules.placement.topics import RECOVERY_STRATEGY

Key = tuple[str, str]
Values = dict[str, str | None]


class ConfigRefused(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def alter_configs(draft: Draft, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Each resource of its own."""
    outcomes = []
    for item in request.resources:
        try:
            key, values = _check(draft, item, replaces=isinstance(request, AlterConfigsRequest))
        except ConfigRefused as refused:
            outcomes.append(ResourceOutcome(item.resource, refused.error, str(refused)))
            continue
        if not request.validate_only:
            _write(draft, key, values)
        outcomes.append(ResourceOutcome(item.resource))
    return IncrementalAlterConfigsResponse(tuple(outcomes))


def _check(draft: Draft, item: AlteredResource, *, replaces: bool) -> tuple[Key, Values]:
    """Returns what is to be written where; None deletes, and with ``replaces`` so does silence. Raises
    ConfigRefused."""
    key = _key(draft, item.resource)
    values: Values = {}
    for name, op, value in item.changes:
        if name in values:
            raise ConfigRefused(ErrorCode.invalid_request, f"setting {name!r} is changed twice")
        if op == AlterOp.DELETE:
            values[name] = None
        elif op == AlterOp.SET:
            values[name] = value if value is not None else ""
        else:
            raise ConfigRefused(
                ErrorCode.invalid_config, f"setting {name!r} is no list to add to or take from"
            )
    set_now = {name: value for name, value in values.items() if value is not None}
    rules = draft.rules.topics
    problem = rules.config_error(set_now) if key[0] == "topic" else rules.cluster_config_error(set_now)
    if problem:
        raise ConfigRefused(ErrorCode.invalid_config, problem)
    gone = draft.image.configs.get(key, {}).keys() - values.keys() if replaces else ()
    return key, {**values, **dict.fromkeys(sorted(gone))}


def _key(draft: Draft, resource: Resource) -> Key:
    if resource.kind == TOPIC:
        if resource.name not in draft.image.topics_by_name:
            raise ConfigRefused(ErrorCode.unknown_topic_or_partition, f"there is no topic {resource.name!r}")
        return "topic", resource.name
    if resource.kind == BROKER and resource.name == "":
        return CLUSTER_DYNAMIC
    if resource.kind == BROKER:
        raise ConfigRefused(
            ErrorCode.invalid_request,
            f"broker {resource.name} has its settings in its file; "
            "those of the whole cluster (name '') can be changed here",
        )
    raise ConfigRefused(ErrorCode.invalid_request, f"resources of type {resource.kind} have no settings here")


def _write(draft: Draft, key: Key, values: Mapping[str, str | None]) -> None:
    known = draft.image.configs.get(key, {})
    news = {name: value for name, value in values.items() if known.get(name) != value}
    before = _effective_min_isrs(draft)
    for name, value in news.items():
        draft.add(ConfigRecord(*key, name, value))
    if news:
        _settle(draft, before)


def write_defaults(draft: Draft) -> None:
    """Cluster-wide topic defaults live in the log, so that brokers and controller agree on them. The file of
    whoever becomes the active controller says what they are."""
    config = draft.config
    expected = {
        **config.topic_defaults,
        "min.insync.replicas": str(config.min_insync_replicas),
        "unclean.leader.election.enable": "true" if config.unclean_leader_election else "false",
    }
    if draft.rules.switches.has_elr:
        expected[RECOVERY_STRATEGY] = config.unclean_recovery_strategy.value
    known = dict(draft.image.configs.get(CLUSTER_DEFAULTS, {}))
    before = _effective_min_isrs(draft)
    for key in sorted(known.keys() | expected.keys()):
        if known.get(key) != expected.get(key):
            draft.add(ConfigRecord(*CLUSTER_DEFAULTS, key, expected.get(key)))
    if draft.records:
        _settle(draft, before)


def _effective_min_isrs(draft: Draft) -> dict[TopicPartition, int]:
    return {partition.tp: draft.image.min_isr(partition.tp) for partition in draft.image.partitions()}


def _settle(draft: Draft, before: Mapping[TopicPartition, int]) -> None:
    """Applies changed settings to partitions: first those whose effective MinISR is another now, then
    leaderless ones, that may have become electable."""
    changed: list[tuple[PartitionImage, int]] = []
    for partition in draft.image.partitions():
        min_isr = draft.image.min_isr(partition.tp)
        if before.get(partition.tp) != min_isr:
            changed.append((partition, min_isr))
    for partition, min_isr in changed:
        draft.add(draft.rules.election.min_isr_changed(partition, min_isr))
    reconsider(draft)

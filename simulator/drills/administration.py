"""Drills of administrators' requests: each is asked for as it should be, and in every wrong way there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.features import write_first_level
from wrackline.broker.model.messages.admin import (
    BROKER,
    TOPIC,
    AlterConfigsRequest,
    AlteredResource,
    AlterOp,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    CreatePartitionsRequest,
    ElectionType,
    ElectLeadersRequest,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    NewPartitions,
    Reassignment,
    Resource,
    UpdateFeaturesRequest,
    UpgradeType,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.metadata.features import METADATA_VERSION, NAMES, Levels
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from wrackline.broker.model.types import METADATA, NodeId, TopicPartition
from wrackline.broker.rules.placement.growth import plan_growth
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to

_TOPIC, _TWIN = "admin.istration", "admin_istration"
"""The drill's topic, and a name that is the same in metrics."""
_STRANGER: NodeId = 77
"""No broker has this id."""
_BOUNDS = (
    ("retention.ms", "-2", "-1"),
    ("retention.bytes", "-2", "-1"),
    ("min.insync.replicas", "0", "1"),
    ("flush.messages", "0", "1"),
    ("flush.ms", "-1", "0"),
    ("segment.bytes", "1023", "1024"),
    ("segment.bytes", str(2**31), str(2**31 - 1)),
    ("segment.ms", "0", "1"),
    ("max.message.bytes", "-1", "0"),
    ("cleanup.policy", "compact", "delete"),
    ("unclean.leader.election.enable", "yes", "false"),
)
"""Setting of a topic, a value that is refused, and the nearest that is not."""
Move = tuple[tuple[NodeId, ...], tuple[NodeId, ...], tuple[NodeId, ...]]
"""(replicas, adding, removing) of a partition."""
_PLANS = 12
"""For new brokers, beside the one of the cluster."""
_LOOKS = 6
"""A controller that was not heard reports its levels again after a while."""
ADMINISTRATION: list[Drill] = []
_administration = add_to(ADMINISTRATION)


def _create(ground: Ground, topic: NewTopic, *, validate_only: bool = False) -> ErrorCode:
    request = CreateTopicsRequest((topic,), ANSWER_MS, validate_only)
    error: ErrorCode = ground.ask(ground.any_broker(), request).topics[0].error
    return error


def _replicas(ground: Ground) -> list[tuple[NodeId, ...]]:
    """Of each partition of the drill's topic."""
    topic = ground.world.image.topics_by_name.get(_TOPIC)
    return [] if topic is None else [topic.partitions[number].replicas for number in sorted(topic.partitions)]


@contextmanager
def _topic(ground: Ground, topic: NewTopic) -> Iterator[None]:
    ground.expect(f"the answer to {topic}", _create(ground, topic), ErrorCode.none)
    yield
    request = DeleteTopicsRequest((), ANSWER_MS, (ground.world.image.topics_by_name[_TOPIC].topic_id,))
    error = ground.ask(ground.any_broker(), request).topics[0].error
    ground.expect("the answer to a deletion by id", error, ErrorCode.none)
    again = ground.ask(ground.any_broker(), request).topics[0].error
    ground.expect("the answer to a second deletion", again, ErrorCode.unknown_topic_id)
    by_name = ground.ask(ground.any_broker(), DeleteTopicsRequest((_TOPIC,), ANSWER_MS)).topics[0].error
    ground.expect("the answer to a deletion by name", by_name, ErrorCode.unknown_topic_or_partition)


@_administration
def growth_of_a_topic(ground: Ground) -> None:
    """Partitions are added where they are asked for; leaders are spread; what is wrong is refused."""
    brokers = sorted(ground.world.brokers)
    first, second = ground.draw.sample(brokers, 2)
    placement = {0: (first, second), 1: (second, first)}
    for case, error in (
        (NewTopic(_TOPIC, 2, -1, placement), ErrorCode.invalid_request),
        (NewTopic(_TOPIC, assignments={0: (first,), 2: (second,)}), ErrorCode.invalid_replica_assignment),
        (
            NewTopic(_TOPIC, assignments={0: (first,), 1: (first, second)}),
            ErrorCode.invalid_replica_assignment,
        ),
        (NewTopic(_TOPIC, assignments={0: (first, first)}), ErrorCode.invalid_replica_assignment),
        (NewTopic(_TOPIC, assignments={0: (first, _STRANGER)}), ErrorCode.invalid_replica_assignment),
        (NewTopic(_TOPIC, assignments={0: ()}), ErrorCode.invalid_replica_assignment),
        (NewTopic(_TOPIC, 1, 1, configs={"nothing.such": "1"}), ErrorCode.invalid_config),
        (NewTopic(_TOPIC, 1, 1, configs={"min.insync.replicas": "0"}), ErrorCode.invalid_config),
        (NewTopic(_TOPIC, 1, 0), ErrorCode.invalid_replication_factor),
        (NewTopic("..", 1, 1), ErrorCode.invalid_topic_exception),
        (NewTopic("x" * 250, 1, 1), ErrorCode.invalid_topic_exception),
        (NewTopic(_TOPIC, 0, 1), ErrorCode.invalid_partitions),
        (NewTopic(_TOPIC, 10_001, 1), ErrorCode.invalid_partitions),
        (NewTopic(_TOPIC, 1, len(brokers) + 1), ErrorCode.invalid_replication_factor),
        (NewTopic(METADATA.topic, 1, 1), ErrorCode.invalid_topic_exception),
    ):
        ground.expect(f"the answer to {case}", _create(ground, case), error)
    topic = NewTopic(_TOPIC, assignments=placement)
    ground.expect(
        "a topic that is only validated", _create(ground, topic, validate_only=True), ErrorCode.none
    )
    ground.expect("its replicas", _replicas(ground), [])
    with _topic(ground, topic):
        ground.expect("the replicas as asked for", _replicas(ground), [placement[0], placement[1]])
        for name, error in (
            (_TOPIC, ErrorCode.topic_already_exists),
            (_TWIN, ErrorCode.invalid_topic_exception),
        ):
            ground.expect(f"the answer to another topic {name}", _create(ground, NewTopic(name, 1, 1)), error)
        _grow(ground, list(placement.values()), brokers)
    _plan_growth(ground)


def _grow(ground: Ground, before: list[tuple[NodeId, ...]], brokers: list[NodeId]) -> None:
    one, other = before[0]

    def grown(growth: NewPartitions, *, validate_only: bool = False) -> ErrorCode:
        request = CreatePartitionsRequest((growth,), ANSWER_MS, validate_only)
        error: ErrorCode = ground.ask(ground.any_broker(), request).topics[0].error
        return error

    for case, error in (
        (NewPartitions("nowhere", 4), ErrorCode.unknown_topic_or_partition),
        (NewPartitions(_TOPIC, 2), ErrorCode.invalid_partitions),
        (NewPartitions(_TOPIC, 1), ErrorCode.invalid_partitions),
        (NewPartitions(_TOPIC, 4, ((one, other),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions(_TOPIC, 3, ((one,),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions(_TOPIC, 3, ((one, _STRANGER),)), ErrorCode.invalid_replica_assignment),
    ):
        ground.expect(f"the answer to {case}", grown(case), error)
    ground.expect(
        "growth that is only validated", grown(NewPartitions(_TOPIC, 3), validate_only=True), ErrorCode.none
    )
    ground.expect("the replicas after what was refused", _replicas(ground), before)
    ground.expect("growth", grown(NewPartitions(_TOPIC, 3, ((other, one),))), ErrorCode.none)
    before = [*before, (other, one)]
    ground.expect("the replicas after growth", _replicas(ground), before)
    count = len(before) + len(brokers)
    ground.expect("growth by one for each broker", grown(NewPartitions(_TOPIC, count)), ErrorCode.none)
    now = _replicas(ground)
    ground.expect("the former replicas", now[: len(before)], before)
    added = now[len(before) :]
    racks = {node: ground.world.image.brokers[node].rack for node in brokers}
    if any(racks.values()):
        ground.expect("the racks of each", {len({racks[one] for one in both}) for both in added}, {2})
    else:
        ground.expect(
            "the first replicas of the new ones", sorted(replicas[0] for replicas in added), brokers
        )
    ground.expect("the sizes of the new ones", {len(set(replicas)) for replicas in added}, {2})


def _plan_growth(ground: Ground) -> None:
    """Plans for new brokers of this cluster and of drawn ones keep their promises (docs/protocol.md 2.16)."""
    draw = Random(f"{ground.session.setup.seed}/growth/{ground.world.steps}")
    now = {partition.tp: partition.replicas for partition in ground.partitions}
    _expect_plan(ground, now, [_STRANGER], [], {})
    for _ in range(_PLANS):
        old = list(range(1, draw.randint(2, 6)))
        new = [len(old) + at for at in range(1, draw.randint(2, 4))]
        holders = [*old[: draw.randint(1, len(old))], *new[: draw.choice((0, 0, 1))]]
        factor = draw.randint(1, min(3, len(holders)))
        assignments = {
            TopicPartition(_TOPIC, number): tuple(draw.sample(holders, factor))
            for number in range(draw.choice((1, 4, 9, 20)))
        }
        names = draw.choice(((None,), ("a", "b"), ("a", "b", "c"), ("a", "b", None)))
        racks = {node: draw.choice(names) for node in (*old, *new)}
        _expect_plan(ground, assignments, new, draw.choice((old, [])), racks)


def _expect_plan(
    ground: Ground,
    before: Mapping[TopicPartition, tuple[NodeId, ...]],
    new: Sequence[NodeId],
    old: Sequence[NodeId],
    racks: Mapping[NodeId, str | None],
) -> None:
    """Replicas go from old brokers to new ones, no more than it takes, until no move narrows a gap; new ones
    lead their share of what has moved."""
    moves = plan_growth(before, new, old, racks)
    after = {**before, **{move.tp: move.after for move in moves}}
    case = f"the plan {moves} for {new} beside {old} in {dict(racks)}, of {dict(before)}"
    existing = sorted({*old, *(node for replicas in before.values() for node in replicas)} - set(new))
    load = Counter(node for replicas in after.values() for node in replicas)
    leading = Counter(replicas[0] for replicas in after.values())
    share = len(before) // len({*existing, *new})

    def spread(replicas: Iterable[NodeId]) -> int:
        return len({racks.get(node) for node in replicas})

    def narrows(replicas: tuple[NodeId, ...], source: NodeId, target: NodeId) -> bool:
        if load[source] - load[target] < 2 or source not in replicas or target in replicas:
            return False
        moved = [target if node == source else node for node in replicas]
        return racks.get(target) is None or spread(moved) >= spread(replicas)

    errors = []
    for move in moves:
        gone, come = set(move.before) - set(move.after), set(move.after) - set(move.before)
        right = move.before == before[move.tp] and len(set(move.after)) == len(move.after) == len(move.before)
        if not right or not come or not come <= set(new) or not gone <= set(existing):
            errors.append(f"a move of {move.tp} to {move.after}")
        if move.copied != len(come):
            errors.append(f"{move.copied} copies of {move.tp}")
        if spread(move.after) < spread(move.before) and all(racks.get(node) is not None for node in come):
            errors.append(f"fewer racks of {move.tp}")
        first, former = move.after[0], move.before[0]
        if first not in {*new, former} and former not in new:
            errors.append(f"an old broker that leads {move.tp} now")
        if first in existing and leading[first] > share and any(leading[one] < share for one in come):
            errors.append(f"too few led by new brokers, of {move.tp}")
        if len(come) > 1 or any(racks.values()):
            continue
        (source,), (target,) = gone, come
        if load[target] > load[source]:
            errors.append(f"more on new brokers than it takes, by {move.tp}")
        others = [replicas for tp, replicas in before.items() if after[tp] == replicas]
        if source == former and any(source in rest[1:] and target not in rest for rest in others):
            errors.append(f"a leader that moves, of {move.tp}")
        if first == target and former != source:  # it leads by another order alone
            rivals = [one.after[0] for one in moves if target in one.after and one.after[0] in existing]
            if len(new) == 1 and any(leading[one] > leading[former] + 1 for one in rivals):
                errors.append(f"a broker that leads less than others, and gives {move.tp}")
            if leading[former] < share or leading[first] > share:
                errors.append(f"more led than it takes, by {move.tp}")
    pairs = [(source, target) for source in existing for target in new]
    if any(narrows(replicas, *pair) for replicas in after.values() for pair in pairs):
        errors.append("a gap that is left")
    if plan_growth(after, new, old, racks):
        errors.append("more to move when it is done")
    ground.expect(case, errors, [])


def _is_placed(ground: Ground, tp: TopicPartition, replicas: tuple[NodeId, ...]) -> bool:
    image = ground.world.image.partition(tp)
    moves = image is None or image.adding or image.removing
    return not moves and image is not None and image.replicas == replicas


@_administration
def moves_of_replicas(ground: Ground) -> None:
    """A reassignment is under way until its new replica has all; it can be taken back, and ends."""
    world = ground.world
    brokers = sorted(world.brokers)
    former, later, third = ground.draw.sample(brokers, 3)
    tp = TopicPartition(_TOPIC, 0)

    def altered(target: tuple[NodeId, ...] | None, where: TopicPartition = tp) -> ErrorCode:
        request = AlterPartitionReassignmentsRequest((Reassignment(where, target),), ANSWER_MS)
        error: ErrorCode = ground.ask(ground.any_broker(), request).partitions[0].error
        return error

    def leader_epoch() -> int:
        image = world.image.partition(tp)
        return -1 if image is None else image.leader_epoch

    def under_way() -> list[Move]:
        partitions = ground.draw.choice((None, (tp, TopicPartition("nowhere", 0))))
        answer = ground.ask(ground.any_broker(), ListPartitionReassignmentsRequest(partitions, ANSWER_MS))
        return [(one.replicas, one.adding, one.removing) for one in answer.partitions if one.tp == tp]

    with _topic(ground, NewTopic(_TOPIC, assignments={0: (former, third)})):
        for target, error in (
            ((), ErrorCode.invalid_replica_assignment),
            ((later, later), ErrorCode.invalid_replica_assignment),
            ((later, _STRANGER), ErrorCode.invalid_replica_assignment),
            (None, ErrorCode.no_reassignment_in_progress),
        ):
            ground.expect(f"the answer to a reassignment to {target}", altered(target), error)
        nowhere = altered((later,), TopicPartition("nowhere", 0))
        ground.expect("a reassignment of no partition", nowhere, ErrorCode.unknown_topic_or_partition)
        hold = world.hold(lambda message: message.name == "FetchRequest" and message.source == later)
        ground.expect("the answer to a reassignment", altered((later, third)), ErrorCode.none)
        expected: list[Move] = [((later, third, former), (later,), (former,))]
        ground.expect("what is under way", under_way(), expected)
        # The one that is added is no replica yet by which new partitions are measured.
        growth = CreatePartitionsRequest((NewPartitions(_TOPIC, 2, ((third, former),)),), ANSWER_MS)
        grown = ground.ask(ground.any_broker(), growth).topics[0].error
        ground.expect("growth while replicas move", grown, ErrorCode.none)
        epoch = leader_epoch()
        ground.expect("the answer to another target", altered((former, later)), ErrorCode.none)
        ground.expect("the leader epoch when nobody has left", leader_epoch(), epoch)
        expected = [((former, later, third), (later,), (third,))]
        ground.expect("what is under way instead", under_way(), expected)
        ground.expect("the answer to its end", altered(None), ErrorCode.none)
        ground.expect("what is under way then", under_way(), [])
        # As in Kafka: what was there without what was to be added, in the order of the reassignment.
        ground.expect("the replicas then", _replicas(ground)[0], (former, third))
        ground.expect("the answer to one replica more", altered((former, third, later)), ErrorCode.none)
        expected = [((former, third, later), (later,), ())]
        ground.expect("what is under way with one more", under_way(), expected)
        ground.expect("the answer to its end", altered(None), ErrorCode.none)
        ground.expect("the replicas without it", _replicas(ground)[0], (former, third))
        ground.expect("the answer to the same again", altered((later, third)), ErrorCode.none)
        world.release(hold)
        limit_ms = 2 * ground.rejoin_ms
        ground.must("the replicas as asked for", lambda: _replicas(ground)[0] == (later, third), limit_ms)
        ground.expect("what is under way at the end", under_way(), [])
        ground.must("no log at the former one", lambda: tp not in world.brokers[former].disk.logs, limit_ms)
        for replicas in ((later, third, former), (third, later)):  # one more replica, and one less
            ground.expect(f"the answer to {replicas}", altered(replicas), ErrorCode.none)
            done = partial(_is_placed, ground, tp, replicas)
            ground.must(f"replicas {replicas}, and nothing under way", done, limit_ms)
        image = world.image.partition(tp)
        ground.expect("its leader is one of them", image is not None and image.leader in image.replicas, True)


@_administration
def alteration_of_settings(ground: Ground) -> None:
    """Settings are set, taken back, and replaced as a whole; what is wrong changes nothing."""
    broker = str(min(ground.world.brokers))

    def altered(
        kind: int, name: str, *changes: ConfigChange, whole: bool = False, dry: bool = False
    ) -> ErrorCode:
        make = AlterConfigsRequest if whole else IncrementalAlterConfigsRequest
        request = make((AlteredResource(Resource(kind, name), changes),), dry)
        error: ErrorCode = ground.ask(ground.any_broker(), request).resources[0].error
        return error

    def settings() -> dict[str, str]:
        return dict(ground.world.image.configs.get(("topic", _TOPIC), {}))

    size = ConfigChange("segment.bytes", AlterOp.SET, "70000")
    keep = ConfigChange("retention.ms", AlterOp.SET, "86400000")
    with _topic(ground, NewTopic(_TOPIC, 1, 2, configs={"retention.ms": "50000000"})):
        ground.expect("the settings of a new topic", settings(), {"retention.ms": "50000000"})
        for kind, name, change, error in (
            (TOPIC, "nowhere", size, ErrorCode.unknown_topic_or_partition),
            (TOPIC, _TOPIC, ConfigChange("segment.bytes", AlterOp.APPEND, "7"), ErrorCode.invalid_config),
            (TOPIC, _TOPIC, ConfigChange("segment.bytes", AlterOp.SET, "-7"), ErrorCode.invalid_config),
            (TOPIC, _TOPIC, ConfigChange("nothing.such", AlterOp.SET, "7"), ErrorCode.invalid_config),
            (BROKER, broker, size, ErrorCode.invalid_request),
            (BROKER, "", ConfigChange("nothing.such", AlterOp.SET, "7"), ErrorCode.invalid_config),
            (9, "x", size, ErrorCode.invalid_request),
        ):
            ground.expect(f"the answer to {change} of {kind} {name!r}", altered(kind, name, change), error)
        for name, bad, good in _BOUNDS:
            for value, error in ((bad, ErrorCode.invalid_config), (good, ErrorCode.none)):
                answer = altered(TOPIC, _TOPIC, ConfigChange(name, AlterOp.SET, value), dry=True)
                ground.expect(f"the answer to {name} {value}", answer, error)
        ground.expect(
            "a setting changed twice", altered(TOPIC, _TOPIC, size, size), ErrorCode.invalid_request
        )
        ground.expect(
            "a change that is only validated", altered(TOPIC, _TOPIC, size, dry=True), ErrorCode.none
        )
        ground.expect("the settings after that", settings(), {"retention.ms": "50000000"})
        ground.expect("two changes", altered(TOPIC, _TOPIC, size, keep), ErrorCode.none)
        both = {"retention.ms": "86400000", "segment.bytes": "70000"}
        ground.expect("the settings after two changes", settings(), both)
        gone = ConfigChange("retention.ms", AlterOp.DELETE, None)
        ground.expect("a setting taken back", altered(TOPIC, _TOPIC, gone), ErrorCode.none)
        ground.expect("the settings after that", settings(), {"segment.bytes": "70000"})
        _alter_min_isr_of_all(ground, lambda change: altered(BROKER, "", change))
        ground.expect("settings replaced", altered(TOPIC, _TOPIC, keep, whole=True), ErrorCode.none)
        ground.expect("the settings after that", settings(), {"retention.ms": "86400000"})


def _alter_min_isr_of_all(ground: Ground, altered: Callable[[ConfigChange], ErrorCode]) -> None:
    """The cluster's MinISR counts, in a new partition epoch, for a topic that has none of its own."""
    image, tp = ground.world.image, TopicPartition(_TOPIC, 0)
    first = image.min_isr(tp)
    other = 3 - first
    for op, value, right in ((AlterOp.SET, str(other), other), (AlterOp.DELETE, None, first)):
        before = ground.world.image.partition(tp)
        error = altered(ConfigChange("min.insync.replicas", op, value))
        ground.expect(f"the answer to {value} as the cluster's MinISR", error, ErrorCode.none)
        ground.expect("the MinISR of a topic then", ground.world.image.min_isr(tp), right)
        after = ground.world.image.partition(tp)
        assert before is not None
        assert after is not None
        if after.partition_epoch <= before.partition_epoch:
            ground.fail(f"the MinISR is {right}, and the partition epoch {after.partition_epoch} as before")


@_administration
def refused_features(ground: Ground) -> None:
    """The level that there is may be set once more. One that is none, or that is set the wrong way, is
    refused, and the level stays."""
    level = ground.world.image.level
    if level is None:
        return
    supported_levels(ground)
    _expect_levels(ground)
    repetition = UpdateFeaturesRequest((FeatureUpdate(METADATA_VERSION, level),), ANSWER_MS)
    answer = ground.ask(ground.any_broker(), repetition)
    ground.expect("the answer to the level that there is", answer.error, ErrorCode.none)
    lower = max((one for one in NAMES if one < level), default=level - 1)
    for update in (
        FeatureUpdate("nothing.such", level),
        FeatureUpdate(METADATA_VERSION, 10_000),
        FeatureUpdate(METADATA_VERSION, lower, UpgradeType.UPGRADE),
        FeatureUpdate(METADATA_VERSION, lower, UpgradeType.UNSAFE_DOWNGRADE),
    ):
        answer = ground.ask(ground.any_broker(), UpdateFeaturesRequest((update,), ANSWER_MS))
        if answer.error is ErrorCode.none:
            ground.fail(f"{update} was accepted; the level is {level}")
        ground.expect(f"the level after {update}", ground.world.image.level, level)


def _expect_levels(ground: Ground) -> None:
    """A new cluster begins with the highest level that its controller supports, a log that has something in
    it and no level stays without; who does not support a level does not go on with it."""
    active = ground.world.active_controller()
    assert active is not None
    assert active.core is not None
    core, stranger = active.core, UUID(int=_STRANGER)
    setting = ConfigRecord("topic", _TOPIC, "retention.ms", "1")
    broker = RegisterBrokerRecord(_STRANGER, stranger, 0, "stranger", 9092)
    for record in (None, broker, TopicRecord(_TOPIC, stranger), setting):
        draft = Draft(ClusterImage(), core.config, core.rules, stranger, 0)
        if record is not None:
            draft.add(record)
        before = len(draft.records)
        write_first_level(draft)
        right = [] if before else [FeatureLevelRecord(METADATA_VERSION, core.rules.levels.highest)]
        ground.expect(f"the level of a log that begins with {record}", draft.records[before:], right)
    rules, supported = core.rules.features, Levels(5, 7)
    for level in (None, 4, 5, 7, 8):
        fits = level is None or 5 <= level <= 7
        ground.expect(f"a start at level {level}", not rules.unknown_level(level, supported), fits)
        ground.expect(f"a registration at level {level}", rules.may_register(level, supported), fits)


def supported_levels(ground: Ground) -> None:
    """The active controller knows of every node which levels it supports, whoever led before: the level
    that there is would be accepted."""
    level = ground.world.image.level
    if level is None:
        return
    request = UpdateFeaturesRequest((FeatureUpdate(METADATA_VERSION, level),), ANSWER_MS, validate_only=True)
    for _ in range(_LOOKS):
        answer = ground.ask(ground.any_broker(), request)
        if answer.error is ErrorCode.none:
            return
        ground.rest(SLACK_MS)
    ground.fail(f"the level {level} that there is was refused: {answer.message}")


@_administration
def refused_elections(ground: Ground) -> None:
    """Who has a leader gets no other one, whoever asks for it, and however."""
    nowhere = TopicPartition("nowhere", 0)
    preferred, designated, unclean = ElectionType.PREFERRED, ElectionType.DESIGNATED, ElectionType.UNCLEAN
    other = ground.draw.choice(ground.followers() or [ground.image.leader])
    before = ground.image

    def elected(
        election: int, tps: tuple[TopicPartition, ...] | None, desired: tuple[NodeId, ...] = ()
    ) -> ErrorCode:
        request = ElectLeadersRequest(election, tps, ANSWER_MS, desired)
        answer = ground.ask(ground.any_broker(), request)
        error: ErrorCode = answer.error
        errors = [error, *(one.error for one in answer.partitions)]
        return next((one for one in errors if one is not ErrorCode.none), ErrorCode.none)

    for election, tps, desired, error in (
        (preferred, (ground.tp,), (), ErrorCode.election_not_needed),
        (preferred, (nowhere,), (), ErrorCode.unknown_topic_or_partition),
        (unclean, (ground.tp,), (), ErrorCode.election_not_needed),
        (unclean, (nowhere,), (), ErrorCode.unknown_topic_or_partition),
        (unclean, None, (), ErrorCode.none),
        (designated, (nowhere,), (other,), ErrorCode.unknown_topic_or_partition),
        (designated, (ground.tp,), (), ErrorCode.invalid_request),
        (9, (ground.tp,), (), ErrorCode.invalid_request),
    ):
        ground.expect(f"the answer to election {election} of {tps}", elected(election, tps, desired), error)
    if elected(designated, (ground.tp,), (other,)) is ErrorCode.none:
        ground.fail(f"node {other} was designated, and {before.leader} leads")
    ground.rest(SLACK_MS)
    now = ground.image.leader, ground.image.leader_epoch
    ground.expect("the leader and its epoch", now, (before.leader, before.leader_epoch))

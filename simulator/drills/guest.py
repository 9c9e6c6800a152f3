"""Drills with a guest: the drill plays one more broker, so it can say what no broker of the cluster would say
now, and a partition can lose its leader without anybody being killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.effects import Effect, Reply
from wrackline.broker.model.events import Event, RequestReceived
from wrackline.broker.model.messages.admin import (
    TOPIC,
    AlteredResource,
    AlterOp,
    ConfigChange,
    ElectionType,
    ElectLeadersRequest,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    PartitionOutcome,
    Resource,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
    UpgradeType,
)
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.metadata.features import METADATA_VERSION, NEWEST, WITH_ELR, WITHOUT_ELR, Levels
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.types import NO_LEADER, NodeId, RecoveryStrategy, TopicPartition
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to, isr_change

NODE: NodeId = 77
"""Of the guest."""
GUESTS = "guest"
"""The topic in which the guest has replicas."""
_STRATEGY = "unclean.recovery.strategy"
_WINDOW_MS = 2_000
"""How long answers are waited for when logs are compared."""
_EARLY_MS = 300
_WAYS_OF_A_RUN = 4
"""Of all the ways in which a partition gets a leader again."""
GUEST: list[Drill] = []
"""A run does one of them."""
_guest = add_to(GUEST)

Beat = tuple[bool, bool, bool]
"""An answer to a heartbeat: (is caught up, is fenced, should shut down)."""


class Guest:
    """A broker that the drill plays. It is a core like any other, and answers who asks for the ends of its
    logs; nothing else."""

    def __init__(self, ground: Ground, me: NodeId = NODE) -> None:
        self.ground = ground
        self.me = me
        self.epoch = -1
        self.lives = 0
        self.log: tuple[int, int] | None = None
        """(epoch of the last record, end) of every log that it is asked for; None: it does not answer."""
        self.current_epoch = 0
        self.error = ErrorCode.none
        self.questions = 0
        """How many times it was asked for the ends of its logs."""

    def handle(self, event: Event, now_ms: float) -> list[Effect]:  # noqa: ARG002
        if not isinstance(event, RequestReceived) or not isinstance(event.request, GetReplicaLogInfoRequest):
            return []
        self.questions += 1
        if self.log is None:
            return []
        epoch, end = self.log
        entries = tuple(
            ReplicaLogInfo(topic, number, epoch, self.current_epoch, end, self.error)
            for topic, number in event.request.partitions
        )
        return [Reply(event.request_id, GetReplicaLogInfoResponse(self.epoch, entries))]

    @property
    def image(self) -> BrokerImage | None:
        return self.ground.world.image.brokers.get(self.me)

    def ask(self, request: Request) -> Any:
        """Asks the active controller."""
        return self.ground.ask(_active(self.ground).config.node_id, request)

    def request(self, *, again: bool = False, former: int = -1) -> BrokerRegistrationRequest:
        """The registration of a new life, or once more of this one."""
        self.lives += not again
        level = self.ground.world.image.level
        levels = NEWEST if level is None else Levels(level, level)
        return BrokerRegistrationRequest(
            self.me, "simulated", UUID(int=self.me << 32 | self.lives), "guest", 9_092, None, former, levels
        )

    def register(self, request: BrokerRegistrationRequest) -> ErrorCode:
        answer = self.ask(request)
        if answer.error is ErrorCode.none:
            self.epoch = answer.broker_epoch
        error: ErrorCode = answer.error
        return error

    def beat(
        self, *, fence: bool = False, stop: bool = False, behind: bool = False, epoch: int | None = None
    ) -> Beat | ErrorCode:
        """One heartbeat. ``behind``: of who does not know yet that it is registered."""
        image = self.image
        offset = self.ground.world.image.metadata_offset
        if behind and image is not None:
            offset = image.registration_offset - 1
        request = BrokerHeartbeatRequest(self.me, self.epoch if epoch is None else epoch, offset, fence, stop)
        answer: BrokerHeartbeatResponse = self.ask(request)
        if answer.error is not ErrorCode.none:
            return answer.error
        return answer.is_caught_up, answer.is_fenced, answer.should_shut_down

    def join(self, *, former: int = -1) -> None:
        """Registers a new life, and has it unfenced."""
        self.ground.expect(
            "the answer to a guest", self.register(self.request(former=former)), ErrorCode.none
        )
        self.ground.expect("the answer to its heartbeat", self.beat(), (True, False, False))

    def unregister(self) -> ErrorCode:
        error: ErrorCode = self.ground.ask(self.ground.any_broker(), UnregisterBrokerRequest(self.me)).error
        return error


def _active(ground: Ground) -> Controller:
    active = ground.world.active_controller()
    if active is None or active.core is None:
        ground.fail("there is no active controller")
    assert active is not None
    assert active.core is not None
    return active.core


@contextmanager
def visit(ground: Ground, me: NodeId = NODE) -> Iterator[Guest]:
    """A guest that comes, and is unregistered at the end."""
    guest = Guest(ground, me)
    ground.world.add_guest(me, guest)
    yield guest
    if guest.image is not None and not guest.image.fenced:
        guest.beat(fence=True)
    if guest.image is not None:
        ground.expect("the answer to UnregisterBroker", guest.unregister(), ErrorCode.none)
    ground.expect("the registration of who is not registered", guest.image, None)
    ground.world.remove_guest(me)


# --- registration -------------------------------------------------------------------------------------------


@_guest
def registration_of_a_broker(ground: Ground) -> None:
    """A broker registers once in each life, in the right cluster, and is unfenced when it knows of that;
    while it lives nobody takes its place."""
    with visit(ground) as guest:
        ground.expect("a heartbeat of a stranger", guest.beat(epoch=3), ErrorCode.stale_broker_epoch)
        ground.expect("its end", guest.unregister(), ErrorCode.broker_id_not_registered)
        first = guest.request()
        level = ground.world.image.level
        strange = [(replace(first, cluster_id="another"), ErrorCode.inconsistent_cluster_id)]
        if level is not None:
            future = replace(first, levels=Levels(level + 1, level + 2))
            strange.append((future, ErrorCode.unsupported_version))
        for request, error in strange:
            ground.expect(f"the answer to {request}", guest.register(request), error)
        ground.expect("what a refused registration left", guest.image, None)
        ground.expect("the answer to a registration", guest.register(first), ErrorCode.none)
        _expect_registration(ground, guest, first)
        _amend(ground, guest)
        _heartbeats(ground, guest)
        _silence(ground, guest)


def _expect_registration(ground: Ground, guest: Guest, request: BrokerRegistrationRequest) -> None:
    image = guest.image
    if image is None:
        ground.fail("a broker has registered, and is not there")
    assert image is not None
    right = (guest.epoch, request.incarnation_id, request.host, request.port, True, False, request.levels)
    now = (image.epoch, image.incarnation, image.host, image.port, image.fenced)
    ground.expect("a registration", (*now, image.in_controlled_shutdown, image.levels), right)
    ground.expect("its offset", image.registration_offset, guest.epoch)


def _amend(ground: Ground, guest: Guest) -> None:
    """The same life registers again: as it was, nothing changes; else the change alone."""
    epoch, before = guest.epoch, guest.image
    again = guest.request(again=True)
    ground.expect(
        "the answer to the same life", (guest.register(again), guest.epoch), (ErrorCode.none, epoch)
    )
    ground.expect("its registration", guest.image, before)
    assert before is not None
    for change in ({"port": 9_093}, {"host": "host"}, {"rack": "r9"}, {"replication_port": 9_095}):
        later = replace(again, **change)
        answer = guest.register(later), guest.epoch
        ground.expect(f"the answer to {change}", answer, (ErrorCode.none, epoch))
        now = guest.image
        assert now is not None
        name, value = next(iter(change.items()))
        ground.expect(f"the {name} of a registration", getattr(now, name), value)
        ground.expect("what it says of the rest", (now.epoch, now.fenced), (epoch, True))
        if now.registration_offset <= before.registration_offset:
            ground.fail("a registration that has changed is as old as the former one")
        before = now
    ground.expect("the answer to a new life", guest.register(guest.request()), ErrorCode.none)
    ground.expect("a heartbeat of the former life", guest.beat(epoch=epoch), ErrorCode.stale_broker_epoch)


def _heartbeats(ground: Ground, guest: Guest) -> None:
    """The table of states: (fenced or not, what is asked for) and the answer."""
    unfenced, fenced, gone = (True, False, False), (True, True, False), (True, True, True)
    for flags, right in (
        ({"behind": True}, (False, True, False)),
        ({"behind": True, "fence": True}, (False, True, False)),
        ({"fence": True}, fenced),
        ({"stop": True}, gone),
        ({}, unfenced),
        ({}, unfenced),
        ({"stop": True, "fence": True}, gone),
        ({}, unfenced),
        ({"stop": True}, gone),
        ({}, unfenced),
        ({"fence": True}, fenced),
        ({}, unfenced),
    ):
        ground.expect(f"the answer to a heartbeat with {flags}", guest.beat(**flags), right)
        now = guest.image
        ground.expect(f"being fenced after {flags}", now is not None and now.fenced, right[1])
    first = guest.ask(AllocateProducerIdsRequest(NODE, guest.epoch))
    second = guest.ask(AllocateProducerIdsRequest(NODE, guest.epoch))
    length = _active(ground).config.producer_id_block
    ground.expect(
        "two blocks of producer ids",
        (first.producer_id_len, second.producer_id_len, second.producer_id_start, second.error),
        (length, length, first.producer_id_start + length, ErrorCode.none),
    )


def _silence(ground: Ground, guest: Guest) -> None:
    """Nobody takes the place of who lives. Who registers again, or beats, is heard; silence has its end."""
    epoch, image = guest.epoch, guest.image
    error = ErrorCode.duplicate_broker_registration
    ground.expect("another life while this one lives", guest.register(guest.request()), error)
    ground.expect("the end of who lives", guest.unregister(), ErrorCode.invalid_request)
    ground.expect("its registration", guest.image, image)
    guest.lives -= 1
    if ground.draw.random() < 0.8:
        return
    ground.rest(ground.session_ms / 2)
    if ground.draw.random() < 0.5:
        guest.register(guest.request(again=True))
    else:
        guest.beat()

    def fenced() -> bool:
        return guest.image is not None and guest.image.fenced

    took_ms = ground.must("a silent broker fenced", fenced, ground.session_ms + SLACK_MS)
    if took_ms < ground.session_ms - SLACK_MS:
        ground.fail(f"a broker was fenced {took_ms:.0f} ms after it was heard")
    ground.expect("another life then", guest.register(guest.request()), ErrorCode.none)
    if guest.epoch <= epoch:
        ground.fail(f"a new life has the epoch {guest.epoch}, the one before had {epoch}")


# --- topics -------------------------------------------------------------------------------------------------


def _tp(number: int = 0) -> TopicPartition:
    return TopicPartition(GUESTS, number)


def guest_partition(ground: Ground, number: int = 0) -> PartitionImage:
    image = ground.world.image.partition(_tp(number))
    if image is None:
        ground.fail(f"there is no {_tp(number)}")
    assert image is not None
    return image


def _create(ground: Ground, topic: NewTopic) -> ErrorCode:
    request = CreateTopicsRequest((topic,), ANSWER_MS)
    error: ErrorCode = ground.ask(ground.any_broker(), request).topics[0].error
    return error


@contextmanager
def guest_topic(ground: Ground, *replicas: tuple[NodeId, ...], min_isr: int = 1) -> Iterator[None]:
    topic = NewTopic(
        GUESTS, assignments=dict(enumerate(replicas)), configs={"min.insync.replicas": str(min_isr)}
    )
    ground.expect(f"the answer to {topic}", _create(ground, topic), ErrorCode.none)
    yield
    gone = ground.ask(ground.any_broker(), DeleteTopicsRequest((GUESTS,), ANSWER_MS)).topics[0].error
    ground.expect("the answer to DeleteTopics", gone, ErrorCode.none)


def set_of_topic(ground: Ground, name: str, value: str) -> None:
    change = ConfigChange(name, AlterOp.SET, value)
    request = IncrementalAlterConfigsRequest((AlteredResource(Resource(TOPIC, GUESTS), (change,)),))
    error = ground.ask(ground.any_broker(), request).resources[0].error
    ground.expect(f"the answer to {name}={value}", error, ErrorCode.none)


def _elected(
    ground: Ground, election: int, *desired: NodeId, timeout_ms: int = ANSWER_MS
) -> tuple[ErrorCode, bool]:
    """(error, whether it says that records may be lost) of one partition."""
    request = ElectLeadersRequest(election, (_tp(), _tp())[: 1 + (not desired)], timeout_ms, desired)
    # Not by a broker, which may have less patience than a comparison of logs takes.
    answer = ground.ask(_active(ground).config.node_id, request)
    outcomes: tuple[PartitionOutcome, ...] = answer.partitions
    if answer.error is ErrorCode.none:
        ground.expect("the partitions of an answer", [one.tp for one in outcomes], [_tp()])
    one = outcomes[0] if outcomes else PartitionOutcome(_tp(), answer.error)
    return one.error, one.error is ErrorCode.none and "loss" in (one.message or "")


State = tuple[NodeId, tuple[NodeId, ...], tuple[NodeId, ...], tuple[NodeId, ...], int, int]
"""(leader, ISR, ELR, LastKnownELR, leader epoch, whether it recovers) of a partition."""


def _state(ground: Ground) -> State:
    now = guest_partition(ground)
    return now.leader, now.isr, now.elr, now.last_known_elr, now.leader_epoch, now.leader_recovery_state


def _has_elr(ground: Ground) -> bool:
    core = _active(ground)
    return core.rules.at(core.committed.level).switches.has_elr


@_guest
def replicas_of_a_fenced_broker(ground: Ground) -> None:
    """Nothing is placed on who is fenced; where it is named, it begins outside the ISR and leads nothing."""
    brokers = sorted(ground.world.brokers)
    one = ground.any_broker()
    with visit(ground) as guest:
        ground.expect("the answer to a guest", guest.register(guest.request()), ErrorCode.none)
        for topic, error in (
            (NewTopic(GUESTS, 1, len(brokers) + 1), ErrorCode.invalid_replication_factor),
            (NewTopic(GUESTS, assignments={0: (NODE,)}), ErrorCode.invalid_replica_assignment),
            (
                NewTopic(GUESTS, assignments={0: (one, NODE), 1: (NODE,)}),
                ErrorCode.invalid_replica_assignment,
            ),
        ):
            ground.expect(f"the answer to {topic}", _create(ground, topic), error)
        with guest_topic(ground, (NODE, one), (one, NODE)):
            for number in (0, 1):
                now = guest_partition(ground, number)
                ground.expect("the leader and the ISR", (now.leader, now.isr), (one, (one,)))
            answer = _elected(ground, ElectionType.PREFERRED)
            ground.expect(
                "the election of who is fenced", answer, (ErrorCode.preferred_leader_not_available, False)
            )
            ground.expect("its heartbeat", guest.beat(), (True, False, False))
            now = guest_partition(ground)
            ground.expect("the leader when it is unfenced", (now.leader, now.isr), (one, (one,)))
        placed = NewTopic(GUESTS, 2, len(brokers) + 1)
        ground.expect("a topic on everybody", _create(ground, placed), ErrorCode.none)
        now = guest_partition(ground)
        ground.expect("its replicas", sorted(now.replicas), [*brokers, NODE])
        ground.expect("its ISR", sorted(now.isr), [*brokers, NODE])
        gone = ground.ask(one, DeleteTopicsRequest((GUESTS,), ANSWER_MS)).topics[0].error
        ground.expect("the answer to DeleteTopics", gone, ErrorCode.none)


# --- leaders ------------------------------------------------------------------------------------------------


def _proposed(ground: Ground, guest: Guest, *isr: tuple[NodeId, int], **changes: Any) -> AlterPartitionResult:
    """The guest proposes an ISR for the partition that it leads."""
    item = isr_change(guest_partition(ground), *isr, **changes)
    request = AlterPartitionRequest(NODE, guest.epoch, (item,))
    answer = guest.ask(request)
    ground.expect("the error of AlterPartition", answer.error, ErrorCode.none)
    result: AlterPartitionResult = answer.partitions[0]
    return result


def _lead_alone(ground: Ground, guest: Guest) -> None:
    """The guest leads, and takes the other replica out of the ISR."""
    me = (NODE, guest.epoch)
    strange = TopicPartition(GUESTS, 9)
    for what, result, error in (
        (
            "topic",
            _proposed(ground, guest, me, topic_id=UUID(int=9)),
            ErrorCode.unknown_topic_id,
        ),
        ("partition", _proposed(ground, guest, me, tp=strange), ErrorCode.unknown_topic_or_partition),
    ):
        ground.expect(f"a proposal for an unknown {what}", result.error, error)
    before = guest_partition(ground)
    result = _proposed(ground, guest, me)
    right = AlterPartitionResult(
        _tp(),
        before.topic_id,
        ErrorCode.none,
        NODE,
        before.leader_epoch,
        (NODE,),
        before.partition_epoch + 1,
        0,
    )
    ground.expect("the answer to a proposal", result, right)


@_guest
def shutdown_of_a_leader(ground: Ground) -> None:
    """A broker that shuts down leads nothing from the first word on, and goes when everybody knows."""
    world, one = ground.world, ground.any_broker()
    core = _active(ground)
    with visit(ground) as guest:
        guest.join()
        with guest_topic(ground, (NODE, one)):
            before = guest_partition(ground)
            ground.expect("the leader and the ISR", (before.leader, before.isr), (NODE, (NODE, one)))
            hold = world.hold(
                lambda message: message.name == "BrokerHeartbeatRequest" and message.source == one
            )
            ground.expect("the answer to a shutdown", guest.beat(stop=True), (True, False, False))
            now = guest_partition(ground)
            right = (one, (one,), before.leader_epoch + 1)
            ground.expect("the leader then", (now.leader, now.isr, now.leader_epoch), right)
            offset = core.committed.metadata_offset
            ground.expect("the answer before all know", guest.beat(stop=True), (True, False, False))
            world.release(hold)
            answer: list[Beat | ErrorCode] = []

            def may_go() -> bool:
                return bool(answer) and answer[-1] == (True, True, True)

            for _ in range(30):
                answer.append(guest.beat(stop=True))
                if may_go():
                    break
                ground.rest(ground.heartbeat_ms / 4)
            if not may_go():
                ground.fail("a broker that shuts down may not go, and everybody knows who leads")
            for node, server in world.brokers.items():
                offset_there = -1 if server.core is None else server.core.image.metadata_offset
                if offset_there < offset:
                    ground.fail(f"a broker may go, and node {node} does not know who leads instead")
            ground.expect("another life then", guest.register(guest.request()), ErrorCode.none)
            now = guest_partition(ground)
            ground.expect("the leader after that", (now.leader, now.isr), (one, (one,)))


@_guest
def partition_without_a_leader(ground: Ground) -> None:
    """The only replica in the ISR goes: nobody leads until it comes back, or somebody takes the loss, as the
    strategy says who may."""
    other = ground.any_broker()
    ways = _WAYS if _has_elr(ground) else _WAYS_WITHOUT_ELR
    with visit(ground) as guest:
        guest.join()
        for way in ground.draw.sample(ways, _WAYS_OF_A_RUN):
            guest.log, guest.current_epoch, guest.error = None, 0, ErrorCode.none
            with guest_topic(ground, (NODE, other)):
                if _has_elr(ground):
                    set_of_topic(ground, _STRATEGY, RecoveryStrategy.BALANCED.value)
                _lead_alone(ground, guest)
                epoch = guest_partition(ground).leader_epoch
                ground.expect(
                    "the answer to the end of a leader", guest.beat(fence=True), (True, True, False)
                )
                isr, elr = ((), (NODE,)) if _has_elr(ground) else ((NODE,), ())
                ground.expect("what is left", _state(ground), (NO_LEADER, isr, elr, (), epoch + 1, 0))
                _refuse_lower_level(ground)
                ground.name = f"partition without a leader: {way.__name__.strip('_').replace('_', ' ')}"
                way(ground, guest, other)
            if guest.image is not None and guest.image.fenced:
                guest.join(former=guest.epoch)


def _refuse_lower_level(ground: Ground) -> None:
    """A level that has no place for the ELR would forget it: it is refused."""
    level = ground.world.image.level
    if level != WITH_ELR:
        return
    for kind in UpgradeType:
        update = FeatureUpdate(METADATA_VERSION, WITHOUT_ELR, kind)
        answer = ground.ask(ground.any_broker(), UpdateFeaturesRequest((update,), ANSWER_MS))
        ground.expect(f"the answer to {update}", answer.error, ErrorCode.invalid_update_version)
    ground.expect("the level", ground.world.image.level, level)


Way = Callable[[Ground, Guest, NodeId], None]


def _counts(ground: Ground) -> dict[str, int]:
    """What the active controller says of recoveries in its metrics."""
    return {
        f"{metric.name} {labels}": value
        for metric in _active(ground).metrics()
        for labels, value in metric.samples.items()
    }


def _expect_loss(ground: Ground, winner: NodeId, by: str, before: dict[str, int], late: int = 0) -> None:
    """The winner leads alone and recovers, or has told already that it has recovered."""
    now = guest_partition(ground)
    ground.expect("the leader after a loss", (now.leader, winner in now.isr), (winner, True))
    name = f'unclean_recovery_finished_count by="{by}"'
    after = _counts(ground)
    moved = {
        key: value - before[key]
        for key, value in after.items()
        if key.endswith("count ") or "finished" in key
    }
    moved = {key: value for key, value in moved.items() if value and not key.startswith("manual")}
    right: dict[str, int] = {name: 1, **({"unclean_recovery_timeout_count ": late} if late else {})}
    ground.expect("the counts of recoveries", moved, right)


def _its_return(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    """It comes back after a clean stop, or just speaks again: it leads, and nothing is lost."""
    epoch = guest_partition(ground).leader_epoch
    if ground.draw.random() < 0.5:
        guest.join(former=guest.epoch)
        if _has_elr(ground):
            ground.expect("what is there then", _state(ground), (NODE, (NODE,), (), (), epoch + 1, 0))
    else:
        ground.expect("the answer to its return", guest.beat(), (True, False, False))
        ground.expect("what is there then", _state(ground), (NODE, (NODE,), (), (), epoch + 1, 0))


def _election_by_setting(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    before, epoch = _counts(ground), guest_partition(ground).leader_epoch
    set_of_topic(ground, "unclean.leader.election.enable", "true")
    now = guest_partition(ground)
    ground.expect(
        "the leader and its epoch", (now.leader, now.isr, now.leader_epoch), (other, (other,), epoch + 1)
    )
    _expect_loss(ground, other, "unclean.leader.election.enable", before)


def _unclean_election(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    """An operator takes the loss: whoever is there leads, when the others had their time."""
    before, began_ms = _counts(ground), ground.world.now_ms
    answer = _elected(ground, ElectionType.UNCLEAN)
    took_ms = ground.world.now_ms - began_ms
    ground.expect("the answer", answer, (ErrorCode.none, True))
    late = _has_elr(ground)
    if late and not _WINDOW_MS - SLACK_MS < took_ms < _WINDOW_MS + SLACK_MS:
        ground.fail(f"logs were compared for {took_ms:.0f} ms, and one was missing")
    _expect_loss(ground, other, "operator", before, late)
    again = _elected(ground, ElectionType.UNCLEAN)
    ground.expect("the same again", again, (ErrorCode.election_not_needed, False))


def _unclean_election_without_answer(ground: Ground, guest: Guest, other: NodeId) -> None:
    """Nobody answers: nobody leads, the operator hears so in time, and what is said later elects nobody."""
    before, wait_ms = _counts(ground), 500
    hold = ground.world.hold(
        lambda message: message.name == "GetReplicaLogInfoRequest" and message.destination == other
    )
    began_ms = ground.world.now_ms
    longer = ElectLeadersRequest(ElectionType.UNCLEAN, (_tp(),), wait_ms + _EARLY_MS)
    later = ground.call(_active(ground).config.node_id, longer)
    answer = _elected(ground, ElectionType.UNCLEAN, timeout_ms=wait_ms)
    took_ms = ground.world.now_ms - began_ms
    ground.expect("the answer when nobody answers", answer, (ErrorCode.eligible_leaders_not_available, False))
    if not wait_ms - 50 < took_ms < wait_ms + SLACK_MS / 2:
        ground.fail(f"the answer took {took_ms:.0f} ms, and {wait_ms} were allowed")
    ground.world.release(hold)
    ground.rest(_EARLY_MS / 2)
    ground.expect("who waits longer is answered before its time", later.done, False)
    ground.must("an answer to who waits longer", lambda: later.done, _EARLY_MS / 2 + SLACK_MS / 2)
    ground.expect("the leader after late answers", guest_partition(ground).leader, NO_LEADER)
    name = "unclean_recovery_timeout_count "
    after = _counts(ground)
    ground.expect("the count of time-outs", after[name] - before[name], 2)
    proactive = 'unclean_recovery_partitions_count strategy="proactive"'
    ground.expect("what waits as the operator had asked", after[proactive], before[proactive])
    _its_return(ground, guest, other)


def _unclean_election_of_a_topic_that_goes(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    """The topic is deleted while logs are compared."""
    request = ElectLeadersRequest(ElectionType.UNCLEAN, (_tp(),), ANSWER_MS)
    call = ground.call(_active(ground).config.node_id, request)
    ground.rest(_EARLY_MS)
    node = ground.any_broker()
    gone = ground.ask(node, DeleteTopicsRequest((GUESTS,), ANSWER_MS)).topics[0].error
    ground.expect("the answer to DeleteTopics", gone, ErrorCode.none)
    ground.must("an answer about a topic that is gone", lambda: call.done, SLACK_MS)
    errors = [one.error for one in call.response.partitions]
    ground.expect("its error", errors, [ErrorCode.unknown_topic_or_partition])
    ground.expect("a new topic", _create(ground, NewTopic(GUESTS, 1, 1)), ErrorCode.none)


def _comparison_of_all(ground: Ground, guest: Guest, other: NodeId) -> None:
    """Proactive: every log is compared as soon as all have answered; the later epoch wins, then the longer
    log, then the lower id."""
    before, epoch = _counts(ground), guest_partition(ground).leader_epoch
    guest.current_epoch = epoch
    guest.log = ground.draw.choice(((0, 5), (-1, 0), (-1, 3)))
    # A new life that has lost its log: it is a candidate as anybody is.
    ground.expect("the answer to a new life", guest.register(guest.request()), ErrorCode.none)
    ground.expect("what it has left", _state(ground), (NO_LEADER, (), (), (NODE,), epoch, 0))
    hold = ground.world.hold(
        lambda message: message.name == "GetReplicaLogInfoRequest" and message.destination == other
    )
    set_of_topic(ground, _STRATEGY, RecoveryStrategy.PROACTIVE.value)
    ground.expect("its heartbeat", guest.beat(), (True, False, False))
    ground.rest(50)
    ground.expect("the leader before all have answered", guest_partition(ground).leader, NO_LEADER)
    ground.world.release(hold)
    winner = other if guest.log == (-1, 0) else NODE
    ground.must("the best log leads", lambda: guest_partition(ground).leader == winner, SLACK_MS)
    _expect_loss(ground, winner, "proactive", before)


def _balanced_recovery(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    """The last member of the ELR comes back without proof of its log: it is asked, and what does not count is
    asked for again."""
    before, epoch = _counts(ground), guest_partition(ground).leader_epoch
    guest.log, guest.current_epoch, guest.questions = (0, 5), epoch, 0
    flaw = ground.draw.choice(("an old leader epoch", "an error", "a lost log", "no answer"))
    match flaw:
        case "an old leader epoch":
            guest.current_epoch = epoch - 1
        case "an error":
            guest.error = ErrorCode.unknown_topic_or_partition
        case "a lost log":
            guest.error = ErrorCode.kafka_storage_error
        case "no answer":
            guest.log = None
    ground.expect("the answer to a new life", guest.register(guest.request()), ErrorCode.none)
    ground.expect("what it has left", _state(ground), (NO_LEADER, (), (), (NODE,), epoch, 0))
    waiting = 'unclean_recovery_partitions_count strategy="balanced"'
    ground.expect("the partitions that wait", _counts(ground)[waiting], 1)
    ground.expect("its heartbeat", guest.beat(), (True, False, False))
    ground.rest(_EARLY_MS)
    ground.expect(f"the leader after {flaw}", _state(ground), (NO_LEADER, (), (), (NODE,), epoch, 0))
    # At once, and after 100 and 200 ms.
    bounds = {"a lost log": (1, 1), "no answer": (1, 1)}.get(flaw, (2, 3))
    if not bounds[0] <= guest.questions <= bounds[1]:
        ground.fail(f"after {flaw} a broker was asked {guest.questions} times in {_EARLY_MS} ms")
    if guest.log is None or guest.error is ErrorCode.kafka_storage_error:
        guest.beat(fence=True)
        guest.log, guest.error = (0, 5), ErrorCode.none
        guest.beat()
    guest.current_epoch, guest.error = epoch, ErrorCode.none
    limit_ms = ground.session_ms + 2_500
    began_ms = ground.world.now_ms
    while guest_partition(ground).leader != NODE and ground.world.now_ms < began_ms + limit_ms:
        guest.beat()
        ground.rest(60)
    ground.expect("what is there then", _state(ground)[:4], (NODE, (NODE,), (), ()))
    _expect_loss(ground, NODE, "balanced", before)


def _named_leader(ground: Ground, guest: Guest, other: NodeId) -> None:
    """A person names the leader, where the strategy leaves it to a person, and only one who can lead."""
    before, epoch = _counts(ground), guest_partition(ground).leader_epoch
    stranger = next(node for node in ground.world.brokers if node != other)
    refused = (ErrorCode.invalid_request, False)
    designated = ElectionType.DESIGNATED
    ground.expect("a leader named where logs decide", _elected(ground, designated, other), refused)
    set_of_topic(ground, _STRATEGY, RecoveryStrategy.MANUAL.value)
    waiting = "manual_leader_election_required_partition_count "
    guest.register(guest.request())
    ground.expect("the partitions that wait", _counts(ground)[waiting], 1)
    for node, error in (
        (stranger, ErrorCode.invalid_replica_assignment),
        (NODE, ErrorCode.eligible_leaders_not_available),
    ):
        ground.expect(f"node {node} named", _elected(ground, designated, node), (error, False))
    ground.rest(50)
    ground.expect("the leader after that", _state(ground), (NO_LEADER, (), (), (NODE,), epoch, 0))
    ground.expect("a replica named", _elected(ground, designated, other), (ErrorCode.none, True))
    _expect_loss(ground, other, "named", before)
    ground.expect("the partitions that wait then", _counts(ground)[waiting], 0)
    ground.expect("the epoch", guest_partition(ground).leader_epoch, epoch + 1)


def _no_named_leader(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    answer = _elected(ground, ElectionType.DESIGNATED, other)
    ground.expect("a leader named where nobody can", answer, (ErrorCode.invalid_request, False))


def _unregistration(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    """It is unregistered: whoever comes back under its id has proved nothing, and its log is asked for."""
    epoch = guest_partition(ground).leader_epoch
    ground.expect("the answer to UnregisterBroker", guest.unregister(), ErrorCode.none)
    ground.expect("what it has left", _state(ground), (NO_LEADER, (), (), (NODE,), epoch, 0))
    former, guest.log, guest.current_epoch = guest.epoch, (0, 5), epoch
    guest.join(former=former)
    ground.must("its log to be believed", lambda: guest_partition(ground).leader == NODE, SLACK_MS)
    ground.expect("what is there then", _state(ground), (NODE, (NODE,), (), (), epoch + 1, 1))


def _another_min_isr(ground: Ground, guest: Guest, other: NodeId) -> None:  # noqa: ARG001
    """MinISR changes: who was complete by the old one is no longer taken for complete."""
    epoch = guest_partition(ground).leader_epoch
    set_of_topic(ground, "min.insync.replicas", "2")
    ground.expect("what is left", _state(ground), (NO_LEADER, (), (), (NODE,), epoch, 0))
    guest.log, guest.current_epoch = (0, 5), epoch
    ground.expect("the answer to its return", guest.beat(), (True, False, False))
    ground.must("its log to be believed", lambda: guest_partition(ground).leader == NODE, SLACK_MS)
    ground.expect("what is there then", _state(ground), (NODE, (NODE,), (), (), epoch + 1, 1))


_WAYS: tuple[Way, ...] = (
    _balanced_recovery,
    _its_return,
    _election_by_setting,
    _unclean_election,
    _unclean_election_without_answer,
    _unclean_election_of_a_topic_that_goes,
    _comparison_of_all,
    _balanced_recovery,
    _named_leader,
    _unregistration,
    _another_min_isr,
    _comparison_of_all,
)
_WAYS_WITHOUT_ELR: tuple[Way, ...] = (_its_return, _election_by_setting, _unclean_election, _no_named_leader)

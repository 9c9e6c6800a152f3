"""Answers of an active controller, worked out anew: every error has its reason in what the controller knew
when the request came, and every answer without one had none (docs/protocol.md 2.6, 2.7, 2.10, 2.16).

``decision``  an answer, or what is decided with it, is another one than the protocol owes

What it knew is kept from its step before, and judged here by the tables of the protocol, not by the rules of
the broker. A request is judged when it is handled; its answer leaves when everything is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.effects import Reply
from wrackline.broker.model.events import RequestCancelled, RequestReceived
from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
    UnregisterBrokerRequest,
)
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.messages.requests import Refused, Response
from wrackline.broker.model.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.election import RECOVERED, RECOVERING
from wrackline.simulator.invariants.watchers import HAIR_MS, Scope, Watcher
from wrackline.simulator.world.world import StepRecord, World

Errors = tuple[ErrorCode | None, ...]
"""One for each item of an answer, in its order; None: either may be right."""
Owed = Response | Errors | ErrorCode
"""An answer, or its errors alone."""


class _Deviation(Exception):
    """What was decided is not what is owed."""


@dataclass(slots=True)
class _Contact:
    """What a controller has heard of a broker in this term."""

    epoch: int
    at_ms: float | None
    """None: in a term before."""
    offset: int = -1
    """What it has said to have applied."""
    shutdown: tuple[int, int] = (-1, -1)
    """(least, greatest) offset that all must have applied before it may go."""


@dataclass(slots=True)
class _Term:
    """What the controller knows, as it was after its last step."""

    core: Controller
    epoch: int
    began_ms: float
    contacts: dict[NodeId, _Contact]
    offset: int
    brokers: dict[NodeId, BrokerImage]
    topics: dict[UUID, TopicImage]
    next_producer_id: int

    def keep(self, image: ClusterImage) -> None:
        self.offset = image.metadata_offset
        self.brokers, self.topics = dict(image.brokers), dict(image.topics_by_id)
        self.next_producer_id = image.next_producer_id

    def partitions(self) -> Iterable[PartitionImage]:
        return (partition for topic in self.topics.values() for partition in topic.partitions.values())

    def partition(self, tp: TopicPartition) -> PartitionImage | None:
        named = (topic for topic in self.topics.values() if topic.name == tp.topic)
        return next((topic.partitions.get(tp.partition) for topic in named), None)

    def is_active(self, broker: NodeId) -> bool:
        image = self.brokers.get(broker)
        return image is not None and image.active

    def is_stale(self, broker: NodeId, epoch: int) -> bool:
        image = self.brokers.get(broker)
        return image is None or image.epoch != epoch

    def contact(self, broker: BrokerImage) -> _Contact:
        contact = self.contacts.get(broker.id)
        if contact is None or contact.epoch != broker.epoch:
            contact = self.contacts[broker.id] = _Contact(broker.epoch, None)
        return contact


class Decisions(Watcher):
    """Looks at what controllers are asked and answer."""

    scope = Scope.CONTROLLERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._terms: dict[NodeId, _Term] = {}
        self._owed: dict[int, Owed] = {}

    def __call__(self, world: World, step: StepRecord) -> None:
        server = world.controllers[step.node]
        core, term = server.core, self._terms.get(step.node)
        if step.cut or not isinstance(core, Controller) or not core.is_active:
            if term is not None:
                del self._terms[step.node]
            return
        event, image = step.event, core.speculative
        if term is None or term.core is not core or term.epoch != core.raft.epoch:
            self._terms[step.node] = _begin(core, server.local_ms(step.at_ms))
            return
        if type(event) is RequestReceived and (judge := _JUDGES.get(type(event.request))) is not None:
            owed: Owed | None = None
            try:
                owed = judge(term, image, event.request, server.local_ms(step.at_ms))
            except _Deviation as broken:
                self.find(step, "decision", f"controller {step.node}, asked {event.request}: {broken}")
            if owed is not None:
                self._owed[event.request_id] = owed
        elif type(event) is RequestCancelled:
            self._owed.pop(event.request_id, None)
        if image.metadata_offset != term.offset:
            term.keep(image)
        for effect in step.effects:
            if type(effect) is Reply and effect.request_id in self._owed:
                right, response = self._owed.pop(effect.request_id), effect.response
                if not isinstance(response, Refused) and not _agrees(response, right):
                    text = f"controller {step.node} answers {response}, and owes {right}"
                    self.find(step, "decision", text)


def _begin(core: Controller, now_ms: float) -> _Term:
    image = core.speculative
    end = (-1, image.metadata_offset)
    contacts = {
        broker.id: _Contact(broker.epoch, None, shutdown=end)
        for broker in image.brokers.values()
        if not broker.fenced
    }
    term = _Term(core, core.raft.epoch, now_ms, contacts, -1, {}, {}, 0)
    term.keep(image)
    return term


def _agrees(response: Response, right: Owed) -> bool:
    answer: Any = response
    if isinstance(right, ErrorCode):
        return bool(answer.error is right)
    if not isinstance(right, tuple):
        return response == right
    errors = [item.error for item in answer.partitions]
    return len(errors) == len(right) and all(
        due is None or error is due for error, due in zip(errors, right, strict=True)
    )


def _unchanged(term: _Term, after: ClusterImage) -> None:
    """An error has no effect."""
    now = after.brokers, after.topics_by_id, after.next_producer_id
    if now != (term.brokers, term.topics, term.next_producer_id):
        raise _Deviation("it is owed an error, and something is changed")


def _expect(what: str, actual: object, right: object) -> None:
    if actual != right:
        raise _Deviation(f"{what} is {actual}, not {right}")


# --- brokers ------------------------------------------------------------------------------------------------


def _registration(
    term: _Term, after: ClusterImage, request: BrokerRegistrationRequest, now_ms: float
) -> Response | None:
    level, existing = after.level, term.brokers.get(request.broker_id)
    error: ErrorCode | None = NO_ERROR
    again = existing is not None and existing.incarnation == request.incarnation_id
    if request.cluster_id != term.core.config.cluster_id:
        error = ErrorCode.inconsistent_cluster_id
    elif level is not None and not request.levels.lowest <= level <= request.levels.highest:
        error = ErrorCode.unsupported_version
    elif not again and existing is not None and term.is_active(existing.id):
        error = _duplicate(term, existing, now_ms)
    registered = after.brokers.get(request.broker_id)
    if error is None:  # on the very edge: what was decided tells
        error = NO_ERROR if registered != existing else ErrorCode.duplicate_broker_registration
    if error is not NO_ERROR:
        _unchanged(term, after)
        return BrokerRegistrationResponse(error)
    if registered is None:
        raise _Deviation("it is not registered")
    named = (request.host, request.port, request.replication_port, request.rack, request.incarnation_id)
    there = (registered.host, registered.port, registered.replication_port, registered.rack)
    _expect("what is registered", (*there, registered.incarnation), named)
    if existing is not None and again:
        _expect("its epoch", registered.epoch, existing.epoch)
        _expect("fenced", registered.fenced, existing.fenced)
        _expect("shutting down", registered.in_controlled_shutdown, existing.in_controlled_shutdown)
        term.contact(existing).at_ms = now_ms
    else:
        _expect("its epoch", registered.epoch, registered.registration_offset)
        _expect("being fenced", registered.fenced, True)
        if registered.epoch <= term.offset:
            raise _Deviation(f"its epoch is {registered.epoch}, and the log ended at {term.offset}")
        term.contacts[registered.id] = _Contact(registered.epoch, now_ms)
    return BrokerRegistrationResponse(NO_ERROR, registered.epoch)


def _duplicate(term: _Term, existing: BrokerImage, now_ms: float) -> ErrorCode | None:
    """Returns the error that another life is owed while this one is active; None: time hardly tells."""
    contact, session_ms = term.contacts.get(existing.id), term.core.config.session_timeout_ms
    if contact is None or contact.epoch != existing.epoch:
        return NO_ERROR
    if contact.at_ms is not None:
        first_ms = last_ms = contact.at_ms + session_ms
    else:
        first_ms, last_ms = term.began_ms + session_ms / 2, term.began_ms + session_ms
    if now_ms < first_ms - HAIR_MS:
        return ErrorCode.duplicate_broker_registration
    return NO_ERROR if now_ms > last_ms + HAIR_MS else None


def _heartbeat(
    term: _Term, after: ClusterImage, request: BrokerHeartbeatRequest, now_ms: float
) -> Response | None:
    broker = term.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        _unchanged(term, after)
        return BrokerHeartbeatResponse(ErrorCode.stale_broker_epoch)
    contact = term.contact(broker)
    contact.at_ms, contact.offset = now_ms, max(contact.offset, request.current_metadata_offset)
    caught_up = request.current_metadata_offset >= broker.registration_offset
    leads = any(partition.leader == broker.id for partition in term.partitions())
    fence, stop = request.want_fence, request.want_shut_down
    begins = gone = False
    if broker.fenced:
        gone, fenced = stop, stop or fence or not caught_up
    elif broker.in_controlled_shutdown:
        lowest = min((_applied(term, node) for node in term.brokers if term.is_active(node)), default=None)
        least, greatest = contact.shutdown
        if not leads and lowest is not None and least <= lowest < greatest:
            gone = after.brokers[broker.id].fenced  # the offset is not known so well
        else:
            gone = not leads and (lowest is None or lowest >= greatest)
        fenced = gone
    else:
        begins = stop and not fence and leads
        gone = stop and not begins
        fenced = fence or gone
    now = after.brokers.get(broker.id)
    if now is None:
        raise _Deviation("it is not registered any more")
    shutting = begins or (not broker.fenced and broker.in_controlled_shutdown and not fenced)
    there = now.fenced, not now.fenced and now.in_controlled_shutdown
    _expect("(being fenced, shutting down)", there, (fenced, shutting))
    if begins:
        contact.shutdown = after.metadata_offset, after.metadata_offset
    return BrokerHeartbeatResponse(NO_ERROR, caught_up, fenced, gone)


def _applied(term: _Term, node: NodeId) -> int:
    contact = term.contacts.get(node)
    return -1 if contact is None or contact.epoch != term.brokers[node].epoch else contact.offset


def _producer_ids(
    term: _Term, after: ClusterImage, request: AllocateProducerIdsRequest, _: float
) -> Response:
    if term.is_stale(request.broker_id, request.broker_epoch):
        _unchanged(term, after)
        return AllocateProducerIdsResponse(ErrorCode.stale_broker_epoch)
    start, length = term.next_producer_id, term.core.config.producer_id_block
    _expect("the next producer id", after.next_producer_id, start + length)
    return AllocateProducerIdsResponse(NO_ERROR, start, length)


def _unregistration(
    term: _Term, after: ClusterImage, request: UnregisterBrokerRequest, _: float
) -> ErrorCode:
    broker = term.brokers.get(request.broker_id)
    if broker is None or not broker.fenced:
        _unchanged(term, after)
        return ErrorCode.broker_id_not_registered if broker is None else ErrorCode.invalid_request
    _expect("its registration", after.brokers.get(request.broker_id), None)
    return NO_ERROR


# --- partitions ---------------------------------------------------------------------------------------------


def _alteration(
    term: _Term, after: ClusterImage, request: AlterPartitionRequest, _: float
) -> Response | None:
    if term.is_stale(request.broker_id, request.broker_epoch):
        _unchanged(term, after)
        return AlterPartitionResponse(ErrorCode.stale_broker_epoch)
    keys = {(item.topic_id, item.tp.partition) for item in request.partitions}
    if len(keys) < len(request.partitions):
        return None  # the later one is judged by what the earlier one has made
    results = tuple(_altered(term, after, request.broker_id, item) for item in request.partitions)
    return AlterPartitionResponse(NO_ERROR, results)


def _altered(
    term: _Term, after: ClusterImage, sender: NodeId, item: AlterPartitionItem
) -> AlterPartitionResult:
    topic = term.topics.get(item.topic_id)
    if topic is None:
        return AlterPartitionResult(item.tp, item.topic_id, ErrorCode.unknown_topic_id)
    partition = topic.partitions.get(item.tp.partition)
    if partition is None:
        return AlterPartitionResult(item.tp, item.topic_id, ErrorCode.unknown_topic_or_partition)
    tp, now = partition.tp, after.partition_by_id(item.topic_id, item.tp.partition)
    assert now is not None
    error = _refusal(term, sender, item, partition)
    if error is not NO_ERROR:
        _expect(f"{tp}, which is owed {error!r},", now, partition)
        return AlterPartitionResult(tp, item.topic_id, error)
    isr = [member for member, _ in item.isr if member in now.replicas]
    _expect(f"the ISR of {tp}", sorted(now.isr), sorted(isr))
    lists = partition.replicas, partition.adding, partition.removing
    moved = (now.replicas, now.adding, now.removing) != lists
    _expect(f"the leader of {tp}", now.leader in isr if moved else now.leader, moved or sender)
    _expect(f"the leader epoch of {tp}", now.leader_epoch, partition.leader_epoch + moved)
    if now.leader != sender:
        return AlterPartitionResult(tp, item.topic_id, ErrorCode.new_leader_elected)
    _expect(f"recovery of {tp}", now.leader_recovery_state, item.leader_recovery_state)
    return AlterPartitionResult(
        tp,
        item.topic_id,
        NO_ERROR,
        now.leader,
        now.leader_epoch,
        now.isr,
        now.partition_epoch,
        now.leader_recovery_state,
    )


def _refusal(term: _Term, sender: NodeId, item: AlterPartitionItem, partition: PartitionImage) -> ErrorCode:
    """The table of docs/protocol.md 2.6, from its top."""
    members, state = [member for member, _ in item.isr], item.leader_recovery_state
    if item.leader_epoch > partition.leader_epoch or item.partition_epoch > partition.partition_epoch:
        return ErrorCode.not_controller
    if item.leader_epoch < partition.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if partition.leader != sender:
        return ErrorCode.invalid_request
    if item.partition_epoch < partition.partition_epoch:
        return ErrorCode.invalid_update_version
    if len(set(members)) < len(members) or not set(members) <= set(partition.replicas):
        return ErrorCode.invalid_request
    if sender not in members or state not in (RECOVERED, RECOVERING):
        return ErrorCode.invalid_request
    if state == RECOVERING and (len(members) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.invalid_request
    for member, epoch in item.isr:
        if not term.is_active(member) or epoch not in (-1, term.brokers[member].epoch):
            return ErrorCode.ineligible_replica
    return NO_ERROR


def _reassignments(
    term: _Term, _after: ClusterImage, request: AlterPartitionReassignmentsRequest, _: float
) -> Errors:
    """Where a partition is named twice the last word counts."""
    return tuple(_reassignment(term, item) for item in {one.tp: one for one in request.partitions}.values())


def _reassignment(term: _Term, item: Reassignment) -> ErrorCode | None:
    partition, target = term.partition(item.tp), item.target
    if partition is None:
        return ErrorCode.unknown_topic_or_partition
    if target is None:
        return None if partition.adding or partition.removing else ErrorCode.no_reassignment_in_progress
    if not target or len(set(target)) < len(target) or not set(target) <= term.brokers.keys():
        return ErrorCode.invalid_replica_assignment
    # Who was being added may not always go again (docs/protocol.md 2.10).
    return None if set(partition.adding) - set(target) else NO_ERROR


def _preferred(term: _Term, after: ClusterImage, request: ElectLeadersRequest, _: float) -> Errors | None:
    if request.election != ElectionType.PREFERRED:
        return None
    every = request.partitions is None
    tps = [one.tp for one in term.partitions()] if request.partitions is None else request.partitions
    errors: list[ErrorCode] = []
    for tp in dict.fromkeys(tps):
        partition, now = term.partition(tp), after.partition(tp)
        if partition is None or now is None:
            errors.append(ErrorCode.unknown_topic_or_partition)
            continue
        first, leader = partition.replicas[0], partition.leader
        error = NO_ERROR
        if leader == first:
            error = ErrorCode.election_not_needed
        elif first not in partition.isr or not term.is_active(first):
            error = ErrorCode.preferred_leader_not_available
        _expect(f"the leader of {tp}", now.leader, first if error is NO_ERROR else leader)
        if not (every and error is ErrorCode.election_not_needed):
            errors.append(error)
    return tuple(errors)


_JUDGES: Mapping[type, Callable[[_Term, ClusterImage, Any, float], Owed | None]] = {
    BrokerHeartbeatRequest: _heartbeat,
    AlterPartitionRequest: _alteration,
    BrokerRegistrationRequest: _registration,
    AllocateProducerIdsRequest: _producer_ids,
    UnregisterBrokerRequest: _unregistration,
    AlterPartitionReassignmentsRequest: _reassignments,
    ElectLeadersRequest: _preferred,
}
"""Each returns the answer that is owed, None where it is not judged here, and raises _Deviation when what was
decided is not owed. The last argument is the time on the controller's clock."""

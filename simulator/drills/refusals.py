"""A drill of what no broker of the cluster would send: the active controller is asked every wrong thing by a
guest that leads a partition, and by one that shuts down. ``simulator/invariants/decisions.py`` works out the
error that each of them is owed; here is what must be there at the end.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import ElectionType, ElectLeadersRequest, UnregisterBrokerRequest
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
)
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.rules.leadership.election import RECOVERED, RECOVERING
from wrackline.simulator.drills.ground import ANSWER_MS, Ground, isr_change
from wrackline.simulator.drills.guest import (
    GUESTS,
    NODE,
    Guest,
    guest_partition,
    guest_topic,
    set_of_topic,
    visit,
)

_OTHER = NODE + 1
"""Of a second guest."""
_STRANGER: NodeId = 99
"""Nobody's."""
Members = tuple[tuple[NodeId, int], ...]


def refused_brokers(ground: Ground) -> None:
    """Whatever is wrong with a request, the controller refuses it for that, and nothing changes; the next
    right one is accepted."""
    one = ground.any_broker()
    with visit(ground) as guest, visit(ground, _OTHER) as other:
        guest.join()
        other.join()
        with guest_topic(ground, (NODE, one, _OTHER), (_OTHER, NODE, one)):
            before = guest_partition(ground)
            ground.expect("the leader and its ISR", (before.leader, before.isr), (NODE, before.replicas))
            _propose(ground, guest, other, one)
            _refuse_strangers(ground, guest, other)
            ground.expect("what is left of it", guest_partition(ground), before)
            _shut_down(ground, guest, other)
            _go(ground, guest, other)
            _recover(ground, guest, other, one)


def _propose(ground: Ground, guest: Guest, other: Guest, one: NodeId) -> None:
    """ISRs that no leader proposes."""
    now = guest_partition(ground)
    me, you, third = (NODE, guest.epoch), (one, -1), (_OTHER, other.epoch)
    right = isr_change(now, me, you, third)
    stranger = next(node for node in ground.world.brokers if node != one)
    refused: list[Members] = [
        (me, me),
        (me, you, you),
        (you, third),
        (),
        (me, (stranger, -1)),
        (me, (_STRANGER, -1)),
        ((NODE, guest.epoch - 1), you),
        (me, you, (_OTHER, other.epoch + 1)),
    ]
    items = [replace(right, isr=members) for members in refused]
    items += [
        replace(right, isr=members, leader_recovery_state=state)
        for members, state in product(((me,), (me, you)), (RECOVERING, 2))
    ]
    epochs = [
        (leader, partition) for leader, partition in product((-1, 0, 1), repeat=2) if leader or partition
    ]
    items += [
        replace(
            right,
            leader_epoch=now.leader_epoch + leader,
            partition_epoch=now.partition_epoch + partition,
            isr=members,
        )
        for (leader, partition), members in product(epochs, ((me,), (you, you)))
    ]
    items += [
        replace(right, topic_id=UUID(int=9)),
        replace(right, tp=TopicPartition(GUESTS, 9)),
    ]
    for item in items:
        guest.ask(AlterPartitionRequest(NODE, guest.epoch, (item,)))
    alone = replace(right, isr=(third,))
    for item in (right, alone, replace(right, partition_epoch=now.partition_epoch - 1)):
        guest.ask(AlterPartitionRequest(_OTHER, other.epoch, (item,)))
    # Of several each has its own error.
    guest.ask(AlterPartitionRequest(NODE, guest.epoch, (items[0], items[-1], items[-2])))
    for node, epoch in ((NODE, guest.epoch - 1), (NODE, guest.epoch + 1), (_STRANGER, 1), (NODE, -1)):
        guest.ask(AlterPartitionRequest(node, epoch, (replace(right, isr=(me,)),)))


def _refuse_strangers(ground: Ground, guest: Guest, other: Guest) -> None:
    """Who is registered in another life, or not at all, is nobody."""
    for node, epoch in ((NODE, guest.epoch - 1), (NODE, other.epoch), (_STRANGER, guest.epoch), (NODE, -1)):
        for fence, stop in product((False, True), repeat=2):
            guest.ask(BrokerHeartbeatRequest(node, epoch, ground.world.image.metadata_offset, fence, stop))
        guest.ask(AllocateProducerIdsRequest(node, epoch))
    guest.ask(UnregisterBrokerRequest(_STRANGER))
    guest.ask(UnregisterBrokerRequest(NODE))
    for request in (other.request(), replace(other.request(), cluster_id="another")):
        if other.register(request) is ErrorCode.none:
            ground.fail(f"{request} takes the place of who lives")
    for _ in range(2):
        guest.ask(AllocateProducerIdsRequest(NODE, guest.epoch))


def _shut_down(ground: Ground, guest: Guest, other: Guest) -> None:
    """Who shuts down may be in no ISR, and its next life need not wait for the end of its session."""
    ground.expect("the answer to a shutdown", other.beat(stop=True), (True, False, False))
    now = guest_partition(ground)
    members = tuple((node, -1) for node in now.replicas)
    item = isr_change(now, *members)
    for isr in (members, (members[0], (_OTHER, other.epoch))):
        guest.ask(AlterPartitionRequest(NODE, guest.epoch, (replace(item, isr=isr),)))
    ground.expect("the answer to its next life", other.register(other.request()), ErrorCode.none)
    guest.ask(AlterPartitionRequest(NODE, guest.epoch, (item,)))
    smaller = replace(item, isr=(members[0],))
    for _ in range(2):
        guest.ask(AlterPartitionRequest(NODE, guest.epoch, (smaller,)))
    after = guest_partition(ground)
    right = ((NODE,), now.partition_epoch + 1, RECOVERED)
    ground.expect(
        "what was right of it", (after.isr, after.partition_epoch, after.leader_recovery_state), right
    )


def _go(ground: Ground, guest: Guest, other: Guest) -> None:
    """A replica whose broker is not registered at all."""
    ground.expect("the answer to UnregisterBroker", other.unregister(), ErrorCode.none)
    now = guest_partition(ground)
    members = ((NODE, guest.epoch), (_OTHER, -1))
    item = isr_change(now, *members)
    guest.ask(AlterPartitionRequest(NODE, guest.epoch, (item,)))
    _elect(guest)
    other.join()
    _elect(guest)


def _elect(guest: Guest) -> None:
    """The second partition's preferred replica is there or not, and in no ISR."""
    tps = tuple(TopicPartition(GUESTS, number) for number in (0, 1, 1, 9))
    for places in (tps, None):
        guest.ask(ElectLeadersRequest(ElectionType.PREFERRED, places, ANSWER_MS))


def _recover(ground: Ground, guest: Guest, other: Guest, one: NodeId) -> None:
    """A leader that was elected at the price of a loss is alone until it says that it has recovered."""
    now = guest_partition(ground, 1)
    members: Members = ((NODE, guest.epoch),)
    item = isr_change(now, *members)
    guest.ask(AlterPartitionRequest(NODE, guest.epoch, (item,)))
    ground.expect("the answer to the end of a leader", guest.beat(fence=True), (True, True, False))
    set_of_topic(ground, "unclean.leader.election.enable", "true")
    now = guest_partition(ground, 1)
    state = now.leader, now.isr, now.leader_recovery_state
    ground.expect("what is there then", state, (_OTHER, (_OTHER,), RECOVERING))
    me, you = (_OTHER, other.epoch), (one, -1)
    item = isr_change(now, me, leader_recovery_state=RECOVERING)
    for isr, state_ in (((me,), RECOVERING), ((me, you), RECOVERING), ((me,), 2), ((me, you), RECOVERED)):
        request = replace(item, isr=isr, leader_recovery_state=state_)
        other.ask(AlterPartitionRequest(_OTHER, other.epoch, (request,)))
    now = guest_partition(ground, 1)
    ground.expect(
        "what is there when it has recovered",
        (now.leader, now.isr, now.leader_recovery_state),
        (_OTHER, (_OTHER, one), RECOVERED),
    )

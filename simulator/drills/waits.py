"""Drills of requests that wait: each is answered at its time, or when what it waits for can come no more; and
of nodes whose way back is not the usual one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    NewTopic,
)
from wrackline.broker.model.messages.requests import (
    LATEST,
    DeleteRecordsRequest,
    FetchPartition,
    FetchRequest,
    InitProducerIdRequest,
    ProducePartition,
    ProduceRequest,
)
from wrackline.broker.model.types import NodeId
from wrackline.history.model import UNKNOWN, Record, Type
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.drills.answers import make_snapshots
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to
from wrackline.simulator.world.network import Hold
from wrackline.simulator.world.nodes import Call

_SIZES = (900_000, 200_000, 8)
"""Of three values: more than a broker looks at in one go, and one more."""
_GONE = ErrorCode.not_leader_or_follower
WAITS: list[Drill] = []
_waits = add_to(WAITS)
_STOPPED = 0.5
"""Share of the brokers away from controllers that are stopped there."""
RETURNS: list[Drill] = []
"""Those that take long. A run does one of them now and then."""
_returns = add_to(RETURNS)


def _held_fetches(ground: Ground, nodes: list[NodeId]) -> Hold:
    """Followers hear no more; what they had asked before is still answered."""
    return ground.world.hold(lambda message: message.name == "FetchRequest" and message.source in nodes)


def _deletion(ground: Ground, leader: NodeId, timeout_ms: int) -> Call:
    """Asks for the deletion of all records that are committed, one at least."""
    end = ground.sent(leader).base_offset + 1
    ground.deleted[ground.tp] = max(end, ground.deleted.get(ground.tp, 0))
    return ground.call(leader, DeleteRecordsRequest(((ground.tp, end),), timeout_ms))


def _lead(ground: Ground, node: NodeId) -> None:
    """Another replica becomes the preferred one, and leads."""
    order = (node, *(one for one in ground.image.replicas if one != node))
    move = AlterPartitionReassignmentsRequest((Reassignment(ground.tp, order),), ANSWER_MS)
    ground.ask(ground.any_broker(), move)
    ground.must(f"replicas {order}", lambda: ground.image.replicas == order, SLACK_MS)
    ground.ask(ground.any_broker(), ElectLeadersRequest(ElectionType.PREFERRED, (ground.tp,), ANSWER_MS))
    ground.must(f"leader {node}", lambda: ground.image.leader == node, SLACK_MS)


@_waits
def deadlines(ground: Ground) -> None:
    """A write and a deletion that wait for followers in vain are told so when their time is over, not
    before."""
    leader = ground.image.leader
    if len(ground.image.isr) < 2:
        return
    # What is asked for is less than what a follower may lag.
    times = ground.draw.sample((150, 220, 300), 2)
    call = None
    ground.sent(leader)
    hold = _held_fetches(ground, ground.followers())
    ground.rest(5)
    began_ms = ground.world.now_ms
    answer = ground.send(leader, timeout_ms=times[0])
    end = ground.offset(leader, LATEST)
    ground.deleted[ground.tp] = max(end, ground.deleted.get(ground.tp, 0))
    call = ground.call(leader, DeleteRecordsRequest(((ground.tp, end),), times[1]))
    waits: list[tuple[str, Callable[[], bool], int]] = [
        ("a write", lambda: answer() is not None, times[0]),
        ("a deletion", lambda: call.done, times[1]),
    ]
    for what, done, at_ms in sorted(waits, key=lambda wait: wait[2]):
        ground.must(f"{what} answered in {at_ms} ms", done, began_ms + at_ms + 90 - ground.world.now_ms)
        took_ms = ground.world.now_ms - began_ms
        if took_ms < at_ms - 1:
            ground.fail(f"{what} of {at_ms} ms was answered after {took_ms:.0f}")
    errors = answer().error, call.response.partitions[0].error
    ground.expect("the errors of what came too late", errors, (ErrorCode.request_timed_out,) * 2)
    ground.world.release(hold)
    ground.whole()
    ground.expect("the answer to a write afterwards", ground.sent(leader).error, ErrorCode.none)


@_waits
def end_of_a_leadership(ground: Ground) -> None:
    """Who waits at a leader is answered when another leads, and finds its way; nothing that waited is
    answered twice or forgotten."""
    leader = ground.image.leader
    if len(ground.image.isr) < 3:
        return
    other = ground.draw.choice(ground.followers())
    end = ground.sent(leader).base_offset + 1
    hold = _held_fetches(ground, ground.followers())
    ground.rest(5)
    answer = ground.send(leader, timeout_ms=30_000)
    ground.deleted[ground.tp] = max(end, ground.deleted.get(ground.tp, 0))
    deletion = ground.world.ask(leader, DeleteRecordsRequest(((ground.tp, end),), 30_000), 31_000)
    part = FetchPartition(ground.tp, end, 100_000)
    poll = ground.world.ask(leader, FetchRequest(20_000, 1, 200_000, (part,)), 31_000)
    ground.rest(20)
    for what, call in (("a deletion", deletion), ("a poll", poll)):
        if call.done:
            ground.fail(f"{what} that waits was answered {call.response or call.failed}")
    _lead(ground, other)
    ground.must("the poll answered when another leads", lambda: poll.done, SLACK_MS)
    ground.must("the deletion answered when another leads", lambda: deletion.done, SLACK_MS)
    ground.expect("the error of the deletion", deletion.response.partitions[0].error, _GONE)
    ground.world.release(hold)
    ground.must("the write answered when another leads", lambda: answer() is not None, 4 * SLACK_MS)
    if answer().error not in (ErrorCode.none, _GONE):
        ground.fail(f"a write that waited was answered {answer().error} when another led")
    ground.must(
        "the new leader to know",
        lambda: (replica := ground.replica(other)) is not None and replica.leader is not None,
        4 * SLACK_MS,
    )
    ground.whole()
    ground.expect("the answer to a write afterwards", ground.sent(other).error, ErrorCode.none)


@_returns
def large_batches(ground: Ground) -> None:
    """A write of many bytes is looked at piece by piece; each of its batches is stored, in order, once."""
    leader, tp = ground.image.leader, ground.tp
    values = [ground.values(1) for _ in range(3)]
    parts = tuple(
        ProducePartition(tp, encode(value, 0, record_bytes=size))
        for value, size in zip(values, _SIZES, strict=True)
    )
    for value in values:
        ground.record(Type.INVOKE, (Record(tp.partition, UNKNOWN, value[0]),))
    call = ground.call(leader, ProduceRequest(-1, 3_000, parts))
    after = ground.sent(leader, within_ms=4_000)
    ground.must("an answer to a large write", lambda: call.done, 4_000)
    if call.failed:
        ground.fail(f"a large write: {call.failed}")
    results = call.response.partitions
    for result, value in zip(results, values, strict=True):
        ground.answered(result, value, -1)
    base = results[0].base_offset
    outcomes = [(result.error, result.base_offset) for result in results]
    ground.expect("the answer to a large write", outcomes, [(ErrorCode.none, base + at) for at in range(3)])
    if after.base_offset in range(base, base + 3):
        ground.fail(f"a write behind a large one is at {after.base_offset}, the large one from {base} on")


@_waits
def writes_without_an_answer(ground: Ground) -> None:
    """Records with acks=0 are stored, and nobody is told."""
    leader = ground.image.leader
    replica = ground.replica(leader)
    if replica is None or replica.leader is None:
        return
    end, values = replica.log.leo, ground.values(2)
    data = encode(values, 0)
    ground.record(Type.INVOKE, tuple(Record(ground.tp.partition, UNKNOWN, value) for value in values))
    call = ground.world.ask(leader, ProduceRequest(0, 1_000, (ProducePartition(ground.tp, data),)), 3_000)
    ground.must("records of acks=0 stored", lambda: replica.log.leo == end + 2, 100)
    ground.rest(20)
    if call.done:
        ground.fail(f"acks=0 was answered {call.response or call.failed}")
    ground.whole()


@_waits
def requests_out_of_place(ground: Ground) -> None:
    """What nobody offers is refused, and nothing is made of it."""
    node, name = ground.any_broker(), "never"
    answer = ground.ask(node, InitProducerIdRequest("a transaction"))
    error = ErrorCode.transactional_id_authorization_failed
    ground.expect("the answer to a transactional id", answer.error, error)
    described = ground.ask(node, MetadataRequest((name,), allow_auto_topic_creation=True))
    error = ErrorCode.unknown_topic_or_partition
    ground.expect("the answer for no topic", [each.error for each in described.topics], [error])
    validated = ground.ask(node, CreateTopicsRequest((NewTopic(name, 1, 1),), ANSWER_MS, True))
    ground.expect("the answer to a trial", validated.topics[0].error, ErrorCode.none)
    ground.rest(50)
    if name in ground.world.image.topics_by_name:
        ground.fail(f"topic {name!r} was made, and nobody has asked for it")


@_returns
def out_of_range(ground: Ground) -> None:
    """A follower comes back when its leader's log begins past its own end: it asks for the range, whatever
    becomes of that question, and begins there."""
    world, leader, draw = ground.world, ground.image.leader, ground.draw
    if len(ground.image.isr) < 3:
        return
    node = draw.choice(ground.followers())
    other = next(one for one in ground.followers() if one != node)
    end = ground.replica(node).log.leo
    world.kill(node)
    ground.must(
        f"node {node} out of the ISR",
        lambda: node not in ground.image.isr,
        ground.session_ms + ground.heartbeat_ms + 1.5 * ground.lag_ms + SLACK_MS,
    )
    if len(ground.image.isr) < max(2, ground.min_isr):
        world.start(node)
        return
    ground.sent(leader, count=2)
    call = _deletion(ground, leader, ANSWER_MS)
    ground.must("the answer to DeleteRecords", lambda: call.done, ANSWER_MS)
    ground.expect("the answer to DeleteRecords", call.response.partitions[0].error, ErrorCode.none)
    start = ground.replica(leader).log.log_start
    how = draw.choice(("at once", "lost", "leader"))
    hold = None
    if how != "at once":
        hold = world.hold(
            lambda message: message.name == "ListOffsetsResponse" and message.destination == node
        )
    world.start(node)
    if hold is not None:
        ground.must("the question for the range", lambda: bool(hold.held), ground.rejoin_ms)
        if how == "leader":
            _lead(ground, other)
            ground.must(
                f"node {node} to know its new leader",
                lambda: (replica := ground.replica(node)) is not None and replica.leader_id == other,
                2 * SLACK_MS,
            )
        world.release(hold, drop=how == "lost")
    ground.whole(ground.rejoin_ms + 2 * ground.session_ms + 4_000)
    replica = ground.replica(node)
    if not end < start <= replica.log.log_start:
        ground.fail(
            f"node {node} begins at {replica.log.log_start}, ended at {end}, its leader begins at {start}"
        )


@_returns
def loss_of_snapshots(ground: Ground) -> None:
    """A broker comes back with a snapshot of the metadata that is damaged, or with none: it takes an older
    one, or begins anew, and knows what the others know."""
    world, draw = ground.world, ground.draw
    node = ground.any_broker()
    make_snapshots(ground, node, 2)
    world.kill(node)
    disk = world.brokers[node].disk
    if draw.random() < 0.5:
        disk.snapshots.clear()
    elif disk.snapshots:
        newest = max(disk.snapshots)
        data = disk.snapshots[newest]
        at = draw.randrange(len(data))
        disk.snapshots[newest] = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
    world.start(node)
    ground.whole(ground.rejoin_ms + 2 * ground.session_ms)
    core = world.brokers[node].core
    assert core is not None
    ground.must(
        f"node {node} to know all",
        lambda: core.image.metadata_offset == world.image.metadata_offset,
        2_000,
    )
    image, own = world.image, core.image
    ground.expect(
        f"the members and topics that node {node} knows",
        (own.brokers, own.topics_by_id, own.configs),
        (image.brokers, image.topics_by_id, image.configs),
    )


@_returns
def shorter_log(ground: Ground) -> None:
    """Of two voters that are left, the one whose log lacks what is committed is not elected, whoever asks
    first."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or len(world.controllers) != 3:
        return
    first = active.id
    short, long = ground.draw.sample([node for node in world.controllers if node != first], 2)
    world.kill(short)
    node = ground.any_broker()
    for request in (
        CreateTopicsRequest((NewTopic("short", 3, 1),), ANSWER_MS),
        DeleteTopicsRequest(("short",), ANSWER_MS),
    ):
        ground.expect("the error of a topic", ground.ask(node, request).topics[0].error, ErrorCode.none)
    world.kill(first)
    if ground.draw.random() < 0.5:
        world.pause(long)
    world.start(short)
    ground.rest(ground.draw.choice((10, 500, 2_500)))
    world.resume(long)

    def elected() -> bool:
        leads = world.active_controller()
        return leads is not None and leads.id == long

    ground.must(f"controller {long}, whose log is the longest", elected, 12_000)
    world.start(first)
    ground.whole()


def _stop_alone(ground: Ground, node: NodeId) -> None:
    """A broker that is to stop asks the controller to lead elsewhere, and does not wait for ever."""
    limit_ms = max(5_000, 5 * ground.heartbeat_ms)
    ground.world.clean_stop(node)
    took_ms = ground.must(
        f"the end of node {node} without a controller",
        lambda: not ground.world.brokers[node].up,
        limit_ms + SLACK_MS,
    )
    if took_ms < limit_ms - SLACK_MS:  # its clock may be fast
        ground.fail(f"node {node} stopped after {took_ms:.0f} ms, and no controller had agreed")
    ground.expect(f"how node {node} ended", ground.world.brokers[node].down, "clean")


@_returns
def away_from_controllers(ground: Ground) -> None:
    """A broker that no controller hears tells its clients in time that it cannot do what they ask, and does
    it when it is heard again."""
    world, node = ground.world, ground.any_broker()
    world.kill(node)  # its next life has no producer ids
    world.start(node)
    ground.whole(ground.rejoin_ms + 2 * ground.session_ms)
    for controller in world.controllers:
        world.cut(node, controller)
    began_ms, topic_ms = world.now_ms, 400
    topic = world.ask(node, CreateTopicsRequest((NewTopic("away", 1, 1),), topic_ms), 10_000)
    ids = world.ask(node, InitProducerIdRequest(), 10_000)
    for what, call, after_ms, error in (
        ("a topic", topic, topic_ms, ErrorCode.request_timed_out),
        ("producer ids", ids, max(2 * ground.heartbeat_ms, 1_000), ErrorCode.coordinator_load_in_progress),
    ):
        remaining_ms = began_ms + after_ms + 90 - world.now_ms
        ground.must(f"an answer on {what}", partial(attrgetter("done"), call), remaining_ms)
        took_ms = world.now_ms - began_ms
        if took_ms < after_ms - 1:
            ground.fail(f"who asked for {what} waits {after_ms} ms, and was answered after {took_ms:.0f}")
        result = call.response.topics[0] if hasattr(call.response, "topics") else call.response
        ground.expect(f"the error on {what}", result.error, error)
    if ground.draw.random() < _STOPPED:
        _stop_alone(ground, node)
    for controller in world.controllers:
        world.mend(node, controller)
    if not world.brokers[node].up:
        world.start(node)
    ground.whole(ground.rejoin_ms + 2 * ground.session_ms)
    answer = ground.ask(node, InitProducerIdRequest())
    ground.expect("the answer on producer ids when all is well", answer.error, ErrorCode.none)
    made = ground.ask(node, CreateTopicsRequest((NewTopic("away", 1, 1),), ANSWER_MS)).topics[0].error
    if made not in (ErrorCode.none, ErrorCode.topic_already_exists):
        ground.fail(f"a topic was refused when all is well: {made}")
    gone = ground.ask(node, DeleteTopicsRequest(("away",), ANSWER_MS)).topics[0].error
    ground.expect("the answer to DeleteTopics", gone, ErrorCode.none)

"""Drills of seconds: somebody fails, stops, lags or moves, and the cluster goes on in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.types import METADATA, NO_LEADER, NodeId
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to
from wrackline.simulator.faults.operators import min_isr_request

_BEGIN_MS = 300
"""A new leader of the quorum tells it at once; a voter that is not told asks when its patience is over."""
_MOST_SNAPSHOTS = 3
"""Of a node: two are kept, and a crash may leave one more until the next one is there."""
_LARGEST_BATCH = 3_000
"""Of metadata, in bytes: a change of many partitions."""
_SNAPSHOT_RECORDS, _PARTITIONS = 40, 12
"""Records of metadata between two snapshots in a simulated cluster, and partitions that make them."""
_PATIENCE_MS = 1_200
"""Less than a voter waits for a piece of a snapshot."""
LONG: list[Drill] = []
"""A run does one of them."""
_long = add_to(LONG)


@_long
def silent_broker(ground: Ground) -> None:
    """A broker falls silent: it is fenced when its session ends, its partitions are led by others at once,
    and it is back in every ISR soon after it speaks again."""
    node = ground.any_broker()
    ground.rest(ground.heartbeat_ms)  # a new controller counts from the last one that it has heard
    with _silence(ground, ground.draw.choice(("kill", "pause", "cut")), node):
        took_ms = ground.must(
            f"node {node} fenced",
            lambda: ground.fenced(node),
            ground.session_ms + ground.heartbeat_ms + SLACK_MS,
        )
        if took_ms < ground.session_ms - ground.heartbeat_ms - SLACK_MS:
            ground.fail(f"node {node} was fenced {took_ms:.0f} ms after its silence began: too early")
        for image in ground.partitions:
            others = [other for other in image.replicas if other != node]
            if image.leader == node or (image.leader == NO_LEADER and len(others) > 0):
                ground.fail(
                    f"{image.tp} is led by {image.leader}, with ISR {image.isr}; node {node} is fenced"
                )
            if node in image.isr and image.replicas != (node,):  # who is alone stays, without an ELR
                ground.fail(f"node {node} is fenced, and in the ISR of {image.tp}: {image.isr}")
        left = [each for each in ground.image.isr if each != node]
        if len(left) >= ground.min_isr:
            ground.rest(SLACK_MS)
            ground.expect("the answer to acks=all", ground.sent(ground.image.leader).error, ErrorCode.none)
    ground.whole()


@contextmanager
def _silence(ground: Ground, how: str, node: NodeId) -> Iterator[None]:
    world = ground.world
    match how:
        case "kill":
            world.kill(node)
            yield
            world.start(node)
        case "pause":
            world.pause(node)
            yield
            world.resume(node)
        case _:
            for controller in world.controllers:
                world.cut(node, controller)
            yield
            for controller in world.controllers:
                world.mend(node, controller)


@_long
def laggard(ground: Ground) -> None:
    """A follower does not fetch: records wait for it as long as it is in the ISR; it leaves within its time
    and half of it more, not before; and it is back when it has caught up."""
    world, leader = ground.world, ground.image.leader
    if len(ground.image.isr) < 2:
        return
    node = ground.draw.choice(ground.followers())
    ground.rest(ground.fetch_ms + SLACK_MS)
    hold = world.hold(lambda message: message.name == "FetchRequest" and message.source == node)
    answer = ground.send(leader, timeout_ms=60_000)
    limit_ms = 1.5 * ground.lag_ms + 2 * SLACK_MS
    took_ms = ground.must(f"node {node} out of the ISR", lambda: node not in ground.image.isr, limit_ms)
    if took_ms < ground.lag_ms - ground.fetch_ms - SLACK_MS:
        ground.fail(f"node {node} left the ISR after {took_ms:.0f} ms: too early")
    if len(ground.image.isr) >= ground.min_isr:
        ground.must("the waiting record acknowledged", lambda: answer() is not None, 4 * SLACK_MS)
        ground.expect("the answer to the waiting record", answer().error, ErrorCode.none)
        ground.expect("the answer to acks=all", ground.sent(leader).error, ErrorCode.none)
    else:
        ground.must("the waiting record refused", lambda: answer() is not None, 61_000)
        ground.expect(
            "the answer with too small an ISR", ground.sent(leader).error, ErrorCode.not_enough_replicas
        )
        ground.expect("the answer to acks=1", ground.sent(leader, acks=1).error, ErrorCode.none)
    ground.expect("the leader after an ISR has shrunk", ground.image.leader, leader)
    world.release(hold)
    ground.must(
        f"node {node} back in the ISR", lambda: node in ground.image.isr, 4 * ground.fetch_ms + 4 * SLACK_MS
    )
    ground.whole()


@_long
def controlled_shutdown(ground: Ground) -> None:
    """A leader stops: others lead before it is gone, no partition is without a leader for a moment, and the
    preferred replica leads again when somebody asks for that."""
    world, node = ground.world, ground.image.leader
    led = [image.tp for image in ground.partitions if image.leader == node and len(image.isr) > 1]
    epochs = {image.tp: image.leader_epoch for image in ground.partitions}
    world.clean_stop(node)

    def gone() -> bool:
        for tp in led:
            image = world.image.partition(tp)
            if image is not None and image.leader == NO_LEADER:
                ground.fail(f"{tp} has no leader while node {node} stops, its ISR is {image.isr}")
        return not world.brokers[node].up

    ground.must(f"node {node} stopped", gone, 4_000 + 4 * ground.heartbeat_ms)
    ground.expect(f"the end of node {node}", world.brokers[node].down, "clean")
    for tp in led:
        image = world.image.partition(tp)
        assert image is not None
        if image.leader == node or node in image.isr:
            ground.fail(f"{tp} is led by {image.leader} with ISR {image.isr}; node {node} has stopped")
        ground.expect(f"the leader epoch of {tp}", image.leader_epoch, epochs[tp] + 1)
    if len(ground.image.isr) >= ground.min_isr:
        ground.must("the new leader to know", lambda: _leads(ground, ground.image.leader), 4 * SLACK_MS)
        ground.expect("the answer to acks=all", ground.sent(ground.image.leader).error, ErrorCode.none)
    world.start(node)
    ground.whole()
    preferred = ground.image.replicas[0]
    by_itself_ms = ground.controller.get("leader_imbalance_check_interval_ms", 0)
    if not by_itself_ms:
        request = ElectLeadersRequest(ElectionType.PREFERRED, (ground.tp,), ANSWER_MS)
        right = ErrorCode.election_not_needed if ground.image.leader == preferred else ErrorCode.none
        error = ground.ask(ground.any_broker(), request).partitions[0].error
        ground.expect("the answer to the election of the preferred leader", error, right)
    limit_ms = by_itself_ms + 2 * SLACK_MS
    ground.must(f"the preferred leader {preferred}", lambda: ground.image.leader == preferred, limit_ms)
    ground.must("the preferred leader to know", lambda: _leads(ground, preferred), 4 * SLACK_MS)
    ground.whole()


def _leads(ground: Ground, node: NodeId) -> bool:
    replica = ground.replica(node)
    return replica is not None and replica.leader is not None


@_long
def quorum(ground: Ground) -> None:
    """The active controller dies: another is elected, once; one that was away, or away from it alone, does
    not disturb it, nor does one that comes back."""
    world = ground.world
    if len(world.controllers) < 3:
        return
    first, before = _office(ground)
    election_ms = 2 * ground.controller.get("quorum_election_timeout_ms", 1_000)
    fetch_ms = ground.controller.get("quorum_fetch_timeout_ms", 2_000)
    world.kill(first)

    def another() -> bool:
        active = world.active_controller()
        return active is not None and active.id != first

    ground.must("another controller", another, fetch_ms + 3 * election_ms + 2_000)
    second, epoch = _office(ground)
    if epoch <= before:
        ground.fail(f"controller {second} is active in epoch {epoch}, after one in {before}")

    def is_announced() -> bool:
        return all(_leader_of(ground, node) == second for node in world.controllers if node != first)

    ground.must(f"every controller to know that {second} is active", is_announced, _BEGIN_MS)
    timeout_ms = max(2 * ground.heartbeat_ms, 1_000)

    def all_hear_it() -> bool:
        cores = [server.core for server in world.brokers.values()]
        return all(c is not None and c.image.metadata_offset == world.image.metadata_offset for c in cores)

    ground.must("every broker to find the controller that is active", all_hear_it, 3 * timeout_ms + 2_000)
    world.start(first)
    ground.rest(1.5 * fetch_ms)
    away = next(node for node in world.controllers if node not in (first, second))
    others = [*world.brokers, *(node for node in world.controllers if node != away)]
    if ground.draw.random() < 0.5:  # it can still ask the third, which must not let it disturb the leader
        others = [second]
    for node in others:
        world.cut(away, node)
    ground.rest(1.5 * fetch_ms + election_ms)
    for node in others:
        world.mend(away, node)
    ground.rest(fetch_ms)
    ground.expect("the active controller and its epoch", _office(ground), (second, epoch))
    ground.whole()
    world.clean_stop(second)

    def handed_over() -> bool:
        active = world.active_controller()
        return active is not None and active.id != second

    ground.must(
        f"another controller when {second} stops by itself", handed_over, fetch_ms + 3 * election_ms + 2_000
    )
    ground.must(f"controller {second} stopped", lambda: not world.controllers[second].up, ANSWER_MS)
    world.start(second)
    ground.whole()


def _leader_of(ground: Ground, node: NodeId) -> NodeId:
    core = ground.world.controllers[node].core
    return NO_LEADER if core is None else core.raft.leader_id


def _office(ground: Ground) -> tuple[NodeId, int]:
    """The active controller and its epoch; (-1, -1): there is none."""
    active = ground.world.active_controller()
    return (-1, -1) if active is None or active.core is None else (active.id, active.core.raft.epoch)


@_long
def rest(ground: Ground) -> None:
    """Nothing is done: nothing changes, and every replica knows what is committed."""
    for image in ground.partitions:
        ground.tp = image.tp
        if image.tp.topic == ground.session.setup.topic:
            ground.sent(image.leader, count=2)
    before, office = ground.partitions, _office(ground)
    ground.rest(max(1.6 * ground.lag_ms, 1.5 * ground.session_ms, 3 * ground.fetch_ms) + SLACK_MS)
    if "leader_imbalance_check_interval_ms" not in ground.controller:
        ground.expect("what is registered of each partition", ground.partitions, before)
    ground.expect("the active controller and its epoch", _office(ground), office)
    _expect_snapshots(ground)
    ground.whole(within_ms=1)


def _expect_snapshots(ground: Ground) -> None:
    """Every node whose log of metadata has grown far enough has a snapshot that covers all but its end."""
    most = 2 * int(ground.controller["metadata_log_max_records_between_snapshots"])
    most_bytes = 2 * int(ground.controller.get("metadata_log_max_record_bytes_between_snapshots", 1 << 30))
    for server in ground.world.servers():
        log = server.disk.logs.get(METADATA)
        ends = [one.end_offset for one in server.disk.snapshots]
        covered = max(ends, default=0)
        if len(ends) > _MOST_SNAPSHOTS or (log is not None and 0 < log.start < min(ends, default=0)):
            ground.fail(
                f"node {server.id} has snapshots to {ends}, its metadata log begins at {log and log.start}"
            )
        if log is not None and log.leo - covered > most:
            ground.fail(
                f"node {server.id} has {log.leo - covered} records of metadata behind its newest snapshot"
            )
        size = 0 if log is None else sum(len(one.data) for one in log.batches if one.end > covered)
        if size > most_bytes + _LARGEST_BATCH:
            ground.fail(f"node {server.id} has {size} bytes of metadata behind its newest snapshot")


@_long
def reassignment(ground: Ground) -> None:
    """Replicas move to exactly those that were asked for, in that order; the others delete their logs."""
    world, old = ground.world, ground.image.replicas
    brokers = sorted(world.brokers)
    target = tuple(ground.draw.sample(brokers, len(old)))
    request = AlterPartitionReassignmentsRequest((Reassignment(ground.tp, target),), ANSWER_MS)
    answer = ground.ask(ground.draw.choice(brokers), request)
    ground.expect(
        "the error of the reassignment", [each.error for each in answer.partitions], [ErrorCode.none]
    )

    def done() -> bool:
        image = ground.image
        settled = image.replicas == target and not image.adding and not image.removing
        return settled and set(image.isr) == set(target) and image.leader in target

    ground.must(f"{ground.tp} on {target}", done, ground.rejoin_ms + 3_000)
    gone = [node for node in old if node not in target]
    ground.must(
        f"the log of {ground.tp} deleted on {gone}",
        lambda: all(ground.tp not in world.brokers[node].disk.logs for node in gone),
        ground.rejoin_ms,
    )
    ground.whole()


@_long
def restart_of_all(ground: Ground) -> None:
    """Every broker stops at once, in one way or another, and nothing is missing when they are back."""
    world = ground.world
    how = ground.draw.choice(("clean", "kill"))
    ground.sent(ground.image.leader, count=3)
    for node in world.brokers:
        if how == "clean":
            world.clean_stop(node)
        else:
            world.kill(node)
    if how == "clean":
        ground.must(
            "every broker stopped", lambda: not any(each.up for each in world.brokers.values()), 15_000
        )
    for node in world.brokers:
        world.start(node)
    ground.whole(within_ms=ground.rejoin_ms + 3 * ground.session_ms + 10_000)


@_long
def too_small_isr(ground: Ground) -> None:
    """min.insync.replicas above the ISR refuses acks=all before anything is appended, and nothing else."""
    world, leader, was = ground.world, ground.image.leader, ground.min_isr
    node = ground.draw.choice(ground.followers())
    world.kill(node)
    ground.must(
        f"node {node} out of the ISR",
        lambda: node not in ground.image.isr,
        ground.session_ms + ground.heartbeat_ms + SLACK_MS,
    )
    _set_min_isr(ground, leader, len(ground.image.isr) + 1)
    before = ground.replica(leader).log.leo
    ground.expect("acks=all, one too few", ground.sent(leader).error, ErrorCode.not_enough_replicas)
    ground.expect("the end of the log after a refusal", ground.replica(leader).log.leo, before)
    ground.expect("acks=1", ground.sent(leader, acks=1).error, ErrorCode.none)
    _set_min_isr(ground, leader, was)
    world.start(node)
    ground.whole()
    ground.expect("acks=all as before", ground.sent(leader).error, ErrorCode.none)


def _set_min_isr(ground: Ground, leader: NodeId, count: int) -> None:
    answer = ground.ask(leader, min_isr_request(ground.tp.topic, count))
    ground.expect("the answer to a setting", [each.error for each in answer.resources], [ErrorCode.none])
    ground.must("the leader to know", lambda: ground.replica(leader).min_isr == count, 1_500)


@_long
def return_by_snapshot(ground: Ground) -> None:
    """A node comes back when the metadata that it lacks is in snapshots alone: it loads one, in pieces, and
    knows all that the others do."""
    world, draw = ground.world, ground.draw
    active = world.active_controller()
    if active is None:
        return
    standby = [node for node in world.controllers if node != active.id] if len(world.controllers) > 2 else []
    node = draw.choice(standby if standby and draw.random() < 0.8 else sorted(world.brokers))
    end = world.server(node).disk.logs[METADATA].leo
    world.kill(node)
    ask = min(one for one in world.brokers if one != node)
    for _ in range(2 * _SNAPSHOT_RECORDS // _PARTITIONS):
        ground.must(f"node {ask} in office", lambda: not ground.fenced(ask), ground.rejoin_ms)
        made = ground.ask(ask, CreateTopicsRequest((NewTopic("snapshots", _PARTITIONS, 1),), ANSWER_MS))
        ground.expect("the answer to CreateTopics", made.topics[0].error, ErrorCode.none)
        gone = ground.ask(ask, DeleteTopicsRequest(("snapshots",), ANSWER_MS))
        ground.expect("the answer to DeleteTopics", gone.topics[0].error, ErrorCode.none)
    ground.must(
        "the metadata log to begin past what the node has",
        lambda: (leads := world.active_controller()) is not None and leads.disk.logs[METADATA].start > end,
        2_000 + SLACK_MS,
    )
    if node in world.controllers:
        _drop_snapshot(ground, node, ask)
    else:
        world.start(node)
    ground.must(
        f"node {node} to know all", lambda: _knows_all(ground, node), ground.rejoin_ms + ground.session_ms
    )
    ground.whole()
    ground.rest(SLACK_MS)
    _expect_snapshots(ground)


def _drop_snapshot(ground: Ground, node: NodeId, ask: NodeId) -> None:
    """The leader has no longer the snapshot that a voter is about to load, and says so."""
    world, leader = ground.world, ground.world.active_controller()
    assert leader is not None
    hold = world.hold(lambda message: message.name == "FetchSnapshotRequest" and message.source == node)
    world.start(node)
    ground.must("a voter to ask for a snapshot", lambda: bool(hold.held), 4_000)
    there, end_ms = set(leader.disk.snapshots), world.now_ms + _PATIENCE_MS
    while there & set(leader.disk.snapshots) and world.now_ms < end_ms:
        ground.ask(ask, CreateTopicsRequest((NewTopic("snapshots", _PARTITIONS, 1),), ANSWER_MS))
        ground.ask(ask, DeleteTopicsRequest(("snapshots",), ANSWER_MS))
    world.release(hold)


def _knows_all(ground: Ground, node: NodeId) -> bool:
    world, server = ground.world, ground.world.server(node)
    if server.core is None:
        return False
    own = server.core.image if node in world.brokers else server.core.committed
    image = world.image
    return (own.metadata_offset, own.topics_by_id, own.brokers, own.configs) == (
        image.metadata_offset,
        image.topics_by_id,
        image.brokers,
        image.configs,
    )

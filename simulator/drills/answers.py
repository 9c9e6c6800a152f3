"""Drills of answers: what a node says of its logs, its quorum and its cluster, field by field, held against
the disks and the committed metadata; and what it says to requests that are wrong in one field each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import DescribeQuorumRequest
from wrackline.broker.model.messages.controller import GetReplicaLogInfoRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    NewTopic,
)
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResult,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResult,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, NodeId, SnapshotId
from wrackline.simulator.drills.ground import ANSWER_MS, Drill, Ground, add_to
from wrackline.simulator.world.disk_log import SimLog

_NOWHERE = UUID(int=77)
_BYTES = 1 << 20
_ABSENT = (-1, None, ())
ANSWERS: list[Drill] = []
"""A run does one of them."""
_answers = add_to(ANSWERS)


def _expect(ground: Ground, what: str, actual: tuple[Any, ...], right: tuple[Any, ...]) -> None:
    """Expects these fields, but those that the client's version of the answer does not have."""
    if ground.session.setup.codec:
        right = tuple(own if own in _ABSENT else each for own, each in zip(actual, right, strict=True))
    ground.expect(what, actual, right)


def _last_epoch(log: SimLog) -> int:
    return log.batches[-1].header.leader_epoch if log.batches else -1


@_answers
def voters(ground: Ground) -> None:
    """Requests of the quorum that are void, late, or of a stranger, are refused, each with its error, and
    nobody's epoch, leader or vote is another one afterwards."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or active.core is None:
        return
    announced(ground, active.id, active.core.raft.epoch)
    node = ground.draw.choice(sorted(world.controllers))
    core = world.controllers[node].core
    if core is None:
        return
    raft = core.raft
    before, cluster = raft.state, core.config.cluster_id
    epoch, leader = raft.epoch, raft.leader_id
    others = [one for one in sorted(world.controllers) if one != node]
    peer = others[0] if others else 999
    stranger, some = ErrorCode.inconsistent_voter_set, UUID(int=5)
    unasked = ErrorCode.none if others else stranger
    vote = VoteRequest(cluster, node, epoch, peer, some, epoch, 1 << 40, pre_vote=True)
    begin = BeginQuorumEpochRequest(cluster, peer, epoch)
    end = EndQuorumEpochRequest(cluster, peer, epoch, (node,))
    cases: list[tuple[str, Any, ErrorCode]] = [
        (f"{type(good).__name__} with {what}", replace(good, **changes), error)
        for good, sender in ((vote, "candidate_id"), (begin, "leader_id"), (end, "leader_id"))
        for what, changes, error in (
            ("another cluster", {"cluster_id": "another"}, ErrorCode.inconsistent_cluster_id),
            ("a sender that is no voter", {sender: 999}, stranger),
            ("its receiver as the sender", {sender: node}, stranger),
            ("an older epoch", {"epoch": epoch - 1}, ErrorCode.fenced_leader_epoch if others else stranger),
        )
    ]
    cases += [
        (
            "a vote for another voter",
            replace(vote, voter_id=998),
            ErrorCode.invalid_request if others else stranger,
        ),
        ("a pre-vote while the leader answers", vote, unasked),
        ("a vote while there is a leader", replace(vote, pre_vote=False), unasked),
        ("a vote with a shorter log", replace(vote, last_epoch=0, last_offset=0, pre_vote=False), unasked),
    ]
    if leader != peer and others:
        cases.append(("the beginning of who does not lead", begin, ErrorCode.invalid_request))
    for what, request, error in cases:
        answer = ground.ask(node, request)
        ground.expect(f"node {node}'s answer to {what}", answer.error, error)
        ground.expect(
            f"what node {node} says of the quorum", (answer.epoch, answer.leader_id), (epoch, leader)
        )
        if getattr(answer, "granted", False):
            ground.fail(f"node {node} granted {what}")
    ground.expect(f"node {node}'s state of the quorum", raft.state, before)


def announced(ground: Ground, leader: NodeId, epoch: int) -> None:
    """Every voter knows the leader and has had all of its log."""
    world = ground.world

    def all_follow() -> bool:
        rafts = [node.core.raft for node in world.controllers.values() if node.core is not None]
        asking = [
            progress.fetched and progress.caught_up_ms is not None
            for raft in rafts
            if raft.leadership is not None
            for progress in raft.leadership.voters.values()
        ]
        return all(asking) and all((raft.leader_id, raft.epoch) == (leader, epoch) for raft in rafts)

    ground.must(f"every voter to follow controller {leader}", all_follow, 8_000)


def make_snapshots(ground: Ground, node: NodeId, count: int) -> None:
    """Changes metadata until the node has so many snapshots of it: a short run has none."""
    disk, ask = ground.world.server(node).disk, ground.any_broker()
    for _ in range(4 * count):
        if len(disk.snapshots) >= count:
            return
        ground.ask(ask, CreateTopicsRequest((NewTopic("snapshots", 20, 1),), ANSWER_MS))
        ground.ask(ask, DeleteTopicsRequest(("snapshots",), ANSWER_MS))
        ground.rest(50)
    ground.fail(f"node {node} has {len(disk.snapshots)} snapshots of the metadata, not {count}")


@_answers
def pieces_of_a_snapshot(ground: Ground) -> None:
    """The leader of the quorum gives any piece of a snapshot that it has, and nothing else."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or active.core is None:
        return
    make_snapshots(ground, active.id, 1)
    raft = active.core.raft
    cluster, epoch = active.core.config.cluster_id, raft.epoch
    announced(ground, active.id, epoch)
    snapshot = ground.draw.choice(sorted(active.disk.snapshots))
    data = active.disk.snapshots[snapshot]
    size, none = len(data), ErrorCode.none
    at, most = ground.draw.randrange(size), ground.draw.choice((1, 100, size))
    good = FetchSnapshotRequest(cluster, -1, snapshot, at, most)
    out_of_range, unknown = (
        ErrorCode.position_out_of_range,
        SnapshotId(snapshot.end_offset + 1, snapshot.epoch),
    )
    for what, changes, error in (
        ("of its middle", {}, none),
        ("of this epoch", {"current_leader_epoch": epoch}, none),
        ("of the first byte", {"position": 0, "max_bytes": 1}, none),
        ("of the last byte", {"position": size - 1}, none),
        ("past its end", {"position": size}, out_of_range),
        ("before its beginning", {"position": -1}, out_of_range),
        ("that nobody made", {"snapshot": unknown}, ErrorCode.snapshot_not_found),
        ("of another cluster", {"cluster_id": "another"}, ErrorCode.inconsistent_cluster_id),
        ("of an older epoch", {"current_leader_epoch": epoch - 1}, ErrorCode.fenced_leader_epoch),
        ("of an epoch to come", {"current_leader_epoch": epoch + 1}, ErrorCode.unknown_leader_epoch),
        (
            "that nobody made in an epoch to come",
            {"snapshot": unknown, "current_leader_epoch": epoch + 1},
            ErrorCode.unknown_leader_epoch,
        ),
        (
            "past its end in an epoch to come",
            {"position": size, "current_leader_epoch": epoch + 1},
            ErrorCode.unknown_leader_epoch,
        ),
    ):
        if epoch == 0 and changes.get("current_leader_epoch") == -1:
            continue
        request = replace(good, **changes)
        answer = ground.ask(active.id, request)
        if snapshot not in active.disk.snapshots:
            return  # newer ones have been made meanwhile
        ground.expect(f"the answer to a piece {what}", answer.error, error)
        ground.expect("whom it names as leader", (answer.leader_id, answer.leader_epoch), (active.id, epoch))
        if error is none:
            piece = data[request.position : request.position + request.max_bytes]
            ground.expect(
                f"the piece {what}",
                (answer.snapshot, answer.size, answer.position, bytes(answer.records)),
                (snapshot, size, request.position, piece),
            )
    for node in world.controllers:
        if node != active.id:
            answer = ground.ask(node, good)
            ground.expect(
                f"the answer of controller {node}, which does not lead",
                (answer.error, answer.leader_id, answer.leader_epoch),
                (ErrorCode.not_leader_or_follower, active.id, epoch),
            )


@_answers
def log_of_metadata(ground: Ground) -> None:
    """Who fetches metadata is given what is committed, a snapshot where the log begins too late, or the place
    where its log parts from the leader's."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or active.core is None:
        return
    raft, log = active.core.raft, active.disk.logs[METADATA]
    epoch = raft.epoch
    announced(ground, active.id, epoch)

    def fetched(node: NodeId, offset: int, wait_ms: int = 0, **more: Any) -> FetchResult:
        part = FetchPartition(METADATA, offset, _BYTES, topic_id=METADATA_TOPIC_ID)
        request = FetchRequest(wait_ms, 1, _BYTES, (replace(part, **more),))
        result: FetchResult = ground.ask(node, request).partitions[0]
        if result.error is not ErrorCode.unknown_topic_or_partition:
            hint = result.current_leader
            named = None if hint is None else (hint.leader_id, hint.leader_epoch)
            ground.expect(f"the leader that node {node} names", named, (active.id, epoch))
        return result

    for node in world.controllers:
        if node != active.id:
            error = fetched(node, 0).error
            ground.expect(f"the answer of controller {node}", error, ErrorCode.not_leader_or_follower)
    for other, error in (
        (epoch - 1, ErrorCode.fenced_leader_epoch),
        (epoch + 1, ErrorCode.unknown_leader_epoch),
    ):
        if other >= 0:
            answer = fetched(active.id, log.leo, current_leader_epoch=other)
            ground.expect(f"the answer to a fetch of epoch {other}", answer.error, error)
    strange = fetched(active.id, 0, topic_id=_NOWHERE).error
    ground.expect("a fetch of another topic", strange, ErrorCode.unknown_topic_or_partition)
    at = ground.draw.randrange(len(log.batches)) if log.batches else 0
    bases = [
        (stored.header.base_offset, _epoch_before(log, index)) for index, stored in enumerate(log.batches)
    ]
    if bases and bases[at][0] >= log.start and bases[at][1] >= 0:
        offset, last = bases[at]
        end, answer = raft.log.high_watermark, fetched(active.id, offset, last_fetched_epoch=last)
        if log.start > offset:
            return  # a snapshot has taken its place meanwhile
        later = [one for one in log.batches if one.header.base_offset >= offset]
        data = b"".join(one.data for one in later if one.end <= end)
        if answer.error is not ErrorCode.none or answer.diverging or answer.snapshot:
            ground.fail(f"a fetch of metadata from {offset} on, after epoch {last}, was answered {answer}")
        received = bytes(answer.records)  # type: ignore[arg-type]
        if not received or not (received.startswith(data) or data.startswith(received)):
            ground.fail(f"a fetch of metadata from {offset} on brought {len(received)} other bytes")
        ground.expect("the log start of metadata", answer.log_start, log.start)
    if log.start > 0:
        for offset, last in ((0, -1), (log.start - 1, 0), (log.start, -1)):
            newest = max(active.disk.snapshots)
            answer = fetched(active.id, offset, last_fetched_epoch=last)
            if answer.snapshot != newest:  # one may have been made meanwhile
                newest = max(active.disk.snapshots)
                ground.expect(f"the snapshot for a log that ends at {offset}", answer.snapshot, newest)
    elif log.batches:
        answer = fetched(active.id, 0)
        if not answer.records or answer.snapshot is not None or answer.diverging is not None:
            ground.fail(f"a fetch of all metadata was answered {answer}")
    past = fetched(active.id, log.leo + 50, last_fetched_epoch=_last_epoch(log))
    if past.error is ErrorCode.none and past.diverging is None and past.snapshot is None:
        ground.fail(f"a fetch of metadata past the end was answered {past}")
    if past.diverging is not None:
        right = EpochEndOffset(_last_epoch(log), past.diverging.end_offset)
        ground.expect("where the log of who is past the end parts", past.diverging, right)
        if past.diverging.end_offset < log.leo:
            ground.fail(
                f"who is past the end is cut to {past.diverging.end_offset}, the log ends at {log.leo}"
            )
    past = fetched(active.id, log.leo + 50)
    if past.error is not ErrorCode.offset_out_of_range and past.snapshot is None:
        ground.fail(f"a fetch of metadata past the end, of no epoch, was answered {past}")


def _epoch_before(log: SimLog, index: int) -> int:
    return log.batches[index - 1].header.leader_epoch if index else -1


@_answers
def reads_of_a_log(ground: Ground) -> None:
    """What a leader reads out is on its disk, within the bytes that were asked for, whole batches, at least
    one; its ends and its times are the log's."""
    leader, draw = ground.image.leader, ground.draw
    for count in (1, 3, 2):
        ground.sent(leader, count=count)
        ground.rest(draw.choice((0, 30)))
    ground.whole()
    replica, log = ground.replica(leader), ground.world.brokers[leader].disk.logs[ground.tp]
    if replica is None or replica.leader is None or not log.batches:
        return
    start, end, epoch = replica.log.log_start, log.leo, ground.image.leader_epoch
    readable = [one for one in log.batches if one.end > start]
    one = draw.choice(readable)
    bounded = "fetch_max_bytes" in ground.broker
    for limit in (1, len(one.data), len(one.data) + 1, 100_000):
        at = max(one.header.base_offset, start)
        part = FetchPartition(ground.tp, at, limit if draw.random() < 0.5 else 100_000)
        request = FetchRequest(0, 0, limit if part.max_bytes != limit else 200_000, (part,))
        result = ground.ask(leader, request).partitions[0]
        data = b"".join(each.data for each in log.batches[log.index_of(at) :])
        received, most = bytes(result.records), max(limit, len(one.data))
        if not data.startswith(received) or not len(one.data) <= len(received) <= most:
            ground.fail(
                f"a fetch of {limit} bytes at {at} brought {len(received)} bytes, a batch has {len(one.data)}"
            )
        if limit == 100_000 and not bounded and len(data) < limit:
            ground.expect(f"the bytes from {at} on", len(received), len(data))
        bounds = result.error, result.high_watermark, result.last_stable_offset, result.log_start
        _expect(ground, "what a fetch tells of the log", bounds, (ErrorCode.none, end, end, start))
    newest = max(each.header.leader_epoch for each in log.batches)
    for name, offset, last, right in (
        ("the end of the newest epoch", end, newest, None),
        ("a place past the newest epoch", end + 3, newest, EpochEndOffset(newest, end)),
    ):
        part = FetchPartition(ground.tp, offset, 100_000, epoch, last)
        result = ground.ask(leader, FetchRequest(0, 0, 200_000, (part,))).partitions[0]
        if not ground.session.setup.codec:
            ground.expect(
                f"the divergence at {name}", (result.error, result.diverging), (ErrorCode.none, right)
            )
    _reads_by_time(ground, leader, log, readable, start)


def _reads_by_time(ground: Ground, leader: NodeId, log: SimLog, readable: Sequence[Any], start: int) -> None:
    epoch, end = ground.image.leader_epoch, log.leo

    def listed(timestamp: int, current: int = -1, replica: int = -1) -> ListOffsetsResult:
        part = ListOffsetsPartition(ground.tp, timestamp, current)
        answer = ground.ask(leader, ListOffsetsRequest((part,), replica_id=replica))
        result: ListOffsetsResult = answer.partitions[0]
        return result

    of_start = readable[0].header.leader_epoch
    for current in (-1, epoch):
        result = listed(EARLIEST, current)
        _expect(ground, "the earliest offset", (result.offset, result.leader_epoch), (start, of_start))
        ground.expect("the latest offset", listed(LATEST, current).offset, end)
    follower = next(iter(ground.followers()), -1)
    ground.expect("the end that a follower is told", listed(LATEST, epoch, follower).offset, end)
    for current, error in (
        (epoch - 1, ErrorCode.fenced_leader_epoch),
        (epoch + 1, ErrorCode.unknown_leader_epoch),
    ):
        if current >= 0:
            for which in (EARLIEST, LATEST, 0):
                ground.expect(f"offsets for epoch {current}", listed(which, current).error, error)
    times = [one.header.max_timestamp for one in readable]
    after = listed(max(times) + 1).offset
    ground.expect("the first record after the newest", after, -1)
    # A producer may send any time; a negative one asks for an end of the log instead.
    timed = [each for each in times if each >= 0]
    if not timed:
        return
    at = ground.draw.choice(timed)
    right = next(one.header.base_offset for one in log.batches if one.header.max_timestamp >= at)
    ground.expect(f"the first record at time {at} or after", listed(at).offset, right)


@_answers
def state_of_the_cluster(ground: Ground) -> None:
    """Every broker tells the members, topics and partitions that are committed, and how far its own logs
    are."""
    world, image = ground.world, ground.world.image
    name, topic_id = ground.tp.topic, ground.image.topic_id

    def is_current(node: NodeId) -> bool:
        core = world.brokers[node].core
        return core is not None and core.image.metadata_offset == world.image.metadata_offset

    node = ground.any_broker()
    ground.must(f"node {node} to know all", lambda: is_current(node), 2_000)
    image = world.image
    topic = image.topics_by_name[name]
    rows = [
        (number, part.leader, part.leader_epoch, part.replicas, part.isr, part.partition_epoch)
        for number, part in sorted(topic.partitions.items())
    ]
    for request, many in (
        (MetadataRequest((name, "nowhere")), 2),
        (MetadataRequest((), (topic_id, _NOWHERE)), 2),
        (MetadataRequest(None), len(image.topics_by_name)),
        (DescribeTopicPartitionsRequest((name,)), 1),
        (DescribeTopicPartitionsRequest(()), len(image.topics_by_name)),
        (DescribeClusterRequest(), 0),
        (DescribeClusterRequest(include_fenced=True), 0),
    ):
        answer = ground.ask(node, request)
        ground.expect(f"the topics in the answer to {request}", len(answer.topics), many)
        brokers = sorted(broker.node_id for broker in answer.brokers)
        ground.expect(f"the brokers in the answer to {request}", brokers, sorted(image.brokers))
        for each in answer.topics:
            if each.name == "nowhere":
                ground.expect("the error of no topic", each.error, ErrorCode.unknown_topic_or_partition)
            elif each.topic_id == _NOWHERE:
                ground.expect("the error of no topic id", each.error, ErrorCode.unknown_topic_id)
            elif each.name == name:
                partitions = [
                    (p.partition, p.leader_id, p.leader_epoch, p.replicas, p.isr, p.partition_epoch)
                    for p in each.partitions
                ]
                for row, right in zip(partitions, rows, strict=True):
                    _expect(ground, f"{name} at node {node}", row, right)
                ground.expect("offline replicas", [p.offline for p in each.partitions if p.offline], [])
    places = ((topic_id, ground.tp.partition), (_NOWHERE, 0), (topic_id, 9_999))
    answer = ground.ask(node, GetReplicaLogInfoRequest(places))
    ground.expect("the broker epoch", answer.broker_epoch, image.brokers[node].epoch)
    entries = [entry.error for entry in answer.entries[1:]]
    ground.expect("the errors of no logs", entries, [ErrorCode.unknown_topic_id] * 2)
    own, replica = answer.entries[0], ground.replica(node)
    if replica is None:
        ground.expect("the log of no replica", own.error, ErrorCode.not_leader_or_follower)
        return
    log = world.brokers[node].disk.logs[ground.tp]
    ends = own.error, own.last_written_leader_epoch, own.current_leader_epoch, own.leo
    last = _last_epoch(log) if log.leo > replica.log.log_start else ends[1]
    right_log = (ErrorCode.none, last, ground.image.leader_epoch, log.leo)
    ground.expect(f"node {node}'s answer on its log", ends, right_log)


@_answers
def progress_of_the_quorum(ground: Ground) -> None:
    """The state of the quorum names epoch, committed end, every voter and every broker, and when each was
    last heard."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or active.core is None:
        return
    raft = active.core.raft
    announced(ground, active.id, raft.epoch)
    answer = ground.ask(active.id, DescribeQuorumRequest((METADATA,)))
    ground.expect("the epoch of the quorum", answer.leader_epoch, raft.epoch)
    leo = active.disk.logs[METADATA].leo
    if not 0 <= answer.high_watermark <= leo:
        ground.fail(f"the committed end is {answer.high_watermark}, the log ends at {leo}")
    ground.expect(
        "the brokers that fetch", sorted(each.node_id for each in answer.observers), sorted(world.brokers)
    )
    limit = max(ground.broker["replica_fetch_wait_max_ms"], 500) + 2_000
    for each in (*answer.voters, *answer.observers):
        if each.node_id == active.id:
            ages = each.fetched_ago_ms, each.caught_up_ago_ms
            ground.expect("when the leader heard itself", ages, (0.0, 0.0))
            continue
        fetched, caught_up = each.fetched_ago_ms, each.caught_up_ago_ms
        if fetched is None or not 0 <= fetched <= limit:
            ground.fail(f"node {each.node_id} asked {fetched} ms ago, as the quorum tells")
        if caught_up is None or not fetched <= caught_up <= 2 * limit:
            ground.fail(f"node {each.node_id} had everything {caught_up} ms ago, as the quorum tells")
        if not 0 <= each.leo <= leo:
            ground.fail(f"node {each.node_id} ends at {each.leo}, the leader at {leo}")

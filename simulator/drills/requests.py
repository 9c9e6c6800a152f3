"""Drills of milliseconds: requests that come too late, from the wrong side, or twice, and their answers."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    BROKER,
    TOPIC,
    AlteredResource,
    AlterOp,
    ConfigChange,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    IncrementalAlterConfigsRequest,
    Resource,
)
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    DeleteRecordsRequest,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ForgottenPartition,
    InitProducerIdRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResult,
)
from wrackline.broker.model.types import METADATA, NodeId, TopicPartition
from wrackline.history.model import UNKNOWN, Record, Type
from wrackline.simulator.clients.batches import decode, encode
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to, isr_change
from wrackline.simulator.world.nodes import Call

_METADATA_BEHIND = 20
"""Records of metadata that a voter may lack where nothing hinders it: it fetches all the time."""
SHORT: list[Drill] = []
"""A run does several of them."""
_short = add_to(SHORT)


@_short
def late_proposals(ground: Ground) -> None:
    """A proposal of an ISR that rests on something old, or comes from somebody else, changes nothing."""
    world, image = ground.world, ground.image
    active = world.active_controller()
    if active is None or len(image.isr) < 2:
        return
    epochs = {node: world.image.brokers[node].epoch for node in world.brokers}
    isr = ((image.leader, epochs[image.leader]),)

    def proposed(
        sender: NodeId,
        broker_epoch: int,
        leader_epoch: int,
        partition_epoch: int,
        isr: tuple[tuple[NodeId, int], ...] = isr,
    ) -> ErrorCode:
        item = isr_change(image, *isr, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        answer = ground.ask(active.id, AlterPartitionRequest(sender, broker_epoch, (item,)))
        error: ErrorCode = answer.error
        return error if error is not ErrorCode.none else answer.partitions[0].error

    leader, epoch, partition_epoch = image.leader, image.leader_epoch, image.partition_epoch
    other = next(node for node in image.isr if node != leader)
    cases = (
        ("an old partition epoch", (leader, epochs[leader], epoch, partition_epoch - 1)),
        ("an old leader epoch", (leader, epochs[leader], epoch - 1, partition_epoch)),
        ("an old broker epoch", (leader, epochs[leader] - 1, epoch, partition_epoch)),
        ("a broker that does not lead", (other, epochs[other], epoch, partition_epoch)),
        ("a partition epoch of the future", (leader, epochs[leader], epoch, partition_epoch + 5)),
        (
            "a member's former life",
            (leader, epochs[leader], epoch, partition_epoch, (isr[0], (other, epochs[other] - 1))),
        ),
    )
    for what, case in cases:
        if proposed(*case) is ErrorCode.none:
            ground.fail(f"a proposal with {what} was accepted")
        ground.expect(f"{ground.tp} after a proposal with {what}", ground.image, image)


@_short
def late_heartbeats(ground: Ground) -> None:
    """A heartbeat of a former life is refused, and keeps nobody's session; so are its other requests."""
    active = ground.world.active_controller()
    node = ground.any_broker()
    if active is None:
        return
    epoch = ground.world.image.brokers[node].epoch
    beat = BrokerHeartbeatRequest(node, epoch - 1, 0, False, ground.draw.random() < 0.5)
    ground.expect(
        "the answer to a late heartbeat", ground.ask(active.id, beat).error, ErrorCode.stale_broker_epoch
    )
    ids = ground.ask(active.id, AllocateProducerIdsRequest(node, epoch - 1))
    ground.expect("the answer to a late request for ids", ids.error, ErrorCode.stale_broker_epoch)
    ground.rest(50)
    known = ground.world.image.brokers[node]
    ground.expect(
        "its broker", (known.epoch, known.fenced, known.in_controlled_shutdown), (epoch, False, False)
    )


@_short
def late_fetches(ground: Ground) -> None:
    """A fetch of a former life, or of a replica that is none, moves nothing; nor may a request that names
    another leader epoch be served."""
    image, leader = ground.image, ground.image.leader
    replica = ground.replica(leader)
    if replica is None or replica.leader is None:
        return
    end = replica.log.leo
    for name, epoch, error in (
        ("an old leader epoch", image.leader_epoch - 1, ErrorCode.fenced_leader_epoch),
        ("a leader epoch of the future", image.leader_epoch + 1, ErrorCode.unknown_leader_epoch),
    ):
        if epoch >= 0:
            ground.expect(f"the answer to a fetch with {name}", ground.fetch(leader, end, epoch).error, error)
    ground.expect("a fetch past the end", ground.fetch(leader, end + 1).error, ErrorCode.offset_out_of_range)
    if not ground.followers():
        return
    follower = ground.draw.choice(ground.followers())
    state = replica.leading.followers[follower]
    follower_epoch = ground.world.image.brokers[follower].epoch
    ground.must(
        f"node {leader} to know how far node {follower} is",
        lambda: (state.leo, state.broker_epoch) == (replica.log.leo, follower_epoch),
        2 * ground.fetch_ms + SLACK_MS,
    )
    before = state.leo, state.broker_epoch, replica.high_watermark, replica.leading.isr
    former = ground.world.image.brokers[follower].epoch - 1
    for who, broker_epoch, what in (
        (follower, former, "a former life"),
        (next((n for n in ground.world.brokers if n not in image.replicas), leader), -1, "no replica"),
    ):
        result = ground.fetch(leader, 0, image.leader_epoch, who, broker_epoch=broker_epoch)
        if result.error is ErrorCode.none:
            ground.fail(f"a fetch of {what} was served")
        after = state.leo, state.broker_epoch, replica.high_watermark, replica.leading.isr
        ground.expect(f"what the leader knows after a fetch of {what}", after, before)


@_short
def followers_answer_nobody(ground: Ground) -> None:
    """Who does not lead serves no client."""
    if not ground.followers():
        return
    node = ground.draw.choice(ground.followers())
    ground.expect(
        "a follower's answer to a fetch", ground.fetch(node, 0).error, ErrorCode.not_leader_or_follower
    )
    result = ground.sent(node)
    ground.expect("a follower's answer to a produce", result.error, ErrorCode.not_leader_or_follower)
    answer = ground.ask(node, ListOffsetsRequest((ListOffsetsPartition(ground.tp, LATEST),)))
    error = answer.partitions[0].error
    ground.expect("a follower's answer to ListOffsets", error, ErrorCode.not_leader_or_follower)


@_short
def deletion_of_records(ground: Ground) -> None:
    """DeleteRecords is answered when every replica has followed; nothing below is read again."""
    leader = ground.image.leader
    end = ground.sent(leader, count=4).base_offset + 4
    begin = ground.offset(leader, EARLIEST)
    offset = ground.draw.randint(begin, end)
    ground.deleted[ground.tp] = max(offset, ground.deleted.get(ground.tp, 0))
    answer = ground.ask(leader, DeleteRecordsRequest(((ground.tp, offset),), ANSWER_MS)).partitions[0]
    ground.expect(
        "the answer to DeleteRecords", (answer.error, answer.low_watermark), (ErrorCode.none, offset)
    )
    for node in ground.image.replicas:
        # A follower that had deleted more as a leader keeps what it has.
        if (start := ground.replica(node).log.log_start) < offset or (node == leader and start > offset):
            ground.fail(f"the log start of node {node} is {start}, after DeleteRecords below {offset}")
    ground.expect("the earliest offset", ground.offset(leader, EARLIEST), offset)
    if offset > begin:
        error = ground.fetch(leader, offset - 1).error
        ground.expect("a fetch below the log start", error, ErrorCode.offset_out_of_range)
    answer = ground.ask(leader, DeleteRecordsRequest(((ground.tp, end + 9),), ANSWER_MS)).partitions[0]
    ground.expect("DeleteRecords past the end", answer.error, ErrorCode.offset_out_of_range)
    answer = ground.ask(leader, DeleteRecordsRequest(((ground.tp, begin),), ANSWER_MS)).partitions[0]
    ground.expect("the earliest offset after an older request", ground.offset(leader, EARLIEST), offset)
    for node in (one for one in ground.world.brokers if one != leader):
        answer = ground.ask(node, DeleteRecordsRequest(((ground.tp, offset),), ANSWER_MS)).partitions[0]
        error = ErrorCode.not_leader_or_follower
        ground.expect(f"the answer of node {node} to DeleteRecords", answer.error, error)


@_short
def sequences(ground: Ground) -> None:
    """An idempotent batch is stored once, whoever leads; a gap, and an older epoch, are refused."""
    leader, producer = ground.image.leader, 7_000_000 + ground.draw.randrange(1_000_000)
    first = ground.draw.choice((0, 5, 2**31 - 2))

    def produced(node: NodeId, sequence: int, epoch: int = 3) -> tuple[ErrorCode, int]:
        """Two records; the same ones under the same sequence."""
        sequence %= 2**31
        values = batches.get((sequence, epoch)) or ground.values(2)
        batches[sequence, epoch] = values
        data = encode(values, 0, (producer, epoch, sequence))
        request = ProduceRequest(-1, 3_000, (ProducePartition(ground.tp, data),))
        ground.record(Type.INVOKE, tuple(Record(ground.tp.partition, UNKNOWN, value) for value in values))
        result: ProduceResult = ground.ask(node, request).partitions[0]
        ground.answered(result, values, -1)
        return result.error, result.base_offset

    batches: dict[tuple[int, int], tuple[int, ...]] = {}

    good = produced(leader, first)
    ground.expect("the first batch of a producer", good[0], ErrorCode.none)
    for step in range(1, 4):
        ground.expect(
            "the next batch", produced(leader, first + 2 * step), (ErrorCode.none, good[1] + 2 * step)
        )
    ground.expect("a batch sent again", produced(leader, first), good)
    gap = produced(leader, first + 10)[0]
    ground.expect("a batch after a gap", gap, ErrorCode.out_of_order_sequence_number)
    old = produced(leader, first + 8, epoch=2)[0]
    ground.expect("a batch of an older epoch", old, ErrorCode.invalid_producer_epoch)
    later = produced(leader, 4, epoch=4)[0]
    ground.expect("a new epoch that does not begin at 0", later, ErrorCode.out_of_order_sequence_number)
    ground.expect("a new epoch", produced(leader, 0, epoch=4), (ErrorCode.none, good[1] + 8))


@_short
def refused_batches(ground: Ground) -> None:
    """A batch that is damaged, too large, empty, or sent in a wrong way is refused, and nothing is stored."""
    leader = ground.image.leader
    replica = ground.replica(leader)
    if replica is None or replica.leader is None:
        return
    good = encode(ground.values(2), int(ground.world.now_ms))
    magic, crc, records = 16, 17, 70
    end = replica.log.leo

    def refused(data: bytes, acks: int = -1, tp: TopicPartition = ground.tp) -> ErrorCode:
        request = ProduceRequest(acks, 3_000, (ProducePartition(tp, data),))
        error: ErrorCode = ground.ask(leader, request).partitions[0].error
        return error

    corrupt, invalid = ErrorCode.corrupt_message, ErrorCode.invalid_record
    for what, data, error in (
        ("a wrong CRC", _changed(good, crc), corrupt),
        ("damaged records", _changed(good, records), corrupt),
        ("a magic of the future", _changed(good, magic), corrupt),
        ("an old magic", _changed(good, magic, 3), invalid),
        ("no bytes", b"", invalid),
        ("half of its bytes", good[: len(good) // 2], corrupt),
        ("another one behind it", good + good, invalid),
        ("too many bytes", encode(ground.values(1), 0, record_bytes=2_000_000), ErrorCode.message_too_large),
    ):
        ground.expect(f"the answer to a batch with {what}", refused(data), error)
    ground.expect("the answer to acks=7", refused(good, acks=7), ErrorCode.invalid_required_acks)
    nowhere = refused(good, tp=TopicPartition("nowhere", 0))
    ground.expect("the answer for no partition", nowhere, ErrorCode.unknown_topic_or_partition)
    ground.expect("the end of the log after what was refused", replica.log.leo, end)


def _changed(data: bytes, at: int, bits: int = 1) -> bytes:
    """``data`` with these bits of one byte turned over."""
    return data[:at] + bytes((data[at] ^ bits,)) + data[at + 1 :]


@_short
def producer_ids(ground: Ground) -> None:
    """Every broker gives out producer ids, and no id twice."""
    ids = []
    for node in [*ground.world.brokers] * 3:
        answer = ground.ask(node, InitProducerIdRequest())
        ground.expect(f"the error of InitProducerId at node {node}", answer.error, ErrorCode.none)
        ids.append(answer.producer_id)
    if len(set(ids)) < len(ids):
        ground.fail(f"producer ids {ids} were given out")


@_short
def fetch_session(ground: Ground) -> None:
    """A session tells what is new, once; a wrong epoch or id is refused."""
    leader = ground.image.leader
    end = ground.sent(leader).base_offset + 1
    topic_id = ground.draw.choice((None, ground.image.topic_id))
    part = FetchPartition(ground.tp, end - 1, 100_000, topic_id=topic_id)

    def fetched(*parts: FetchPartition, session: int, epoch: int, **more: Any) -> FetchResponse:
        request = FetchRequest(0, 0, 200_000, parts, session_id=session, session_epoch=epoch, **more)
        answer: FetchResponse = ground.ask(leader, request)
        return answer

    full = fetched(part, session=0, epoch=0)
    records = full.partitions[0].records
    if not isinstance(records, bytes) or not decode(records, ground.tp.partition, end - 1):
        ground.fail("the first fetch of a session did not bring the last record")
    if "max_incremental_fetch_session_cache_slots" in ground.broker:
        return  # a replica may take its place at any time
    if not full.session_id:
        ground.fail("no session was made, and there is room for a thousand")
    ask_on = FetchPartition(ground.tp, end, 100_000, topic_id=topic_id)
    ground.expect("news at the end", fetched(ask_on, session=full.session_id, epoch=1).error, ErrorCode.none)
    again = fetched(session=full.session_id, epoch=2)
    ground.expect("news when nothing is new", (again.error, again.partitions), (ErrorCode.none, ()))
    ground.sent(leader)
    news = fetched(session=full.session_id, epoch=3)
    ground.expect("the partitions that have news", [each.tp for each in news.partitions], [ground.tp])
    wrong = fetched(session=full.session_id, epoch=9).error
    ground.expect("a wrong epoch", wrong, ErrorCode.invalid_fetch_session_epoch)
    strange = fetched(session=full.session_id + 77, epoch=1).error
    ground.expect("a strange session", strange, ErrorCode.fetch_session_id_not_found)
    ground.sent(leader)
    forgotten = fetched(
        session=full.session_id, epoch=4, forgotten=(ForgottenPartition(ground.tp, topic_id),)
    )
    ground.expect("news of a partition that was forgotten", forgotten.partitions, ())


@_short
def long_poll(ground: Ground) -> None:
    """A fetch at the end waits for records: no answer before its time, one at once when there are some."""
    leader = ground.image.leader
    end, wait_ms = ground.offset(leader, LATEST), 600

    def polled(min_bytes: int = 1) -> Call:
        part = FetchPartition(ground.tp, end, 100_000)
        return ground.call(leader, FetchRequest(wait_ms, min_bytes, 200_000, (part,)))

    call = polled()
    took_ms = ground.must("an answer to a fetch at the end", lambda: call.done, wait_ms + SLACK_MS)
    if took_ms < wait_ms - 1:
        ground.fail(
            f"a fetch that waits {wait_ms} ms for records had none, and was answered in {took_ms:.0f}"
        )
    for min_bytes in (1, 10_000):
        call = polled(min_bytes)
        ground.rest(50)
        end = ground.sent(leader).base_offset + 1
        if min_bytes == 1:
            ground.must("an answer when there is a record", lambda call=call: call.done, 50)  # type: ignore[misc]
        elif call.done:
            ground.fail(f"a fetch of {min_bytes} bytes was answered before there were so many")


@_short
def leader_epochs(ground: Ground) -> None:
    """A leader tells where each epoch of its log ends; of one it never had, where the one before it ends."""
    leader = ground.image.leader
    replica = ground.replica(leader)
    if replica is None or replica.leader is None:
        return
    ground.sent(leader)
    log = ground.world.brokers[leader].disk.logs[ground.tp]
    ends: dict[int, int] = {}
    for stored in log.batches:
        ends[stored.header.leader_epoch] = stored.end
    newest = max(entry.epoch for entry in log.epochs)
    ends.setdefault(newest, log.leo)

    def answered(epoch: int, current: int) -> tuple[ErrorCode, int, int]:
        part = OffsetForLeaderEpochPartition(ground.tp, epoch, current)
        result = ground.ask(leader, OffsetForLeaderEpochRequest((part,))).partitions[0]
        return result.error, result.leader_epoch, result.end_offset

    current = ground.image.leader_epoch
    for epoch in range(min(ends), newest + 1):
        floor = max(each for each in ends if each <= epoch)
        right = (ErrorCode.none, floor, log.leo if epoch == newest else ends[floor])
        ground.expect(f"the end of epoch {epoch}", answered(epoch, ground.draw.choice((-1, current))), right)
    unknown = (ErrorCode.none, -1, -1)
    ground.expect("the end of an epoch to come", answered(newest + 1, -1), unknown)
    ground.expect("the end of no epoch", answered(-1, current), unknown)
    for other, error in (
        (current - 1, ErrorCode.fenced_leader_epoch),
        (current + 1, ErrorCode.unknown_leader_epoch),
    ):
        if other >= 0:
            ground.expect(f"the error for leader epoch {other}", answered(newest, other)[0], error)
    node = next((one for one in ground.followers()), None)
    if node is not None:
        request = OffsetForLeaderEpochRequest((OffsetForLeaderEpochPartition(ground.tp, newest),))
        error = ground.ask(node, request).partitions[0].error
        ground.expect("a follower's answer", error, ErrorCode.not_leader_or_follower)


@_short
def state_of_the_quorum(ground: Ground) -> None:
    """Whoever is asked gives the controller that is active, and how far each voter is."""
    world, active = ground.world, ground.world.active_controller()
    if active is None:
        return
    node = ground.draw.choice([active.id, *sorted(world.brokers)])

    def described() -> dict[NodeId, int]:
        answer = ground.ask(node, DescribeQuorumRequest((METADATA,)))
        leader = answer.error, answer.leader_id
        ground.expect("the answer to DescribeQuorum", leader, (ErrorCode.none, active.id))
        return {voter.node_id: voter.leo for voter in answer.voters}

    def behind() -> list[int]:
        """How many records each voter lacks, as it is told."""
        ends = described()
        return [active.disk.logs[METADATA].leo - end for end in ends.values()]

    ground.expect("the voters", sorted(described()), sorted(world.controllers))
    ground.must(
        "a state of the quorum with every voter at its end",
        lambda: all(0 <= lacks <= _METADATA_BEHIND for lacks in behind()),
        2_000 + SLACK_MS,
    )


@_short
def settings(ground: Ground) -> None:
    """Every broker tells a topic's settings, as they were set last, and its own to who asks that broker."""
    world, draw, topic = ground.world, ground.draw, Resource(TOPIC, ground.tp.topic)

    def described(node: NodeId, resource: Resource) -> tuple[ErrorCode, dict[str, str | None]]:
        answer = ground.ask(node, DescribeConfigsRequest(((resource, None),))).resources[0]
        return answer.error, {values[0].name: values[0].value for values in answer.settings}

    value = str(draw.randint(60_000, 90_000))
    change = IncrementalAlterConfigsRequest(
        (AlteredResource(topic, (ConfigChange("segment.bytes", AlterOp.SET, value),)),)
    )
    changed = ground.ask(ground.any_broker(), change).resources[0].error
    ground.expect("the answer to a change of segment.bytes", changed, ErrorCode.none)
    for node in sorted(world.brokers):
        ground.must(
            f"segment.bytes {value} at node {node}",
            lambda node=node: described(node, topic)[1].get("segment.bytes") == value,  # type: ignore[misc]
            2_000,
        )
        ground.expect(
            f"node {node}'s own settings", described(node, Resource(BROKER, str(node)))[0], ErrorCode.none
        )
        other = str(next(one for one in world.brokers if one != node))
        error = described(node, Resource(BROKER, other))[0]
        ground.expect(f"node {node}'s answer for node {other}", error, ErrorCode.invalid_request)
    error = described(min(world.brokers), Resource(TOPIC, "nowhere"))[0]
    ground.expect("the settings of no topic", error, ErrorCode.unknown_topic_or_partition)


@_short
def life_of_a_topic(ground: Ground) -> None:
    """A topic is made as asked. Deleted, nothing of it is left; made again, it is empty."""
    world, draw = ground.world, ground.draw
    name = "drill"
    for _ in range(2):
        partitions, factor = draw.randint(1, 3), draw.randint(1, len(world.brokers))
        topic = NewTopic(name, partitions, factor)
        made = ground.ask(ground.any_broker(), CreateTopicsRequest((topic,), ANSWER_MS))
        ground.expect("the answer to CreateTopics", made.topics[0].error, ErrorCode.none)
        twice = ground.ask(min(world.brokers), CreateTopicsRequest((topic,), ANSWER_MS)).topics[0].error
        ground.expect("a topic made twice", twice, ErrorCode.topic_already_exists)
        tps = [TopicPartition(name, number) for number in range(partitions)]
        images = [world.image.partition(tp) for tp in tps]
        for image in images:
            if image is None or len(set(image.replicas)) != factor or set(image.isr) != set(image.replicas):
                ground.fail(f"{partitions} partitions of {factor} replicas were asked for, one is {image}")
        ground.must("every replica of the topic", lambda tps=tps: _made(ground, tps), 2_000)  # type: ignore[misc]
        before, ground.tp = ground.tp, tps[-1]
        result = ground.sent(ground.image.leader, acks=1)
        ground.expect("the first offset of a topic", (result.error, result.base_offset), (ErrorCode.none, 0))
        ground.tp = before
        gone = ground.ask(ground.any_broker(), DeleteTopicsRequest((name,), ANSWER_MS))
        ground.expect("the answer to DeleteTopics", gone.topics[0].error, ErrorCode.none)
        ground.must("every log of the topic deleted", lambda tps=tps: not _kept(ground, tps), 3_000)  # type: ignore[misc]
    for topic, error in (
        (NewTopic(name, 1, len(world.brokers) + 1), ErrorCode.invalid_replication_factor),
        (NewTopic(name, 0, 1), ErrorCode.invalid_partitions),
        (NewTopic("a/b", 1, 1), ErrorCode.invalid_topic_exception),
    ):
        refused = ground.ask(min(world.brokers), CreateTopicsRequest((topic,), ANSWER_MS)).topics[0].error
        ground.expect(f"the answer to {topic}", refused, error)


def _made(ground: Ground, tps: list[TopicPartition]) -> bool:
    images = [ground.world.image.partition(tp) for tp in tps]
    return all(
        image is not None
        and (core := ground.world.brokers[node].core) is not None
        and core.replica(image.tp) is not None
        for image in images
        for node in (image.replicas if image is not None else (0,))
    )


def _kept(ground: Ground, tps: list[TopicPartition]) -> bool:
    return any(tp in server.disk.logs for tp in tps for server in ground.world.brokers.values())

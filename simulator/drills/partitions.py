"""Drills of requests that name several partitions, each of which has an answer of its own; and of settings of
a topic, which count from the moment in which its leader knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    BROKER,
    TOPIC,
    AlteredResource,
    AlterOp,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    IncrementalAlterConfigsRequest,
    Reassignment,
    Resource,
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
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResult,
)
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.nodes import Call

_TOPIC = "several"
_NOWHERE = TopicPartition("nowhere", 0)
_RATE, _RECORD_BYTES = 2_000, 900
"""Bytes per second for a replica that is added, and of a record that it copies."""
_LATE_MS = 90
"""What an answer may take besides the time that it waits."""
_ALL = 100_000
PARTITIONS: list[Drill] = []
"""A run does one of them, or one of ``replicas``."""
_partitions = add_to(PARTITIONS)
_none, _not_leader = ErrorCode.none, ErrorCode.not_leader_or_follower
_unknown = ErrorCode.unknown_topic_or_partition


def _tp(number: int) -> TopicPartition:
    return TopicPartition(_TOPIC, number)


@contextmanager
def _topic(ground: Ground, *replicas: tuple[NodeId, ...]) -> Iterator[None]:
    """A topic with these replicas, each of which is where it should be. Its records are in no history."""
    configs = {"min.insync.replicas": "1"}
    topic = NewTopic(_TOPIC, assignments=dict(enumerate(replicas)), configs=configs)
    made = ground.ask(ground.any_broker(), CreateTopicsRequest((topic,), ANSWER_MS)).topics[0].error
    ground.expect(f"the answer to {topic}", made, _none)

    def in_office() -> bool:
        replicas_now = [_replica(ground, nodes[0], number) for number, nodes in enumerate(replicas)]
        image = ground.world.image.topics_by_name.get(_TOPIC)
        return image is not None and all(
            replica is not None
            and replica.leader is not None
            and replica.topic_id == image.topic_id  # and not that of the drill before
            and all(follower.leo == replica.log.leo for follower in replica.leader.followers.values())
            for replica in replicas_now
        )

    ground.must(f"the leaders of {_TOPIC!r} to hear their followers", in_office, 2 * ground.fetch_ms + 2_000)
    yield
    gone = ground.ask(ground.any_broker(), DeleteTopicsRequest((_TOPIC,), ANSWER_MS)).topics[0].error
    ground.expect("the answer to DeleteTopics", gone, _none)


def _replica(ground: Ground, node: NodeId, number: int) -> Any:
    core = ground.world.brokers[node].core
    return None if core is None else core.replica(_tp(number))


def _log(ground: Ground, node: NodeId, number: int) -> SimLog:
    return ground.world.brokers[node].disk.logs[_tp(number)]


def _batch(ground: Ground, count: int = 1, record_bytes: int = 8) -> bytes:
    return encode(ground.values(count), int(ground.world.now_ms), record_bytes=record_bytes)


def _produce(
    ground: Ground, node: NodeId, *tps: TopicPartition, acks: int = -1, timeout_ms: int = 3_000
) -> Call:
    """Sends one record to each of the partitions."""
    parts = tuple(ProducePartition(tp, _batch(ground)) for tp in tps)
    return ground.world.ask(node, ProduceRequest(acks, timeout_ms, parts), timeout_ms + 2_000)


def _produced(ground: Ground, node: NodeId, *numbers: int, acks: int = -1) -> dict[int, ProduceResult]:
    call = _produce(ground, node, *map(_tp, numbers), acks=acks)
    ground.must("an answer to a write to several partitions", lambda: call.done, 2_000)
    if call.failed:
        ground.fail(f"a write to several partitions: {call.failed}")
    return {result.tp.partition: result for result in call.response.partitions}


def _timed(ground: Ground, waits: Mapping[str, tuple[Call, float, float]]) -> None:
    """Each of the calls is answered when its time is over: {what: (call, when it began, how long)}."""
    for what, (call, began_ms, wait_ms) in sorted(waits.items(), key=lambda item: item[1][1] + item[1][2]):
        remaining_ms = began_ms + wait_ms + _LATE_MS - ground.world.now_ms
        ground.must(f"{what} answered in {wait_ms:.0f} ms", lambda call=call: call.done, remaining_ms)  # type: ignore[misc]
        took_ms = ground.world.now_ms - began_ms
        if took_ms < wait_ms - 1:
            ground.fail(f"{what} of {wait_ms:.0f} ms was answered after {took_ms:.0f}")


@_partitions
def several_partitions(ground: Ground) -> None:
    """Partitions of one request do not share their fate: each is stored, refused, committed or late by
    itself, and what they share, bytes and time, is shared as it was asked for."""
    leader, other, third = ground.draw.sample(sorted(ground.world.brokers), 3)
    with _topic(ground, (leader, other), (leader, other), (leader, third), (other, leader)):
        places = [*map(_tp, range(4)), _NOWHERE]
        ground.draw.shuffle(places)
        for acks in (1, -1):
            call = _produce(ground, leader, *places, acks=acks)
            ground.must("an answer to a write to five partitions", lambda call=call: call.done, 2_000)  # type: ignore[misc]
            results = {one.tp: (one.error, one.base_offset) for one in call.response.partitions}
            base = 0 if acks == 1 else 1
            right = {_tp(number): (_none, base) for number in range(3)}
            right |= {_tp(3): (_not_leader, -1), _NOWHERE: (_unknown, -1)}
            ground.expect("the answer to a write to five partitions", results, right)
        _offsets(ground, leader, places)
        _times(ground, leader, other)
        ground.must(
            "everything to be committed",
            lambda: all(
                (replica := _replica(ground, leader, number)).high_watermark == replica.log.leo
                for number in range(3)
            ),
            2 * ground.fetch_ms + SLACK_MS,
        )
        _bytes(ground, leader)
        if "fetch_max_bytes" not in ground.broker:
            _polls(ground, leader)
        if "max_incremental_fetch_session_cache_slots" not in ground.broker:
            _news(ground, leader)


def _offsets(ground: Ground, leader: NodeId, places: list[TopicPartition]) -> None:
    """Two records are in each; the epoch that is named is the wrong one for partition 1 alone."""
    epochs = {tp: 1 if tp == _tp(1) else -1 for tp in places}
    later = ErrorCode.unknown_leader_epoch
    for which, offset in ((LATEST, 2), (EARLIEST, 0)):
        parts = tuple(ListOffsetsPartition(tp, which, epochs[tp]) for tp in places)
        answer = ground.ask(leader, ListOffsetsRequest(parts))
        results = {one.tp: (one.error, one.offset) for one in answer.partitions}
        right = {_tp(0): (_none, offset), _tp(2): (_none, offset), _tp(1): (later, -1)}
        right |= {_tp(3): (_not_leader, -1), _NOWHERE: (_unknown, -1)}
        ground.expect("the offsets of five partitions", results, right)
    request_ = tuple(OffsetForLeaderEpochPartition(tp, 0, epochs[tp]) for tp in places)
    answer = ground.ask(leader, OffsetForLeaderEpochRequest(request_))
    ends = {one.tp: (one.error, one.leader_epoch, one.end_offset) for one in answer.partitions}
    right_ends = {_tp(0): (_none, 0, 2), _tp(2): (_none, 0, 2), _tp(1): (later, -1, -1)}
    right_ends |= {_tp(3): (_not_leader, -1, -1), _NOWHERE: (_unknown, -1, -1)}
    ground.expect("the ends of epoch 0 in five partitions", ends, right_ends)


def _times(ground: Ground, leader: NodeId, other: NodeId) -> None:
    """A follower is silent: what waits for it is late, each at its time, a later one also sooner; the rest is
    done."""
    world, late = ground.world, ErrorCode.request_timed_out
    hold = world.hold(lambda message: message.name == "FetchRequest" and message.source == other)
    ground.rest(5)
    calls: dict[str, tuple[Call, float, float]] = {}
    for name, wait_ms in (("a first", 240), ("a second", 110)):
        began_ms = world.now_ms
        calls[f"{name} write"] = (
            _produce(ground, leader, _tp(0), _tp(2), timeout_ms=wait_ms),
            began_ms,
            wait_ms,
        )
        request_ = DeleteRecordsRequest(((_tp(2), 1), (_tp(0), 1)), wait_ms)
        calls[f"{name} deletion"] = world.ask(leader, request_, 5_000), began_ms, wait_ms
        ground.rest(10)
    _timed(ground, calls)
    for name, wait_ms in (("a first", 240), ("a second", 110)):
        writes = calls[f"{name} write"][0].response.partitions
        errors = {one.tp.partition: one.error for one in writes}
        ground.expect(f"the errors of {name} write", errors, {0: late, 2: _none})
        deletions = calls[f"{name} deletion"][0].response.partitions
        marks = {one.tp.partition: (one.error, one.low_watermark) for one in deletions}
        # The third broker may fetch, and say where its log begins, no sooner than that.
        slow = 2 * ground.fetch_ms > wait_ms and marks.get(2) == (late, -1)
        right = {0: (late, -1), 2: (late, -1) if slow else (_none, 1)}
        ground.expect(f"the answer to {name} deletion", marks, right)
    world.release(hold)


def _bytes(ground: Ground, leader: NodeId) -> None:
    """The limit of a request is one for all its partitions; that of a partition is its own."""
    _produced(ground, leader, 0, 1, 2)
    order = ground.draw.sample(range(3), 3)
    stored = {number: _log(ground, leader, number).batches[-2:] for number in order}
    data = {number: b"".join(one.data for one in batches) for number, batches in stored.items()}
    first, second = stored[order[0]][0], data[order[1]]
    everything = sum(map(len, data.values()))
    for limit, of_one in (
        (1, _ALL),
        (len(first.data), _ALL),
        (len(data[order[0]]) + len(second) - 1, _ALL),
        (everything, _ALL),
        (_ALL, 1),
    ):
        parts = tuple(
            FetchPartition(_tp(number), stored[number][0].header.base_offset, of_one) for number in order
        )
        results = ground.ask(leader, FetchRequest(0, 0, limit, parts)).partitions
        received = {one.tp.partition: bytes(one.records) for one in results}
        ground.expect("the partitions of an answer", [one.tp for one in results], [one.tp for one in parts])
        sizes = [len(received[number]) for number in order]
        if any(not data[number].startswith(received[number]) for number in order) or sizes[0] < len(
            first.data
        ):
            ground.fail(f"a fetch of {limit} bytes brought {sizes} bytes, and others than are there")
        most = max(limit, len(first.data))
        if sum(sizes) > most or any(
            size > max(of_one, len(first.data) * (not at)) for at, size in enumerate(sizes)
        ):
            ground.fail(f"a fetch of {limit} bytes, {of_one} of each partition, brought {sizes}")
        if limit == everything and "fetch_max_bytes" not in ground.broker:
            ground.expect(
                "the bytes of a fetch of everything", sizes, [len(data[number]) for number in order]
            )


def _polls(ground: Ground, leader: NodeId) -> None:
    """A poll waits for the bytes of all its partitions together."""
    size = len(_batch(ground))
    parts = tuple(
        FetchPartition(_tp(number), _replica(ground, leader, number).log.leo, _ALL) for number in (0, 1)
    )
    polls = {
        bytes_: ground.call(leader, FetchRequest(700, bytes_, 2 * _ALL, parts))
        for bytes_ in (2 * size, 3 * size, 3 * size + 1)
    }
    ground.rest(5)
    for number, ready in ((0, ()), (1, (2,)), (0, (2, 3))):
        _produced(ground, leader, number)
        for bytes_, poll in polls.items():
            if bytes_ % size == 0 and bytes_ // size in ready:
                ground.must(f"an answer to a poll of {bytes_} bytes", lambda poll=poll: poll.done, 50)  # type: ignore[misc]
            elif poll.done:
                ground.fail(
                    f"a poll of {bytes_} bytes in two partitions was answered before there were so many"
                )


def _news(ground: Ground, leader: NodeId) -> None:
    """A session tells of the partition that has news, and of no other; one that is forgotten has none."""
    ends = {number: _replica(ground, leader, number).log.leo for number in (0, 1, 2)}
    made = FetchRequest(
        0, 0, _ALL, tuple(FetchPartition(_tp(n), ends[n], _ALL) for n in ends), session_epoch=0
    )
    session = ground.ask(leader, made).session_id
    epoch = 0

    def fetched(*numbers: int, forgotten: tuple[int, ...] = ()) -> dict[int, bytes]:
        nonlocal epoch
        epoch += 1
        parts = tuple(FetchPartition(_tp(number), ends[number], _ALL) for number in numbers)
        gone = tuple(ForgottenPartition(_tp(number)) for number in forgotten)
        request_ = FetchRequest(0, 0, _ALL, parts, session_id=session, session_epoch=epoch, forgotten=gone)
        answer: FetchResponse = ground.ask(leader, request_)
        ground.expect("the error of a session", answer.error, _none)
        return {one.tp.partition: bytes(one.records) for one in answer.partitions}  # type: ignore[arg-type]

    ground.expect("news of three partitions when nothing is new", fetched(), {})
    for number in ground.draw.sample((0, 1, 2), 2):
        _produced(ground, leader, number)
        for _ in range(2):  # it was not taken yet
            news = fetched()
            ground.expect("who has news", [one for one, data in news.items() if data], [number])
        ends[number] += 1
        ground.expect("records where they were taken", [*filter(None, fetched(number).values())], [])
    _produced(ground, leader, 0, 1)
    ground.expect("news but of who is forgotten", sorted(fetched(forgotten=(0,))), [1])


@_partitions
def settings_in_force(ground: Ground) -> None:
    """What a topic is set to holds for the next record, as often as there is one; what is taken back holds no
    more."""
    world, leader = ground.world, ground.any_broker()
    with _topic(ground, (leader,)):

        def altered(name: str, value: str | None) -> None:
            change = ConfigChange(name, AlterOp.DELETE if value is None else AlterOp.SET, value)
            request = IncrementalAlterConfigsRequest((AlteredResource(Resource(TOPIC, _TOPIC), (change,)),))
            error = ground.ask(ground.any_broker(), request).resources[0].error
            ground.expect(f"the answer to {name}={value}", error, _none)
            ground.must(f"node {leader} to know {name}={value}", knows_all, 1_500)

        def knows_all() -> bool:
            core = world.brokers[leader].core
            return core is not None and core.image.metadata_offset == world.image.metadata_offset

        def produced(data: bytes) -> ErrorCode:
            request = ProduceRequest(1, 3_000, (ProducePartition(_tp(0), data),))
            error: ErrorCode = ground.ask(leader, request).partitions[0].error
            return error

        sizes = len(_batch(ground)), len(_batch(ground, 2))
        for most, errors in (
            (sizes[0], (_none, ErrorCode.message_too_large)),
            (sizes[1], (_none, _none)),
            (sizes[0] - 1, (ErrorCode.message_too_large, ErrorCode.message_too_large)),
            (None, (_none, _none)),
        ):
            altered("max.message.bytes", None if most is None else str(most))
            errors_now = produced(_batch(ground)), produced(_batch(ground, 2))
            ground.expect(f"the answers to {sizes} bytes with max.message.bytes={most}", errors_now, errors)
        for size in ("4096", "8192"):
            altered("segment.bytes", size)
            laid_out = world.brokers[leader].disk.layouts[_tp(0)].segment_bytes
            ground.expect("the bytes of a segment, as the disk was told", laid_out, int(size))
        log = _log(ground, leader, 0)
        for name, value, records, unflushed, within_ms in (
            ("flush.ms", "60", 1, 0, 110),
            ("flush.messages", "3", 3, 2, 50),
        ):
            altered(name, value)
            for _ in range(3):
                for _ in range(records):
                    ground.expect("the answer to acks=1", produced(_batch(ground)), _none)
                ground.must(
                    f"at most {unflushed} records without a flush with {name}={value}",
                    lambda unflushed=unflushed: log.leo - log.synced <= unflushed,  # type: ignore[misc]
                    within_ms,
                )
            altered(name, None)


@_partitions
def throttled_replicas(ground: Ground) -> None:
    """A replica that is added copies at the rate that an operator has set; who is a replica already does not
    wait for it, nor does the new one when it has all."""
    world = ground.world
    leader, other, third = ground.draw.sample(sorted(world.brokers), 3)

    def limit(value: str | None) -> None:
        change = ConfigChange(
            "follower.replication.throttled.rate", AlterOp.DELETE if value is None else AlterOp.SET, value
        )
        request = IncrementalAlterConfigsRequest((AlteredResource(Resource(BROKER, ""), (change,)),))
        error = ground.ask(ground.any_broker(), request).resources[0].error
        ground.expect("the answer to a rate", error, _none)
        ground.must("every broker to know the rate", knows_all, 1_500)

    def knows_all() -> bool:
        cores = [server.core for server in world.brokers.values()]
        return all(c is not None and c.image.metadata_offset == world.image.metadata_offset for c in cores)

    def write(count: int) -> None:
        """Not held back: each takes what messages and a flush take."""
        for _ in range(count):
            part = ProducePartition(_tp(0), _batch(ground, 1, _RECORD_BYTES))
            call = ground.call(leader, ProduceRequest(-1, 3_000, (part,)))
            ground.must("a write in the time of one", lambda call=call: call.done, SLACK_MS)  # type: ignore[misc]

    def copied() -> int:
        log = world.brokers[third].disk.logs.get(_tp(0))
        return 0 if log is None else log.leo

    with _topic(ground, (leader, other)):
        limit(str(_RATE))
        write(3)
        size = len(_log(ground, leader, 0).batches[0].data)
        target = Reassignment(_tp(0), (leader, other, third))
        request_ = AlterPartitionReassignmentsRequest((target,), ANSWER_MS)
        ground.expect("the answer to a move", ground.ask(leader, request_).partitions[0].error, _none)
        ground.must("the first records at a new replica", lambda: copied() > 0, ground.rejoin_ms)
        least_ms = 1_000 * 2 * size / _RATE
        took_ms = ground.must(
            "every record at a new replica", lambda: copied() == 3, least_ms + ground.fetch_ms + SLACK_MS
        )
        if took_ms < least_ms - _LATE_MS:
            ground.fail(f"a new replica copied {2 * size} bytes in {took_ms:.0f} ms, at {_RATE} bytes/s")

        def has_joined() -> bool:
            image = world.image.partition(_tp(0))
            return image is not None and not image.adding and third in image.isr and knows_all()

        ground.must("the new replica in the ISR", has_joined, ground.rejoin_ms)
        ground.rest(1_000 * size / _RATE)
        write(3)
        limit(None)


@_partitions
def unusable_logs(ground: Ground) -> None:
    """A log that cannot be opened begins anew where another replica leads, and has everything then; where
    nobody else has its records it stays as it is, and everybody is told so, until its topic is deleted."""
    world = ground.world
    node, leader = ground.draw.sample(sorted(world.brokers), 2)
    disk = world.brokers[node].disk
    copied, alone, sound = map(_tp, range(3))

    def has_joined() -> bool:
        image, log = world.image.partition(copied), disk.logs.get(copied)
        return image is not None and node in image.isr and log is not None and log.leo == 1

    with _topic(ground, (leader,), (node,), (node,)):
        target = Reassignment(copied, (leader, node))
        request = AlterPartitionReassignmentsRequest((target,), ANSWER_MS)
        ground.expect("the answer to a move", ground.ask(leader, request).partitions[0].error, _none)
        _produced(ground, leader, 0)
        _produced(ground, node, 2)
        ground.must("a replica more", has_joined, ground.rejoin_ms)
        world.kill(node)
        for tp in (copied, alone):
            del disk.logs[tp]
            disk.unusable.add(tp)
        world.start(node)
        ground.must(
            f"node {node} with a new log in the ISR", has_joined, ground.rejoin_ms + ground.session_ms
        )
        ground.rest(2 * SLACK_MS)
        ground.expect("the logs that cannot be opened", disk.unusable, {alone})
        failed = ErrorCode.kafka_storage_error
        right = {copied: _not_leader, alone: failed, _NOWHERE: _unknown}
        reads = FetchRequest(0, 0, _ALL, tuple(FetchPartition(tp, 0, _ALL) for tp in right))
        offsets = ListOffsetsRequest(tuple(ListOffsetsPartition(tp, LATEST) for tp in right))
        for request_ in (reads, offsets):
            results = {one.tp: one.error for one in ground.ask(node, request_).partitions}
            ground.expect(f"the answer to {type(request_).__name__}", results, right)
        ends = sound in disk.logs and disk.logs[sound].leo
        ground.expect("the end of a log that is sound", ends, 1)
    ground.must("every log of the topic deleted", lambda: not disk.unusable, 3_000)


def producers_that_are_silent(ground: Ground) -> None:
    """A producer is known as long as it writes, and forgotten when it was silent for too long, not before."""
    if "producer_id_expiration_ms" not in ground.broker:
        return
    leader, producer = ground.image.leader, 8_000_000 + ground.draw.randrange(1_000_000)
    silent_ms: float = ground.broker["producer_id_expiration_ms"]
    look_ms: float = ground.broker["producer_id_expiration_check_interval_ms"]
    with _topic(ground, (leader,)):

        def produced(sequence: int) -> tuple[ErrorCode, int]:
            data = encode((sequence,), 0, (producer, 0, sequence))
            request = ProduceRequest(-1, 3_000, (ProducePartition(_tp(0), data),))
            result: ProduceResult = ground.ask(leader, request).partitions[0]
            return result.error, result.base_offset

        for sequence in range(4):
            ground.expect("the next record of a producer", produced(sequence), (_none, sequence))
            ground.rest(silent_ms / 2)
        for sequence in (0, 3):
            ground.expect("a record sent again", produced(sequence), (_none, sequence))
        gap = produced(70)[0]
        ground.expect("a gap of who is known", gap, ErrorCode.out_of_order_sequence_number)
        ground.rest(silent_ms / 2 + 3 * look_ms)
        ground.expect("the first record of who was forgotten", produced(70), (_none, 4))

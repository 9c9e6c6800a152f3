"""Drills of replication with a guest: as a follower it fetches exactly so far, and its leader must know what
that commits; as a leader it answers a follower with whatever a leader may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.batches.batch import stamp
from wrackline.broker.model.effects import Effect, Reply
from wrackline.broker.model.events import Event, RequestCancelled, RequestReceived
from wrackline.broker.model.messages.admin import CreatePartitionsRequest, NewPartitions
from wrackline.broker.model.messages.controller import AlterPartitionRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    NewTopic,
)
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    DeleteRecordsRequest,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
    ProducePartition,
    ProduceRequest,
    Refused,
    Request,
    Response,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to, isr_change
from wrackline.simulator.drills.guest import GUESTS, NODE, Guest
from wrackline.simulator.world.nodes import Call

_TP = TopicPartition(GUESTS, 0)
_BYTES = 1 << 20
_SOON_MS = 150
"""For a message there and back, and a flush."""
_FLUSH_MS = 40.0
"""Of a slow disk."""
_QUESTION_MS = 15
"""So long a question of the drill may be under way: no shorter pause can be seen."""
_SHORTEST_LAG_MS = 1_000
_LONGEST_LAG_MS = 2_000
"""Who may lag for longer is not waited for."""
REPLICAS: list[Drill] = []
_replicas = add_to(REPLICAS)
_none = ErrorCode.none


@contextmanager
def _partition_of(ground: Ground, guest: Guest, *replicas: NodeId) -> Iterator[None]:
    """A guest that has joined, and a topic of one partition with these replicas, of whom it is one."""
    ground.world.add_guest(NODE, guest)
    guest.join()
    # Who follows flushes now and then, and does not wait for it.
    configs = {"min.insync.replicas": "1", "flush.messages": "2"}
    topic = NewTopic(GUESTS, assignments={0: replicas}, configs=configs)
    made = ground.ask(ground.any_broker(), CreateTopicsRequest((topic,), ANSWER_MS)).topics[0].error
    ground.expect(f"the answer to {topic}", made, _none)
    yield
    gone = ground.ask(ground.any_broker(), DeleteTopicsRequest((GUESTS,), ANSWER_MS)).topics[0].error
    ground.expect("the answer to DeleteTopics", gone, _none)
    guest.beat(fence=True)
    ground.expect("the answer to UnregisterBroker", guest.unregister(), _none)
    ground.world.remove_guest(NODE)


def _image(ground: Ground) -> PartitionImage:
    image = ground.world.image.partition(_TP)
    if image is None:
        ground.fail(f"there is no {_TP}")
    assert image is not None
    return image


class _Follower:
    """The guest's part in a partition that a broker of the cluster leads."""

    def __init__(self, ground: Ground, guest: Guest, leader: NodeId) -> None:
        self.ground = ground
        self.guest = guest
        self.leader = leader

    @property
    def replica(self) -> Any:
        core = self.ground.world.brokers[self.leader].core
        return None if core is None else core.replica(_TP)

    def call(self, offset: int, wait_ms: int = 0, **changes: Any) -> Call:
        """One fetch, without a session. ``changes``: of what a right one would say."""
        image = _image(self.ground)
        part = FetchPartition(
            _TP,
            offset,
            _BYTES,
            current_leader_epoch=changes.get("epoch", image.leader_epoch),
            last_fetched_epoch=changes.get("last", -1),
            log_start=changes.get("log_start", 0),
            topic_id=image.topic_id,
        )
        who, life = changes.get("who", NODE), changes.get("life", self.guest.epoch)
        return self.ground.call(self.leader, FetchRequest(wait_ms, 1, _BYTES, (part,), who, life))

    def fetch(self, offset: int, **changes: Any) -> FetchResult:
        call = self.call(offset, **changes)
        self.ground.must(f"an answer to a fetch at {offset}", lambda: call.done, ANSWER_MS)
        if call.failed or not call.response.partitions:
            self.ground.fail(f"a fetch at {offset} was answered {call.failed or call.response}")
        result: FetchResult = call.response.partitions[0]
        return result

    def write(self, acks: int = -1) -> Call:
        """One record, which is in no history; when it is in the log."""
        end = self.replica.log.leo
        data = encode(self.ground.values(1), int(self.ground.world.now_ms))
        request = ProduceRequest(acks, 30_000, (ProducePartition(_TP, data),))
        call = self.ground.world.ask(self.leader, request, 30_000)
        self.ground.must("a record appended", lambda: self.replica.log.leo == end + 1, _SOON_MS)
        return call

    def commits(self, what: str, offset: int, *done: Call, open_: tuple[Call, ...] = ()) -> None:
        """The high watermark is here; these writes are acknowledged, and those are not."""
        ground = self.ground
        ground.must(f"the high watermark at {offset} after {what}", lambda: self.is_at(offset), _SOON_MS)
        ground.must(f"an answer to a write after {what}", lambda: all(one.done for one in done), _SOON_MS)
        ground.rest(3)
        ground.expect(
            "errors of writes", [one.response.partitions[0].error for one in done], [_none] * len(done)
        )
        if any(one.done for one in open_) or not self.is_at(offset):
            ground.fail(f"after {what} the high watermark is {self.replica.high_watermark}, not {offset}")

    def is_at(self, offset: int) -> bool:
        high_watermark: int = self.replica.high_watermark
        return high_watermark == offset


@_replicas
def progress_of_a_follower(ground: Ground) -> None:
    """A leader commits what its follower has by a right fetch, at once, and by no other; it lets go who does
    not catch up, takes back who has, and waits with a deletion for whoever is in office."""
    if ground.lag_ms < _SHORTEST_LAG_MS:
        return  # who is asked so many things between two right fetches leaves the ISR
    leader = ground.any_broker()
    guest = Guest(ground)
    with _partition_of(ground, guest, leader, NODE):
        one = _Follower(ground, guest, leader)
        ground.must(
            f"node {leader} to lead",
            lambda: one.replica is not None and one.replica.leader is not None,
            2_000,
        )
        _commit(ground, one)
        guest.beat()
        _delete(ground, one)
        guest.beat()
        _return(ground, one)
        if ground.lag_ms <= _LONGEST_LAG_MS:
            _lag(ground, one)


def _commit(ground: Ground, one: _Follower) -> None:
    none = ErrorCode.none
    writes = [one.write() for _ in range(3)]
    ground.rest(_SOON_MS)
    one.commits("nothing", 0, open_=tuple(writes))
    result = one.fetch(0)
    stored = ground.world.brokers[one.leader].disk.logs[_TP]
    everything = b"".join(each.data for each in stored.batches)
    received = bytes(result.records)  # type: ignore[arg-type]
    if not everything.startswith(received) or not received:
        ground.fail(f"the records for a follower are {len(received)} bytes, and not those that are there")
    if "fetch_max_bytes" not in ground.broker:
        ground.expect("the bytes for a follower", len(received), len(everything))
    ground.expect("the high watermark that it is told", result.high_watermark, 0)
    ground.expect("the high watermark for its fetch at 1", one.fetch(1).high_watermark, 1)
    one.commits("a fetch at 1", 1, writes[0], open_=tuple(writes[1:]))
    epoch = _image(ground).leader_epoch
    other = next(node for node in ground.world.brokers if node != one.leader)
    refused: tuple[tuple[str, int, dict[str, Any], tuple[ErrorCode, ...]], ...] = (
        ("of a former life", 3, {"life": one.guest.epoch - 1}, (ErrorCode.not_leader_or_follower,)),
        ("of who is no replica", 3, {"who": other, "life": -1}, (ErrorCode.unknown_leader_epoch,)),
        ("of the leader itself", 3, {"who": one.leader, "life": -1}, (ErrorCode.unknown_leader_epoch,)),
        ("of a leader epoch to come", 3, {"epoch": epoch + 1}, (ErrorCode.unknown_leader_epoch,)),
        ("past the end", 4, {}, (ErrorCode.offset_out_of_range,)),
        ("past the end of its epoch", 5, {"last": epoch}, (none,)),
        ("of an epoch to come", 3, {"last": epoch + 3}, (none, ErrorCode.offset_out_of_range)),
    )
    for what, offset, changes, errors in refused:
        result = one.fetch(offset, **changes)
        if result.error not in errors or (result.error is none and result.diverging is None):
            ground.fail(f"a fetch {what} was answered {result}")
        if "last" in changes and result.error is none and offset > 3:
            ground.expect(f"where the log {what} parts", result.diverging, EpochEndOffset(epoch, 3))
        one.commits(f"a fetch {what}", 1, writes[0], open_=tuple(writes[1:]))
    ground.expect("the high watermark for a fetch that comes late", one.fetch(0).high_watermark, 1)
    one.commits("a fetch that comes late", 1, writes[0], open_=tuple(writes[1:]))
    poll = one.call(3, wait_ms=400, last=epoch)
    one.commits("a fetch at 3", 3, *writes)
    if poll.done:
        ground.fail("a follower's poll was answered, and there is nothing")
    write = one.write()
    ground.must("the poll answered when there is a record", lambda: poll.done, _SOON_MS)
    result = poll.response.partitions[0]
    ground.expect("what the poll was told", (result.high_watermark, bool(result.records)), (3, True))
    one.commits("a poll that was answered", 3, open_=(write,))
    one.fetch(4, last=epoch)
    one.commits("a fetch at 4", 4, write)


def _delete(ground: Ground, one: _Follower) -> None:
    """The follower begins where it says."""
    call = ground.call(one.leader, DeleteRecordsRequest(((_TP, 3),), ANSWER_MS))
    ground.rest(_SOON_MS)
    ground.expect("the log start for a follower", one.fetch(4).log_start, 3)
    for start in (0, 2, 1):
        one.fetch(4, log_start=start)
        ground.rest(10)
        if call.done:
            ground.fail(f"a deletion below 3 was answered {call.response}, its follower begins at {start}")
    one.fetch(4, log_start=3)
    ground.must("the deletion answered", lambda: call.done, _SOON_MS)
    result = call.response.partitions[0]
    ground.expect("the answer to a deletion", (result.error, result.low_watermark), (_none, 3))
    below = one.fetch(2).error
    ground.expect("a follower's fetch below the log start", below, ErrorCode.offset_out_of_range)
    one.fetch(4, log_start=3)


def _in_sync(ground: Ground, one: _Follower) -> bool:
    return NODE in _image(ground).isr and NODE in one.replica.leading.isr


def _return(ground: Ground, one: _Follower) -> None:
    """Fenced, it is waited for no more; unfenced, it is in the ISR when it has what is committed."""
    guest, end = one.guest, one.replica.log.leo
    write = one.write()
    ground.rest(20)
    one.commits("a write to both", end, open_=(write,))
    ground.expect("the answer to its end", guest.beat(fence=True), (True, True, False))
    ground.must("the leader alone", lambda: one.replica.leading.maximal == {one.leader}, SLACK_MS)
    one.commits("the end of the follower", end + 1, write)
    one.fetch(end + 1, log_start=3)
    ground.rest(30)
    if NODE in _image(ground).isr or NODE in one.replica.leading.maximal:
        ground.fail("a follower that is fenced is in the ISR, or proposed for it")
    ground.expect("the answer to its return", guest.beat(), (True, False, False))
    core = ground.world.brokers[one.leader].core
    ground.must("the leader to know of it", lambda: core.image.brokers[NODE].active, SLACK_MS)  # type: ignore[union-attr]
    for what, offset, changes in (
        ("behind", end, {}),
        ("of a former life", end + 1, {"life": guest.epoch - 1}),
    ):
        one.fetch(offset, log_start=3, **changes)
        ground.rest(40)
        if NODE in _image(ground).isr or NODE in one.replica.leading.maximal:
            ground.fail(f"a follower whose fetch is {what} is in the ISR, or proposed for it")
    one.fetch(end + 1, log_start=3)
    ground.must("the follower back in the ISR", lambda: _in_sync(ground, one), SLACK_MS)
    write = one.write()
    ground.rest(20)
    one.commits("its return", end + 1, open_=(write,))
    one.fetch(end + 2, log_start=3)
    one.commits("its fetch", end + 2, write)


def _lag(ground: Ground, one: _Follower) -> None:
    """Records come all the time. A follower that always has what there was when it asked before stays in the
    ISR; one that is a record behind that leaves it."""
    began_ms, pace_ms = ground.world.now_ms, ground.lag_ms / 8

    def goes_on(behind: int, until: Callable[[], bool], limit_ms: float) -> float:
        start_ms = ground.world.now_ms
        while not until() and ground.world.now_ms < start_ms + limit_ms:
            end = one.replica.log.leo
            write = one.write(acks=1)
            ground.must("the answer to acks=1", lambda write=write: write.done, 1_500)  # type: ignore[misc]
            one.fetch(end - behind, log_start=3)
            one.guest.beat()
            ground.rest(pace_ms)
        return ground.world.now_ms - start_ms

    def is_out() -> bool:
        return NODE not in _image(ground).isr

    goes_on(0, is_out, 1.7 * ground.lag_ms)
    if is_out():
        ground.fail(
            f"a follower is out of the ISR after {ground.world.now_ms - began_ms:.0f} ms, and keeps up"
        )
    took_ms = goes_on(1, is_out, 1.5 * ground.lag_ms + 3 * pace_ms + SLACK_MS)
    if not is_out():
        ground.fail(f"a follower that does not catch up is in the ISR after {took_ms:.0f} ms")
    if took_ms < ground.lag_ms - 2 * pace_ms - SLACK_MS:
        ground.fail(f"a follower was out of the ISR after {took_ms:.0f} ms: too early")


# --- the guest leads ----------------------------------------------------------------------------------------


_QUESTIONS = (FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest)


class _Leader(Guest):
    """Keeps what its follower asks until the drill has an answer."""

    def __init__(self, ground: Ground, node: NodeId) -> None:
        super().__init__(ground)
        self.node = node
        """Who follows."""
        self.session, self.next_epoch = 0, 0
        """Of the fetch session; the epoch that the next fetch names."""
        self.wishes: dict[TopicPartition, FetchPartition] = {}
        """As its follower has said in the session."""
        self._questions: list[tuple[int, Request]] = []
        self._replies: list[Effect] = []
        self._batches: dict[tuple[int, int], bytes] = {}

    def handle(self, event: Event, now_ms: float) -> list[Effect]:
        match event:
            case RequestReceived(request_id, request) if isinstance(request, _QUESTIONS):
                self._questions.append((request_id, request))
                return []
            case RequestReceived(request_id, DescribeClusterRequest()):
                replies, self._replies = self._replies, []
                return [*replies, Reply(request_id, Refused(ErrorCode.unsupported_version, "a guest"))]
            case RequestCancelled(request_id):
                self._questions = [one for one in self._questions if one[0] != request_id]
                return []
        return super().handle(event, now_ms)

    @property
    def replica(self) -> Any:
        core = self.ground.world.brokers[self.node].core
        return None if core is None else core.replica(_TP)

    def poll(self, what: str, within_ms: float = _SOON_MS) -> tuple[int, Any]:
        """Returns what the follower asks next, with its request's id."""
        self.ground.must(f"a question of the follower after {what}", lambda: bool(self._questions), within_ms)
        return self._questions.pop(0)

    def answer(self, request_id: int, response: Response) -> None:
        self._replies.append(Reply(request_id, response))
        call = self.ground.call(NODE, DescribeClusterRequest())
        self.ground.must("an answer on its way", lambda: call.done, _SOON_MS)

    def fetched(self, what: str, offset: int, last: int, within_ms: float = _SOON_MS) -> int:
        """Expects the follower's next fetch, from this offset on and in this session; returns its id."""
        ground, log = self.ground, self.replica.log
        request_id, request = self.poll(what, within_ms)
        if not isinstance(request, FetchRequest):
            ground.fail(f"after {what} a follower asks {request}")
        former = {} if request.session_epoch == 0 else self.wishes
        self.wishes = {**former, **{part.tp: part for part in request.partitions}}
        image, life = _image(ground), ground.world.image.brokers[self.node].epoch
        ground.expect(
            f"who fetches after {what}", (request.replica_id, request.broker_epoch), (self.node, life)
        )
        ground.expect(f"the epoch of the session after {what}", request.session_epoch, self.next_epoch)
        if request.session_epoch:
            ground.expect(f"the session after {what}", request.session_id, self.session)
        part = self.wishes.get(_TP)
        if part is None:
            ground.fail(f"after {what} a follower fetches {request}")
        assert part is not None
        ground.expect(
            f"the fetch after {what}",
            (part.fetch_offset, part.last_fetched_epoch, part.current_leader_epoch, part.log_start),
            (offset, last, image.leader_epoch, log.log_start),
        )
        return request_id

    def reply(self, request_id: int, *batches: bytes, session: int = 9, **fields: Any) -> None:
        """Answers a fetch without an error, with these batches."""
        result = _result(self.ground, *batches, **fields)
        self.session = session
        self.next_epoch = self.next_epoch + 1 if session else 0
        self.answer(request_id, FetchResponse((result,), session_id=session))

    def refuse(self, request_id: int, error: ErrorCode) -> None:
        """Answers a whole fetch with an error."""
        self.next_epoch = 0
        self.answer(request_id, FetchResponse((), error))

    def has(self, what: str, end: int, high_watermark: int, start: int | None = None) -> None:
        """Expects that the follower's log ends here, and what it takes for committed."""
        log = self.replica.log

        def now() -> tuple[int, int, int, int]:
            return log.leo, self.replica.high_watermark, log.log_start, self._stored

        right = end, high_watermark, log.log_start if start is None else start, end
        if now() != right:
            self.ground.session.go(lambda: now() == right, self.ground.world.now_ms + _SOON_MS)
        self.ground.expect(f"(end, high watermark, start, end on disk) after {what}", now(), right)

    def batch(self, offset: int, epoch: int = 0) -> bytes:
        """One record; always the same one in this epoch at this offset."""
        if (offset, epoch) not in self._batches:
            data = encode(self.ground.values(1), int(self.ground.world.now_ms))
            self._batches[offset, epoch] = stamp(data, offset, epoch)
        return self._batches[offset, epoch]

    def is_silent(self, what: str) -> None:
        if self._questions:
            self.ground.fail(f"after {what} a follower asks again too soon")

    @property
    def _stored(self) -> int:
        leo: int = self.ground.world.brokers[self.node].disk.logs[_TP].leo
        return leo


def _result(ground: Ground, *batches: bytes, **fields: Any) -> FetchResult:
    topic_id = _image(ground).topic_id
    return FetchResult(_TP, records=b"".join(batches), topic_id=topic_id, **{"log_start": 0, **fields})


@_replicas
def answers_of_a_leader(ground: Ground) -> None:
    """A follower takes from its leader what goes on from its log, whole and undamaged, cuts where it is told
    to, and asks again: from the right place, at once or after a pause, in the session that there is."""
    node = ground.any_broker()
    guest = _Leader(ground, node)
    with _partition_of(ground, guest, NODE, node):
        ground.expect("the leader", _image(ground).leader, NODE)
        ground.must("a replica", lambda: guest.replica is not None, 1_500)
        poll = guest.fetched("its beginning", 0, -1, 1_500)
        if not guest.replica.ctx.rules.switches.fetch_names_epoch:
            _ask_first(ground, guest, poll)
            return
        for part in (_cut, _take, _part, _restart, _part_again, _overtake):
            poll = part(ground, guest, poll)
            guest.beat()


def _cut(ground: Ground, guest: _Leader, poll: int) -> int:
    """A log is cut while it is flushed: what comes then is flushed as well."""
    disk, batches = ground.world.brokers[guest.node].disk, [*map(guest.batch, range(5))]
    disk.slow_ms = _FLUSH_MS
    long_ms = 2 * _FLUSH_MS + _SOON_MS
    guest.reply(poll, *batches[:3], high_watermark=0)
    guest.has("three batches", 3, 0)
    poll = guest.fetched("three batches", 3, 0, long_ms)
    guest.reply(poll, high_watermark=1, diverging=EpochEndOffset(0, 2))
    guest.has("a divergence at 2", 2, 0)
    poll = guest.fetched("a divergence at 2", 2, 0, long_ms)
    guest.reply(poll, *batches[2:], high_watermark=0)
    guest.has("three batches more", 5, 0)
    poll = guest.fetched("three batches more", 5, 0, long_ms)
    log, on_disk = guest.replica.log, disk.logs[_TP]
    ground.must("a flush after a cut", lambda: min(log.flushed, on_disk.synced) >= 4, long_ms)
    disk.slow_ms = 0.0
    guest.reply(poll, high_watermark=0, diverging=EpochEndOffset(0, 3))
    guest.has("a divergence at 3", 3, 0)
    return guest.fetched("a divergence at 3", 3, 0)


def _take(ground: Ground, guest: _Leader, poll: int) -> int:
    """High watermarks that go up and down, and batches that are wrong."""
    for high_watermark, start in ((2, 0), (9, 1), (2, 1)):
        guest.reply(poll, high_watermark=high_watermark, log_start=start)
        guest.has(f"high watermark {high_watermark}", 3, min(high_watermark, 3), start)
        poll = guest.fetched("what it had", 3, 0)
    pause_ms, world = ground.broker["replica_fetch_backoff_ms"], ground.world
    good, epoch = guest.batch(3), _image(ground).leader_epoch
    damaged = bytearray(guest.batch(4))
    damaged[-1] ^= 1
    for what, batch in (
        ("a damaged batch", bytes(damaged)),
        ("a batch of later records", guest.batch(6)),
        ("a batch of an epoch to come", guest.batch(4, epoch + 1)),
    ):
        end, began_ms = guest.replica.log.leo, world.now_ms
        guest.reply(poll, *((good,) if end == 3 else ()), batch, high_watermark=2, log_start=1)
        guest.has(what, 4, 2, 1)
        ground.rest(pause_ms - (world.now_ms - began_ms) - 1)
        guest.is_silent(what)
        poll = guest.fetched(what, 4, 0, pause_ms + _SOON_MS)
    return poll


def _part(ground: Ground, guest: _Leader, poll: int) -> int:
    """Its log parts from the leader's; refusals of the partition leave the session as it is, those of the
    request end it."""
    pause_ms = ground.broker["replica_fetch_backoff_ms"]
    guest.reply(poll, high_watermark=4, log_start=1, diverging=EpochEndOffset(0, 3))
    guest.has("a divergence at 3", 3, 2, 1)
    poll = guest.fetched("a divergence at 3", 3, 0)
    guest.reply(poll, high_watermark=3, log_start=1)
    guest.has("high watermark 3", 3, 3, 1)
    for error, least_ms in (
        (ErrorCode.not_leader_or_follower, pause_ms / 10),
        (ErrorCode.kafka_storage_error, pause_ms),
    ):
        poll, began_ms = guest.fetched("what was right", 3, 0), ground.world.now_ms
        guest.reply(poll, error=error, high_watermark=-1, log_start=-1)
        rest_ms = least_ms - (ground.world.now_ms - began_ms) - 1
        if least_ms > _QUESTION_MS and rest_ms > 0:  # else the answer was long on its way
            ground.rest(rest_ms)
            guest.is_silent(error.name)
        guest.has(error.name, 3, 3, 1)
    poll = guest.fetched("a refusal", 3, 0, pause_ms + _SOON_MS)
    guest.refuse(poll, ErrorCode.fetch_session_id_not_found)
    poll = guest.fetched("the end of its session", 3, 0)
    guest.reply(poll, high_watermark=3, log_start=1, session=0)
    poll = guest.fetched("an answer without a session", 3, 0)
    guest.refuse(poll, ErrorCode.unknown_server_error)
    guest.is_silent("an error")
    return guest.fetched("an error", 3, 0, pause_ms + _SOON_MS)


def _restart(ground: Ground, guest: _Leader, poll: int) -> int:
    """Out of range: it looks for itself where the leader's log begins and ends, before it drops anything. A
    log that begins inside of a batch is had from that batch on."""
    pause_ms, topic_id = ground.broker["replica_fetch_backoff_ms"], _image(ground).topic_id
    for start, end, at in ((0, 8, 3), (10, 15, 10), (20, 25, 20)):
        out = FetchResult(
            _TP, ErrorCode.offset_out_of_range, high_watermark=5, log_start=0, topic_id=topic_id
        )
        guest.session, guest.next_epoch = 9, guest.next_epoch + 1
        guest.answer(poll, FetchResponse((out,), session_id=9))
        for which, offset in ((LATEST, end), (EARLIEST, start)):
            request_id, request = guest.poll("being out of range")
            right = [(_TP, which, _image(ground).leader_epoch)]
            if not isinstance(request, ListOffsetsRequest) or request.replica_id != guest.node:
                ground.fail(f"out of range a follower asks {request}")
            named = [(part.tp, part.timestamp, part.current_leader_epoch) for part in request.partitions]
            ground.expect("what it asks out of range", named, right)
            guest.answer(request_id, ListOffsetsResponse((ListOffsetsResult(_TP, offset=offset),)))
        last = 0 if at == 3 else -1
        guest.has(f"the range from {start} to {end}", at, at, 1 if at == 3 else at)
        poll = guest.fetched(f"the range from {start} to {end}", at, last, pause_ms + _SOON_MS)
        if at < 20:
            begun = stamp(encode(ground.values(4), int(ground.world.now_ms)), at - 1, 0)
            guest.reply(poll, begun, high_watermark=at + 1, log_start=at if at == 10 else 1)
            end = at + 3 if at == 10 else at - 1  # what it has of the batch goes first
            guest.has("a batch that begins before its end", end, min(end, at + 1), at if at == 10 else 1)
            poll = guest.fetched("a batch that begins before its end", end, 0)
    guest.reply(poll, guest.batch(20), high_watermark=20, log_start=20)
    guest.has("a batch after a range", 21, 20, 20)
    return guest.fetched("a batch after a range", 21, 0)


def _lead_again(ground: Ground, guest: _Leader) -> int:
    """The guest leads alone, goes, and leads again; returns the new leader epoch."""
    item = isr_change(_image(ground), (NODE, guest.epoch))
    result = guest.ask(AlterPartitionRequest(NODE, guest.epoch, (item,))).partitions[0]
    ground.expect("the answer to a leader that is alone", result.error, _none)
    guest.beat(fence=True)
    guest.beat()
    now = _image(ground)
    ground.expect("the leader when it is back", (now.leader, now.isr), (NODE, (NODE,)))
    return now.leader_epoch


def _part_again(ground: Ground, guest: _Leader, poll: int) -> int:
    """An answer of another time brings nothing; a log of three epochs parts from one that lacks the later."""
    late, epoch = poll, _lead_again(ground, guest)
    guest.next_epoch = 0
    poll = guest.fetched("a new epoch", 21, 0, 1_500)
    other_time = _result(ground, guest.batch(21), high_watermark=21, log_start=20)
    guest.answer(late, FetchResponse((other_time,), session_id=9))
    guest.has("an answer of another time", 21, 20, 20)
    guest.reply(poll, guest.batch(21, 1), guest.batch(22, epoch), high_watermark=21, log_start=20)
    guest.has("records of two epochs", 23, 21, 20)
    poll = guest.fetched("records of two epochs", 23, epoch)
    guest.reply(poll, high_watermark=22, log_start=20, diverging=EpochEndOffset(1, 30))
    guest.has("a divergence after epoch 1", 22, 21, 20)
    poll = guest.fetched("a divergence after epoch 1", 22, 1)
    guest.reply(poll, high_watermark=22, log_start=20, diverging=EpochEndOffset(0, 24))
    guest.has("a divergence after epoch 0", 21, 21, 20)
    return guest.fetched("a divergence after epoch 0", 21, 0)


def _ask_first(ground: Ground, guest: _Leader, poll: int) -> None:
    """A follower whose fetch says no epoch asks in each new one where its last epoch ends (KIP-101)."""
    unknown = ErrorCode.unknown_leader_epoch
    guest.reply(poll, *map(guest.batch, range(3)), high_watermark=1)
    guest.has("three batches", 3, 1)
    poll = guest.fetched("three batches", 3, -1)
    rounds: tuple[tuple[tuple[tuple[int, ErrorCode, int, int], ...], int], ...] = (
        (((0, unknown, -1, -1), (0, _none, 0, 2)), 2),
        (((-2, _none, 1, 9), (0, _none, 0, 7)), 3),
        (((0, _none, -1, -1),), 3),
    )
    for answers, end in rounds:
        epoch = _lead_again(ground, guest)
        guest.next_epoch = 0
        for about, error, ends, at in answers:
            request_id, request = guest.poll("a new epoch", 1_500)
            right = (OffsetForLeaderEpochPartition(_TP, epoch - 2 if about == -2 else about, epoch),)
            if not isinstance(request, OffsetForLeaderEpochRequest):
                ground.fail(f"in a new epoch a follower asks {request}")
            ground.expect(
                "what it asks in a new epoch", (request.replica_id, request.partitions), (guest.node, right)
            )
            result = OffsetForLeaderEpochResult(_TP, error, ends, at)
            guest.answer(request_id, OffsetForLeaderEpochResponse((result,)))
        guest.has("a new epoch", end, 1)
        poll = guest.fetched("a new epoch", end, -1)
        if end == 2:
            guest.reply(poll, guest.batch(2), guest.batch(3, epoch), high_watermark=1)
            guest.has("records of two epochs", 4, 1)
            poll = guest.fetched("records of two epochs", 4, -1)


def _overtake(ground: Ground, guest: _Leader, poll: int) -> int:
    """One more partition to follow: it does not wait for the poll. An answer that comes after a newer one
    brings its records, and no older high watermark."""
    growth = CreatePartitionsRequest((NewPartitions(GUESTS, 2, ((NODE, guest.node),)),), ANSWER_MS)
    error = ground.ask(ground.any_broker(), growth).topics[0].error
    ground.expect("the answer to growth", error, _none)
    late = poll
    guest.next_epoch = 0
    poll = guest.fetched("one more partition", 21, 0, 1_500)
    ground.expect("what it fetches then", set(guest.wishes), {_TP, TopicPartition(GUESTS, 1)})
    newest = 20
    if ground.draw.random() < 0.5:  # the newer answer comes first
        newest = 21
        guest.reply(poll, high_watermark=newest, log_start=20)
        guest.has("the newer answer", 21, newest, 20)
        poll = guest.fetched("the newer answer", 21, 0)
    older = _result(ground, guest.batch(21), high_watermark=20, log_start=20)
    guest.answer(late, FetchResponse((older,), session_id=9))
    guest.has("the older answer", 22, newest, 20)
    guest.reply(poll, guest.batch(21), high_watermark=22, log_start=20)
    guest.has("an answer to what it asks no more", 22, newest, 20)
    guest.next_epoch = 0
    return guest.fetched("both answers", 22, 0)

"""Drills of replication with a guest: as a follower it fetches exactly so far, and its leader must know what
that commits; as a leader it answers a follower with whatever a leader may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.messages.requests import (
    DeleteRecordsRequest,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResult,
    ProducePartition,
    ProduceRequest,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to
from wrackline.simulator.drills.guest import GUESTS, NODE, Guest
from wrackline.simulator.world.nodes import Call

_TP = TopicPartition(GUESTS, 0)
_BYTES = 1 << 20
_SOON_MS = 60
"""For a message there and back, and a flush."""
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
    topic = NewTopic(GUESTS, assignments={0: replicas}, configs={"min.insync.replicas": "1"})
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

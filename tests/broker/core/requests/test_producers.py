"""Idempotent producers go through leader changes, restarts and truncations (docs/protocol.md 2.1.3, K30):
nothing is written twice, and no producer is told that a correct sequence is out of order."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import Cluster, T
from wrackline.broker.model.batches import batch
from wrackline.broker.model.batches.producers import KEPT_BATCHES, ProducerTable
from wrackline.broker.model.types import ProducerBatch

P = 7


def numbered(sequence: int, producer: int = P) -> bytes:
    data = bytearray(batch.build([b"m%d" % sequence], 0, -1, 0))
    struct.pack_into(">qhi", data, 43, producer, 0, sequence)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def send(c: Cluster, node: int, sequence: int, acks: int = -1) -> tuple[ErrorCode, int]:
    result = c.produced(node, acks=acks, data=numbered(sequence))
    return result.error, result.base_offset


def ready(c: Cluster, node: int) -> None:
    c.until(lambda: c.leader() == node and c.replica(node).leader is not None)


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_a_leader_that_was_cut_back_still_knows_a_retry(restart: bool) -> None:
    """The old leader appends more batches than it must remember, loses them to a truncation, and leads again:
    the retry of a batch from before must not go in twice."""
    c = Cluster()
    c.create_topic()
    for sequence in range(10):
        assert send(c, 1, sequence) == (ErrorCode.none, sequence)
    c.run(200)
    c.cut(1, 2)
    c.cut(1, 3)
    for sequence in range(10, 17):
        assert send(c, 1, sequence, acks=1) == (ErrorCode.none, sequence)
    c.fence(1)
    c.until(lambda: c.leader() in (2, 3))
    if restart:
        c.kill(1)
        c.boot(1)
    c.heal()
    c.until(lambda: c.isr() == {1, 2, 3})
    assert c.values(1) == [b"m%d" % n for n in range(10)], "cut back"
    heir = c.leader()
    c.cut(heir, 101)
    c.until(lambda: c.leader() == 1 if heir == 2 else c.leader() in (1, 2))
    c.heal()
    if c.leader() != 1:
        c.fence(c.leader())
        c.heal()
    ready(c, 1)
    assert send(c, 1, 9) == (ErrorCode.none, 9), "a duplicate, told its first offset"
    assert send(c, 1, 5) == (ErrorCode.none, 5), "the last five are known"
    assert c.replica(1).log.leo == 10
    assert send(c, 1, 11) == (ErrorCode.out_of_order_sequence_number, -1), "10 is missing now"
    assert send(c, 1, 10) == (ErrorCode.none, 10)
    assert send(c, 1, 11) == (ErrorCode.none, 11)


@pytest.mark.parametrize("how", ["kill", "power", "stop"])
def test_every_restarted_leader_goes_on_where_the_producer_is(how: str) -> None:
    c = Cluster()
    c.create_topic()
    sequence = 0
    for _ in range(4):
        leader = c.leader()
        ready(c, leader)
        for _ in range(7):
            assert send(c, leader, sequence) == (ErrorCode.none, sequence)
            sequence += 1
        if how == "stop":
            c.stop(leader)
            c.until(lambda node=leader: bool(c.nodes[node].exits))
        elif how == "kill":
            c.kill(leader)
        else:
            c.power(leader, {T: sequence})
        c.until(lambda old=leader: c.leader() not in (old, -1))
        heir = c.leader()
        ready(c, heir)
        assert send(c, heir, sequence - 1) == (ErrorCode.none, sequence - 1), "its answer was lost"
        assert send(c, heir, sequence - 5) == (ErrorCode.none, sequence - 5)
        c.boot(leader)
        c.until(lambda: c.isr() == {1, 2, 3})
    assert c.values(1) == c.values(2) == c.values(3) == [b"m%d" % n for n in range(28)]


def test_a_producer_goes_on_after_all_brokers_restarted_at_once() -> None:
    c = Cluster()
    c.create_topic()
    for sequence in range(12):
        assert send(c, 1, sequence) == (ErrorCode.none, sequence)
    c.run(1_000)
    for node in (1, 2, 3):
        c.stop(node)
    c.until(lambda: all(c.nodes[node].exits for node in (1, 2, 3)))
    for node in (1, 2, 3):
        c.boot(node)
    c.until(lambda: c.isr() == {1, 2, 3})
    leader = c.leader()
    ready(c, leader)
    assert send(c, leader, 11) == (ErrorCode.none, 11)
    assert send(c, leader, 12) == (ErrorCode.none, 12)


@given(
    st.lists(st.integers(1, 2), min_size=25, max_size=60),
    st.integers(0, 25),
    st.integers(0, 60),
    st.booleans(),
)
def test_a_cut_at_or_above_the_high_watermark_is_as_if_nothing_more_had_been_written(
    producers: list[int], committed: int, cut: int, reopened: bool
) -> None:
    """The table after a truncation is the table of the shorter log, as far as its last five batches go."""
    committed, cut = sorted((min(committed, len(producers)), min(cut, len(producers))))
    table, shorter = ProducerTable(), ProducerTable()
    sequences = dict.fromkeys((1, 2), 0)
    for offset, producer in enumerate(producers):
        data = bytearray(numbered(sequences[producer], producer))
        struct.pack_into(">q", data, 0, offset)
        header = batch.parse_header(bytes(data))
        sequences[producer] += 1
        table.appended(header)
        if offset < cut:
            shorter.appended(header)
        table.committed = min(offset + 1, committed)
    if reopened:
        table = ProducerTable(table.snapshots(), committed)
    table.truncated(cut)
    for producer in (1, 2):
        assert table.get(producer) == shorter.get(producer)


def test_what_is_remembered_is_bounded() -> None:
    table = ProducerTable()
    for number in range(5_000):
        data = bytearray(numbered(number))
        struct.pack_into(">q", data, 0, number)
        table.appended(batch.parse_header(bytes(data)))
    assert len(table.snapshots()[P].batches) <= 1_000, "although nothing is committed"
    table.committed = 5_000
    data = bytearray(numbered(5_000))
    struct.pack_into(">q", data, 0, 5_000)
    table.appended(batch.parse_header(bytes(data)))
    assert len(table.snapshots()[P].batches) == KEPT_BATCHES + 1
    known = table.get(P)
    assert known is not None
    assert known.batches[-1] == ProducerBatch(5_000, 5_000, 5_000, 5_000)


# --- a producer that is silent for long is forgotten (producer.id.expiration.ms) --------------------------

DAY_MS = 86_400_000


def known(c: Cluster) -> dict[int, int]:
    """How many producers each replica remembers."""
    return {node: len(c.replica(node).log.producers) for node in (1, 2, 3)}


def test_a_silent_producer_is_forgotten_on_every_replica_and_one_that_writes_is_not() -> None:
    expiring = {"producer_id_expiration_ms": 60_000, "producer_id_expiration_check_interval_ms": 10_000}
    c = Cluster(**expiring)
    c.create_topic("t", (1, 2, 3))
    for producer in range(10, 30):
        assert c.produced(1, data=numbered(0, producer)).error is ErrorCode.none
    assert send(c, 1, 0)[0] is ErrorCode.none
    for sequence in range(1, 5):
        c.run(14_000)
        assert send(c, 1, sequence)[0] is ErrorCode.none
    assert known(c) == dict.fromkeys((1, 2, 3), 21), "56 s: not yet"
    c.run(15_000)
    assert known(c) == dict.fromkeys((1, 2, 3), 1)
    assert send(c, 1, 4) == (ErrorCode.none, 24), "a retry of who was never silent"
    c.run(90_000)
    assert known(c) == dict.fromkeys((1, 2, 3), 0)
    assert send(c, 1, 5)[0] is ErrorCode.none, "it may begin anywhere, as one that nobody knows"


def test_without_a_setting_a_day_must_pass() -> None:
    table, looks = ProducerTable(committed=1), DAY_MS // 600_000
    table.appended(batch.parse_header(numbered(0)))
    for _ in range(looks):
        table.expire(looks)
    assert len(table) == 1
    table.expire(looks)
    assert len(table) == 0


def test_what_may_be_cut_off_and_sent_again_is_remembered() -> None:
    """Until the high watermark has passed the last batch: the new leader may lack it."""
    table = ProducerTable(committed=0)
    table.appended(batch.parse_header(numbered(0)))
    for _ in range(9):
        table.expire(2)
    assert len(table) == 1
    table.committed = 1
    table.expire(2)
    assert len(table) == 0

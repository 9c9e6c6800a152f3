"""The simulated world has connections, cuts, holds, ends of processes, clocks, and disks that forget."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.batches import batch
from wrackline.broker.model.effects import Append, CloseLogs, CreateLog, Truncate, WriteCheckpoint
from wrackline.broker.model.messages.metadata import MetadataRequest
from wrackline.broker.model.messages.requests import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.world.disk import Disk
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.world import Call, StepRecord, World

T = TopicPartition("t", 0)


def world(seed: int = 1) -> World:
    made = World(seed)
    made.create_topic("t", replicas=(1, 2, 3))
    return made


def produce(where: World, value: int, node: int = 1, acks: int = -1) -> Call:
    part = ProducePartition(T, encode([value], 0))
    return where.ask(node, ProduceRequest(acks, 2_000, (part,)))


def isr(where: World) -> tuple[int, ...]:
    partition = where.image.partition(T)
    return () if partition is None else partition.isr


def values(where: World, node: int) -> list[int]:
    return [int.from_bytes(row.value, "big") for row in where.brokers[node].disk.logs[T].rows()]


# --- the cluster works -------------------------------------------------------------------------------------


def test_a_write_reaches_every_disk_and_is_acknowledged() -> None:
    w = world()
    call = produce(w, 7)
    w.until(lambda: call.done)
    assert isinstance(call.response, ProduceResponse)
    assert call.response.partitions[0].error is ErrorCode.none
    assert [values(w, node) for node in (1, 2, 3)] == [[7]] * 3
    assert w.leader(T) == 1
    assert w.active_controller() is w.controllers[101]


def test_receiving_and_handling_are_steps_of_their_own_and_every_step_is_observed() -> None:
    w = world()
    seen: list[StepRecord] = []
    w.observers.append(lambda _, record: seen.append(record))
    before = w.steps
    produce(w, 7)
    w.run(1_000)
    assert [record.number for record in seen] == list(range(before + 1, w.steps + 1))
    kinds = [record.kind for record in seen if record.message and record.message.name == "ProduceRequest"]
    assert kinds == ["receive", "handle"]
    assert {"timer", "flushed"} <= {record.kind for record in seen}


# --- ends of processes -------------------------------------------------------------------------------------


def test_a_kill_fails_pending_requests_at_once_and_a_power_cut_leaves_them_waiting() -> None:
    w = world()
    list_end = ListOffsetsRequest((ListOffsetsPartition(T, LATEST),))
    w.asked(1, list_end)
    w.isolate(1, (2, 3))
    killed = produce(w, 1)
    w.run(100)
    w.kill(1)
    w.until(lambda: killed.done, 100)
    assert killed.failed == "connection reset"
    refused = w.ask(1, list_end)
    w.until(lambda: refused.done, 100)
    assert refused.failed == "connection refused"
    w.power(2)
    silent = w.ask(2, list_end, timeout_ms=700)
    w.run(500)
    assert not silent.done
    w.run(500)
    assert silent.failed == "no answer in 700 ms"


def test_a_kill_keeps_what_was_written_and_a_power_cut_what_was_synced_at_least() -> None:
    w = world()
    calls = [produce(w, value) for value in range(10)]
    w.until(lambda: all(call.done for call in calls))
    order = values(w, 1)
    w.kill(2)
    w.start(2)
    w.power(3, keep={T: 4})
    w.start(3)
    assert values(w, 2) == order
    assert values(w, 3) == order[:4]
    w.until(lambda: values(w, 3) == order, what="node 3 has caught up")
    w.power(2, keep={T: 0})
    assert values(w, 2) == order, "a start syncs what it found"


def test_a_process_ends_between_two_effects_of_one_event() -> None:
    w = world()

    def after_the_append(event: ev.Event, _: object) -> int | None:
        is_write = isinstance(event, ev.RequestReceived) and isinstance(event.request, ProduceRequest)
        return 1 if is_write else None

    w.cut_process(1, after_the_append)
    steps: list[StepRecord] = []
    w.observers.append(lambda _, record: steps.append(record))
    call = produce(w, 7, acks=1)
    w.until(lambda: call.done)
    assert call.failed == "connection reset"
    assert values(w, 1) in ([], [7])
    (cut,) = [record for record in steps if record.cut]
    assert len(cut.effects) == 1
    assert w.brokers[1].down == "kill"
    w.start(1)
    w.until(w.all_unfenced)


def test_a_clean_stop_saves_the_broker_epoch_and_the_next_start_reports_it() -> None:
    w = world()
    epoch = w.brokers[2].core.broker_epoch if w.brokers[2].core else -1
    w.clean_stop(2)
    w.until(lambda: not w.brokers[2].up)
    assert w.brokers[2].down == "clean"
    assert w.brokers[2].disk.clean_epoch == epoch
    record = w.start(2)
    assert isinstance(record.event, ev.Boot)
    assert record.event.previous_broker_epoch == epoch
    assert w.brokers[2].disk.clean_epoch == -1


def test_a_paused_node_handles_nothing_and_goes_on_where_it_was() -> None:
    w = world()
    w.pause(1)
    steps: list[StepRecord] = []
    w.observers.append(lambda _, record: steps.append(record))
    call = produce(w, 7)
    w.run(900)
    assert not [record for record in steps if record.node == 1 and record.kind in ("handle", "timer")]
    w.resume(1)
    w.until(lambda: call.done)
    assert not call.failed


def test_a_wiped_and_a_restored_disk() -> None:
    w = world()
    old = w.brokers[3].disk.snapshot()
    call = produce(w, 7)
    w.until(lambda: call.done)
    with pytest.raises(SimulationError, match="is up"):
        w.wipe(3)
    w.kill(3)
    was = w.brokers[3].disk.directory_id
    w.restore(3, old)
    assert values(w, 3) == []
    assert w.brokers[3].disk.directory_id == was
    w.wipe(3)
    assert w.brokers[3].disk.logs == {}
    assert w.brokers[3].disk.directory_id != was


# --- the network -------------------------------------------------------------------------------------------


def test_a_one_way_cut_lets_requests_through_and_answers_not() -> None:
    w = world()
    metadata = MetadataRequest(None)
    w.asked(1, metadata)
    established = produce(w, 1, acks=1)
    w.until(lambda: established.done)
    received: list[str] = []

    def note(_: World, record: StepRecord) -> None:
        if (
            record.kind == "receive"
            and record.node == 1
            and record.message is not None
            and record.message.source == 2
        ):
            received.append(record.message.name)

    w.observers.append(note)
    w.cut(1, 2, one_way=True)
    w.run(2_500)
    assert received, "node 2's requests get to node 1 on connections that stand"
    produce(w, 2)
    w.until(lambda: 2 not in isr(w), what="2 out of the ISR")
    w.heal()
    w.until(lambda: 2 in isr(w), what="2 back in the ISR")
    assert values(w, 2) == [1, 2]


def test_held_messages_wait_with_those_behind_them_and_come_in_order() -> None:
    w = world()
    first = produce(w, 1, acks=1)
    w.until(lambda: first.done)
    hold = w.hold(lambda m: m.name == "FetchResponse" and m.destination == 2, "to 2", limit=1)
    call = produce(w, 2)
    w.run(300)
    assert [message.name for message in hold.held] == ["FetchResponse"]
    assert values(w, 2) == [1]
    assert not call.done
    w.release(hold)
    w.until(lambda: call.done)
    assert values(w, 2) == [1, 2]


def test_clocks_that_run_at_other_rates() -> None:
    w = world()
    w.set_clock_rate(2, 2.0)
    start = w.brokers[2].local_ms(w.now_ms)
    w.run(1_000)
    assert w.brokers[2].local_ms(w.now_ms) - start == pytest.approx(2_000)
    assert w.brokers[1].local_ms(w.now_ms) == w.now_ms
    assert w.brokers[2].world_ms(w.brokers[2].local_ms(1_234.0)) == pytest.approx(1_234.0)
    w.set_clock_rate(2, 0.5)
    w.run(20_000)
    assert w.all_unfenced()


# --- the disk ----------------------------------------------------------------------------------------------


def stored(at: int) -> bytes:
    return batch.stamp(encode([at], 0), at, 0)


def disk_with(count: int) -> Disk:
    disk = Disk(UUID(int=1))
    disk.create(CreateLog(T, UUID(int=2)))
    for at in range(count):
        disk.append(Append(T, (stored(at),), at, at + 1))
    return disk


def test_a_power_cut_keeps_a_random_prefix_of_the_unsynced_batches_torn_at_its_end() -> None:
    kept, torn = set(), 0
    for seed in range(200):
        disk = disk_with(3)
        assert disk.begin_flush(T)
        disk.append(Append(T, (stored(3),), 3, 4))
        assert not disk.begin_flush(T), "one flush at a time"
        assert disk.end_flush(disk.logs[T]) == (3, True)
        disk.append(Append(T, (stored(4), stored(5)), 4, 6))
        disk.stopped()
        disk.lose_power(Random(seed))
        torn += bool(disk.logs[T].torn)
        found = disk.recover()
        assert not disk.logs[T].torn
        kept.add(found.logs[T].leo)
        assert found.logs[T].leo == found.logs[T].flushed == len(disk.logs[T].rows())
    assert kept == {3, 4, 5, 6}
    assert torn > 20


def test_a_truncation_during_a_flush_lowers_what_the_flush_proves() -> None:
    disk = disk_with(3)
    disk.begin_flush(T)
    disk.truncate(Truncate(T, 1))
    disk.append(Append(T, (stored(1),), 1, 2))
    assert disk.end_flush(disk.logs[T]) == (1, False)
    disk.lose_power(Random(1), keep={T: 0})
    assert disk.logs[T].leo == 1


def test_recovery_clamps_the_high_watermark_and_takes_epochs_from_the_log() -> None:
    disk = disk_with(2)
    disk.write_checkpoint(WriteCheckpoint("high-watermark", {T: 9}))
    disk.write_checkpoint(WriteCheckpoint("recovery-point", {T: 2}))
    assert disk.checkpoints["recovery-point"] == {T: 0}, "never past what is synced"
    disk.append(Append(T, (batch.stamp(encode([9], 0), 2, 4),), 2, 3))
    disk.close_cleanly(CloseLogs(5, {T: 3}))
    found = disk.recover()
    assert found.previous_broker_epoch == 5
    assert found.logs[T].high_watermark == 3
    assert found.logs[T].epochs == ((0, 0), (4, 2))
    assert disk.recover().previous_broker_epoch == -1


def test_the_disk_refuses_what_no_log_can_do() -> None:
    disk = disk_with(2)
    with pytest.raises(SimulationError, match="the log ends at 2"):
        disk.append(Append(T, (stored(3),), 3, 4))
    with pytest.raises(SimulationError, match="no log"):
        disk.append(Append(TopicPartition("u", 0), (stored(0),), 0, 1))


def test_a_timer_that_never_lets_time_pass_is_a_livelock() -> None:
    class Restless:
        def handle(self, event: ev.Event, now_ms: float) -> list[fx.Effect]:  # noqa: ARG002
            return [fx.SetTimer("again", now_ms)]

    w = World(1)
    w.add_client(Restless())
    with pytest.raises(SimulationError, match="livelock"):
        w.run(1_000)

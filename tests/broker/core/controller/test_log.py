"""The metadata log shows nothing before commit (K02), survives a restart, and feeds observers (K03)."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.model.batches import batch
from wrackline.broker.model.effects import Append, Flush, WriteEpochs
from wrackline.broker.model.events import (
    DiskFailed,
    LogsClosed,
    RequestCancelled,
    RequestReceived,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.controller import BrokerHeartbeatRequest, BrokerRegistrationRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DescribeClusterRequest,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
)
from wrackline.broker.model.messages.requests import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderIdAndEpoch,
    ProduceRequest,
    Refused,
)
from wrackline.broker.model.metadata.records import LeaderChangeRecord, NoOpRecord
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, EpochEntry, LogSlice


def fetch(
    offset: int, *, wait_ms: int = 0, epoch: int = -1, current: int = -1, **more: object
) -> FetchRequest:
    partition = FetchPartition(METADATA, offset, 10_000, current, epoch, **more)  # type: ignore[arg-type]
    return FetchRequest(wait_ms, 1, 1_000_000, (partition,), replica_id=1)


def result_of(driver: Driver, request_id: int) -> FetchResult:
    response = driver.replies[request_id]
    assert isinstance(response, FetchResponse)
    return response.partitions[0]


def test_the_first_record_of_every_uptime_says_who_leads_in_a_new_epoch() -> None:
    driver = Driver()
    driver.start(1)
    start = driver.disk.leo
    driver.restart()
    records = driver.disk.records()
    assert records[0] == records[start] == LeaderChangeRecord(101, (101,))
    assert driver.disk.epochs == (EpochEntry(0, 0), EpochEntry(1, start))
    epochs = [batch.parse_header(data).leader_epoch for data in driver.disk.batches]
    assert epochs == sorted(epochs)
    assert set(epochs) == {0, 1}


def test_k02_no_reply_and_no_visible_change_before_the_flush() -> None:
    driver = Driver(auto_flush=False)
    refused = driver.ask(DescribeClusterRequest())
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.not_controller
    driver.replies.clear()
    driver.flush()
    registration = BrokerRegistrationRequest(1, "test-cluster", driver.incarnation(), "n1", 9092)
    first = driver.post(registration)
    look = driver.post(DescribeClusterRequest())
    waiting = driver.post(fetch(1, wait_ms=60_000))
    defaults_end = driver.disk.leo - 1
    assert driver.replies == {}
    assert driver.controller.committed.brokers == {}
    assert 1 in driver.controller.speculative.brokers
    while driver.flushes:
        driver.flush()
    assert {first, look, waiting} <= driver.replies.keys()
    seen = driver.replies[look]
    assert isinstance(seen, MetadataResponse)
    assert seen.fenced == (1,)
    assert result_of(driver, waiting).records == LogSlice(METADATA, 1, defaults_end, 10_000), (
        "the second flush held what was appended before it began"
    )


def test_replies_wait_for_their_own_batch_and_flushes_are_shared() -> None:
    driver = Driver(auto_flush=False)
    while driver.flushes:
        driver.flush()
    ids = [
        driver.post(BrokerRegistrationRequest(b, "test-cluster", driver.incarnation(), f"n{b}", 9092))
        for b in (1, 2, 3)
    ]
    assert len(driver.flushes) == 1
    driver.flush()
    assert [i in driver.replies for i in ids] == [True, False, False]
    assert len(driver.flushes) == 1
    driver.flush()
    assert [i in driver.replies for i in ids] == [True, True, True]
    assert driver.flushes == []


def test_an_answer_without_records_waits_for_what_it_rests_on() -> None:
    driver = Driver()
    driver.start(1)
    driver.auto_flush = False
    driver.post(CreateTopicsRequest((NewTopic("t", 1, 1),), 1_000))
    again = driver.post(CreateTopicsRequest((NewTopic("t", 1, 1),), 1_000))
    beat = driver.post(BrokerHeartbeatRequest(1, driver.epochs[1], 100, False, False))
    assert again not in driver.replies
    assert beat not in driver.replies
    driver.flush()
    assert again in driver.replies
    assert beat in driver.replies


def test_appends_come_before_their_flush_and_the_epoch_before_both() -> None:
    driver = Driver()
    driver.start(1)
    effects = driver.handle(
        RequestReceived(999, CreateTopicsRequest((NewTopic("t", 1, 1),), 1_000)),
    )
    kinds = [type(e) for e in effects if isinstance(e, Append | Flush | WriteEpochs)]
    assert kinds == [Append, Flush]


@pytest.mark.parametrize("power", [False, True])
def test_a_restart_finds_everything_that_was_answered(power: bool) -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create()
    driver.alter([1, 2])
    driver.let_expire(2)
    before = driver.controller.committed.copy()
    driver.restart(power=power)
    after = driver.controller.committed
    assert after.topics_by_id == before.topics_by_id
    assert after.brokers == before.brokers
    assert after.configs == before.configs
    assert driver.controller.speculative == after
    assert driver.alter([1, 3]).error is ErrorCode.none


def test_a_power_cut_takes_back_only_what_was_never_answered() -> None:
    driver = Driver()
    driver.start(1)
    driver.auto_flush = False
    lost = driver.post(CreateTopicsRequest((NewTopic("t", 1, 1),), 1_000))
    assert lost not in driver.replies
    driver.auto_flush = True
    driver.restart(power=True)
    assert driver.controller.committed.partition(T) is None


def test_a_damaged_log_stops_the_controller_with_one_clear_line() -> None:
    driver = Driver()
    driver.start(1)
    driver.disk.batches[1] = driver.disk.batches[0]
    driver.restart()
    (end,) = driver.exits
    assert end.code == 1
    assert "metadata log cannot be read after offset 1" in end.reason
    assert driver.handle(TimerFired("sessions")) == []


def test_a_failed_disk_stops_the_controller() -> None:
    driver = Driver()
    driver.handle(DiskFailed(METADATA, "append: no space left on device"))
    (end,) = driver.exits
    assert end.code == 1
    assert "no space" in end.reason


def test_stopping_closes_the_log_and_serves_nobody_any_more() -> None:
    driver = Driver()
    driver.start(1)
    driver.handle(StopRequested())
    assert len(driver.closed) == 1
    refused = driver.ask(DescribeClusterRequest())
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.not_controller
    driver.handle(LogsClosed())
    assert [e.code for e in driver.exits] == [0]


def test_noops_are_written_only_while_nothing_else_is() -> None:
    driver = Driver(noop_interval_ms=500)
    driver.run_until(driver.now_ms + 1_600)
    noops = [r for r in driver.disk.records() if isinstance(r, NoOpRecord)]
    assert len(noops) == 2
    assert "ctl_commit" in driver.kinds()
    offsets = [t.fields["offset"] for t in driver.traces if t.kind == "ctl_commit"]
    assert driver.disk.leo - 1 not in offsets


# --- observers ----------------------------------------------------------------------------------------------


def test_an_observer_gets_committed_records_only() -> None:
    driver = Driver()
    committed = driver.disk.leo
    driver.auto_flush = False
    driver.post(BrokerRegistrationRequest(1, "test-cluster", driver.incarnation(), "n1", 9092))
    result = result_of(driver, driver.post(fetch(0)))
    assert result.records == LogSlice(METADATA, 0, committed, 10_000)
    assert result.high_watermark == committed
    assert result.current_leader == LeaderIdAndEpoch(101, 0)
    assert result_of(driver, driver.post(fetch(committed))).records == b""


def test_a_fetch_at_the_end_waits_for_the_next_commit() -> None:
    driver = Driver()
    end = driver.disk.leo
    waiting = driver.post(fetch(end, wait_ms=500, epoch=0))
    assert waiting not in driver.replies
    driver.register(1)
    assert result_of(driver, waiting).records == LogSlice(METADATA, end, end + 1, 10_000)
    assert not any(key.startswith("metadata-fetch") for key in driver.timers)


def test_a_fetch_that_waits_in_vain_is_answered_empty_and_a_cancelled_one_not_at_all() -> None:
    driver = Driver()
    start, end = driver.now_ms, driver.disk.leo
    waiting = driver.post(fetch(end, wait_ms=500))
    cancelled = driver.post(fetch(end, wait_ms=400))
    driver.handle(RequestCancelled(cancelled))
    driver.run_until(start + 499)
    assert waiting not in driver.replies
    driver.run_until(start + 500)
    assert result_of(driver, waiting).error is ErrorCode.none
    assert cancelled not in driver.replies


def test_a_restarted_controller_gives_no_records_before_it_knows_what_is_committed() -> None:
    driver = Driver()
    driver.start(1)
    driver.auto_flush = False
    driver.restart()
    result = result_of(driver, driver.post(fetch(0)))
    assert (result.records, result.high_watermark) == (b"", -1)
    waiting = driver.post(fetch(0, wait_ms=1_000))
    driver.flush()
    assert isinstance(result_of(driver, waiting).records, LogSlice)


def test_an_observer_with_records_of_a_lost_log_is_told_where_to_cut() -> None:
    driver = Driver()
    driver.start(1)
    driver.restart()
    border = driver.disk.epochs[1].start_offset
    assert result_of(driver, driver.post(fetch(border, epoch=0))).diverging is None
    assert result_of(driver, driver.post(fetch(border + 5, epoch=0))).diverging == EpochEndOffset(0, border)
    ahead = result_of(driver, driver.post(fetch(3, epoch=7)))
    assert ahead.error is ErrorCode.offset_out_of_range
    beyond = result_of(driver, driver.post(fetch(driver.disk.leo + 1)))
    assert beyond.error is ErrorCode.offset_out_of_range


def test_epochs_of_another_uptime_are_fenced_or_unknown_and_the_answer_names_the_leader() -> None:
    driver = Driver()
    driver.restart()
    for current, error in (
        (0, ErrorCode.fenced_leader_epoch),
        (1, ErrorCode.none),
        (2, ErrorCode.unknown_leader_epoch),
    ):
        result = result_of(driver, driver.post(fetch(0, current=current)))
        assert (result.error, result.current_leader) == (error, LeaderIdAndEpoch(101, 1))


def test_the_log_is_found_by_its_topic_id_and_no_other_partition_is_here() -> None:
    driver = Driver()
    by_id = FetchPartition(T._replace(topic=""), 0, 10_000, topic_id=METADATA_TOPIC_ID)
    other = FetchPartition(T, 0, 10_000)
    response = driver.ask(FetchRequest(0, 1, 1_000_000, (by_id, other)))
    assert isinstance(response, FetchResponse)
    assert isinstance(response.partitions[0].records, LogSlice)
    assert response.partitions[1].error is ErrorCode.unknown_topic_or_partition


def test_metadata_is_answered_and_the_business_of_brokers_refused() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create(replicas=[1, 2])
    driver.register(3)
    seen = driver.ask(MetadataRequest(None))
    assert isinstance(seen, MetadataResponse)
    assert [b.node_id for b in seen.brokers] == [1, 2]
    assert seen.fenced == (3,)
    assert [t.name for t in seen.topics] == ["t"]
    assert seen.topics[0].partitions[0].leader_id == 1
    unknown = driver.ask(MetadataRequest(("nope",)))
    assert isinstance(unknown, MetadataResponse)
    assert unknown.topics[0].error is ErrorCode.unknown_topic_or_partition
    refused = driver.ask(ProduceRequest(1, 1_000, ()))
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.unsupported_version

"""The log as the core knows it agrees with simple models of what it must know."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.core.solo import T
from wrackline.broker.core.replication.log import PLENTY_BYTES, PartitionLog
from wrackline.broker.model.batches.batch import BatchHeader
from wrackline.broker.model.effects import Append, Effect, Flush, Truncate, WriteEpochs
from wrackline.broker.model.types import EpochEntry, FlushMode, ProducerBatch, ProducerSnapshot, RecoveredLog

EMPTY = RecoveredLog(UUID(int=1), 0, 0, 0, 0)


def header(base: int, count: int, epoch: int = 0, producer: int = -1, sequence: int = -1) -> BatchHeader:
    return BatchHeader(base, 100 + count, epoch, 2, 0, 0, count - 1, 0, 0, producer, 0, sequence, count)


def append(log: PartitionLog, count: int, out: list[Effect], **more: int) -> None:
    log.append([(header(log.leo, count, **more), b"")], out)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["append", "truncate", "epoch"]), st.integers(1, 6)), max_size=40))
def test_sizes_and_epochs_follow_appends_and_truncations(steps: list[tuple[str, int]]) -> None:
    """I15: the cache equals what a scan gives, plus at most the epoch that leads and has not written yet."""
    log, out = PartitionLog(T, EMPTY), list[Effect]()
    model: list[tuple[int, int, int, int]] = []
    epoch = 0
    for what, number in steps:
        if what == "append":
            model.append((log.leo, log.leo + number, 112 + number, epoch))
            append(log, number, out, epoch=epoch)
        elif what == "epoch":
            epoch += number
            log.assign_epoch(epoch, out)
        elif model:
            cut = model[-min(number, len(model))][0]
            log.truncate(cut, out)
            model = [entry for entry in model if entry[1] <= cut]
    assert log.leo == (model[-1][1] if model else 0)
    for at, (base, _, _, _) in enumerate(model):
        assert log.bytes_between(base, log.leo) == sum(size for _, _, size, _ in model[at:])
    scan: list[EpochEntry] = []
    for base, _, _, of in model:
        if not scan or scan[-1].epoch != of:
            scan.append(EpochEntry(of, base))
    assert [entry for entry in log.epochs.entries if entry.start_offset < log.leo] == scan
    trailing = [entry for entry in log.epochs.entries if entry.start_offset >= log.leo]
    assert trailing in ([], [EpochEntry(epoch, log.leo)])
    written = [effect.entries for effect in out if isinstance(effect, WriteEpochs)]
    assert not written or written[-1] == log.epochs.entries, "the checkpoint file is what is in memory"


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["append", "truncate", "answer"]), st.integers(0, 6)), max_size=60))
def test_nothing_counts_as_flushed_that_was_not(steps: list[tuple[str, int]]) -> None:
    """A truncation while a flush is under way, and appends after it: the answer covers only what it saw.

    The model gives each record an identity; a flush makes exactly those durable that were there when asked.
    """
    log, out = PartitionLog(T, EMPTY), list[Effect]()
    records: list[int] = []
    durable: set[int] = set()
    asked: list[tuple[int, list[int]]] = []
    lowest = 0
    identity = 0
    for what, number in steps:
        before = len(out)
        if what == "append":
            append(log, 1, out)
            records.append(identity)
            identity += 1
            log.flush_if_due(FlushMode.EVERY_WRITE, 0, out)
        elif what == "truncate":
            cut = max(0, log.leo - number)
            log.truncate(cut, out)
            del records[cut:]
            lowest = min(lowest, cut)
        elif asked:
            upto, seen = asked.pop(0)
            durable.update(seen)
            # A disk that knows of the cut says how far its answer still holds; a plain one does not.
            log.on_flushed(min(upto, lowest) if number % 2 else upto)
            log.flush(out)
        flushes = [effect for effect in out[before:] if isinstance(effect, Flush)]
        if flushes:
            asked += [(flush.upto, list(records)) for flush in flushes]
            lowest = log.leo
        assert len(asked) <= 1
        assert set(records[: log.flushed]) <= durable
    while asked:
        upto, seen = asked.pop()
        durable.update(seen)
        log.on_flushed(upto)
        before = len(out)
        log.flush(out)
        asked += [(e.upto, list(records)) for e in out[before:] if isinstance(e, Flush)]
        assert set(records[: log.flushed]) <= durable
    assert log.flushed == log.leo, "and in the end all of it is"


def test_the_tail_index_stays_small_and_overstates_sizes_it_has_forgotten() -> None:
    log = PartitionLog(T, EMPTY)
    for _ in range(10_000):
        append(log, 1, [])
    assert log.bytes_between(0, 10) == PLENTY_BYTES
    assert log.bytes_between(9_990, 10_000) == 10 * 113
    assert log.bytes_between(10_000, 10_000) == 0
    recovered = PartitionLog(T, RecoveredLog(UUID(int=1), 0, 5, 5, 0))
    assert recovered.bytes_between(3, 5) == PLENTY_BYTES


def test_an_append_says_its_epoch_before_its_records() -> None:
    """A crash in between leaves an entry past the end, which recovery drops, never records without an
    entry."""
    log, out = PartitionLog(T, EMPTY), list[Effect]()
    append(log, 2, out, epoch=4)
    assert [type(effect) for effect in out] == [WriteEpochs, Append]
    log.truncate(0, out)
    assert [type(effect) for effect in out[2:]] == [Truncate, WriteEpochs]


def test_producers_are_forgotten_with_their_batches() -> None:
    log = PartitionLog(T, EMPTY)
    for sequence in range(3):
        append(log, 1, [], producer=7, sequence=sequence)
    log.truncate(2, [])
    known = log.producers.get(7)
    assert known == ProducerSnapshot(7, 0, (ProducerBatch(0, 0, 0, 0), ProducerBatch(1, 1, 1, 1)))
    log.truncate(0, [])
    assert log.producers.get(7) is None

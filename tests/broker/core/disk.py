"""A disk in memory for core tests: strict about what the core asks of it, and able to lose what was not
flushed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID

from wrackline.broker.model.batches import batch
from wrackline.broker.model.batches.producers import ProducerTable
from wrackline.broker.model.effects import (
    Append,
    CloseLogs,
    CreateLog,
    DeleteLog,
    Effect,
    MoveLogStart,
    ResetLog,
    Truncate,
    WriteCheckpoint,
    WriteEpochs,
    WriteQuorumState,
)
from wrackline.broker.model.messages.requests import LookupByTime
from wrackline.broker.model.types import (
    EpochEntry,
    LogSlice,
    ProducerSnapshot,
    QuorumState,
    RecoveredLog,
    TopicPartition,
)


@dataclass
class SimLog:
    topic_id: UUID
    start: int = 0
    leo: int = 0
    flushed: int = 0
    batches: list[tuple[batch.BatchHeader, bytes]] = field(default_factory=list)
    epochs: tuple[EpochEntry, ...] = ()

    def cut(self, to_offset: int) -> None:
        kept = [pair for pair in self.batches if pair[0].last_offset < to_offset]
        end = kept[-1][0].last_offset + 1 if kept else self.start
        assert end == to_offset, f"cut to {to_offset} in the middle of a batch"
        self.batches, self.leo, self.flushed = kept, end, min(self.flushed, end)

    def start_at(self, offset: int) -> None:
        """Whole batches below go; one that reaches past it stays."""
        assert self.start < offset <= self.leo
        self.start = offset
        self.batches = [pair for pair in self.batches if pair[0].last_offset >= offset]

    def values(self) -> list[bytes]:
        return [value for header, data in self.batches for _, value in batch.values_of(header, data)]

    def epochs_of_offsets(self) -> list[int]:
        return [
            header.leader_epoch for header, _ in self.batches for _ in range(header.last_offset_delta + 1)
        ]

    def producers(self) -> dict[int, ProducerSnapshot]:
        """As recovery finds them: by going through the batches."""
        table = ProducerTable()
        for header, _ in self.batches:
            table.appended(header)
        return table.snapshots()


@dataclass
class Disk:
    logs: dict[TopicPartition, SimLog] = field(default_factory=dict)
    checkpoints: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    clean_epoch: int = -1
    quorum_state: QuorumState | None = None

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case CreateLog():
                assert effect.tp not in self.logs
                self.logs[effect.tp] = SimLog(effect.topic_id)
            case DeleteLog():
                del self.logs[effect.tp]
            case Append():
                self._append(effect)
            case Truncate():
                log = self.logs[effect.tp]
                assert effect.to_offset < log.leo, "a truncation that cuts nothing"
                log.cut(effect.to_offset)
            case ResetLog():
                old = self.logs[effect.tp]
                start = effect.start_offset
                self.logs[effect.tp] = SimLog(old.topic_id, start, start, start)
            case MoveLogStart():
                self.logs[effect.tp].start_at(effect.to_offset)
            case WriteEpochs():
                self.logs[effect.tp].epochs = effect.entries
            case WriteCheckpoint():
                self.checkpoints[effect.kind] = dict(effect.offsets)
            case WriteQuorumState():
                self.quorum_state = effect.state
            case CloseLogs():
                for log in self.logs.values():
                    log.flushed = log.leo
                self.checkpoints["high-watermark"] = dict(effect.high_watermarks)
                self.clean_epoch = effect.broker_epoch
            case _:
                pass

    def _append(self, effect: Append) -> None:
        log = self.logs[effect.tp]
        assert effect.base_offset == log.leo, f"append at {effect.base_offset}, the log ends at {log.leo}"
        for data in effect.batches:
            header = batch.parse_header(data)
            assert header.base_offset == log.leo
            assert batch.crc_is_right(header, data)
            log.batches.append((header, data))
            log.leo = header.last_offset + 1
        assert log.leo == effect.end_offset

    def read(self, part: LogSlice) -> bytes:
        log = self.logs[part.tp]
        out = b""
        for header, data in log.batches:
            if header.last_offset < part.start_offset or header.base_offset >= part.end_offset:
                continue
            first = not out and part.at_least_one
            if len(out) + len(data) > part.max_bytes and not first:
                break
            out += data
        return out

    def find(self, wanted: LookupByTime) -> tuple[int, int]:
        """(timestamp, offset) of the first batch at or after a time, (-1, -1) when there is none."""
        for header, _ in self.logs[wanted.tp].batches:
            if header.base_offset < wanted.end_offset and header.max_timestamp >= wanted.timestamp:
                return header.max_timestamp, header.base_offset
        return -1, -1

    def lose_power(self, keep: dict[TopicPartition, int]) -> None:
        """Every log is cut to what was flushed, or further up where ``keep`` says so."""
        for tp, log in self.logs.items():
            log.cut(max(log.flushed, min(keep.get(tp, 0), log.leo)))

    def recovered(self) -> dict[TopicPartition, RecoveredLog]:
        """What a start finds; the clean-shutdown file is read elsewhere, before."""
        found = {}
        for tp, log in self.logs.items():
            log.flushed = log.leo
            log.epochs = tuple(entry for entry in log.epochs if entry.start_offset < log.leo)
            checkpoint = self.checkpoints.get("high-watermark", {}).get(tp, 0)
            found[tp] = replace(
                RecoveredLog(log.topic_id, log.start, log.leo, log.leo, 0),
                high_watermark=max(log.start, min(checkpoint, log.leo)),
                epochs=log.epochs,
                producers=log.producers(),
            )
        return found

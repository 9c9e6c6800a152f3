"""The history of a controller quorum by the control records of each controller's metadata log: who led from
which epoch on, and who could vote (KIP-595, KIP-853)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kio.schema.leader_change_message.v0 import LeaderChangeMessage as LeaderV0
from kio.schema.leader_change_message.v1 import LeaderChangeMessage as LeaderV1
from kio.schema.voters_record.v0 import VotersRecord
from kio.serial import entity_reader
from kio.serial.errors import DecodeError

from wrackline.kafka_client.model import Voter, directory_text
from wrackline.systems.base import StoredRecord
from wrackline.systems.metadata_changes import QuorumChange, QuorumLog
from wrackline.systems.segments import SegmentError, batches, control_records

PATTERNS = ("*.log", "*.checkpoint")
"""The files of a metadata log that have control records: segments, and snapshots."""
_LEADER_CHANGE, _VOTERS = 2, 6
_MS = 1_000_000
_KEY = struct.Struct(">hh")


def read_quorum_log(folder: Path, *, node_id: int, host: str) -> QuorumLog:
    """Reads a folder of a metadata log. Never raises for what the files hold: it stands in ``problem``."""
    changes: list[QuorumChange] = []
    epochs: list[tuple[int, int]] = []
    problem, end = "", 0
    segments = sorted(folder.glob("*.log"))
    try:
        for snapshot in sorted(folder.glob("*.checkpoint")):
            before = int(snapshot.name.partition("-")[0]) - 1
            for record in _control(snapshot):
                if (change := _change(record, before, 0)) is not None and change.leader is None:
                    changes.append(change)
        for segment in segments:
            for batch, data in batches(segment.read_bytes(), file=segment.name):
                if not epochs or epochs[-1][0] != batch.leader_epoch:
                    epochs.append((batch.leader_epoch, batch.base_offset))
                end = batch.last_offset + 1
                for record in control_records(batch, data, file=segment.name):
                    if (change := _change(record, record.offset, batch.leader_epoch)) is not None:
                        changes.append(change)
    except (SegmentError, OSError, ValueError, DecodeError, struct.error) as error:
        problem = f"{host}: {error}"
    return QuorumLog(
        node_id=node_id,
        host=host,
        start=int(segments[0].stem) if segments else 0,
        end=end,
        epochs=tuple(epochs),
        changes=tuple(sorted(changes, key=lambda one: one.offset)),
        problem=problem,
    )


def _control(file: Path) -> Iterator[StoredRecord]:
    for batch, data in batches(file.read_bytes(), file=file.name):
        yield from control_records(batch, data, file=file.name)


def _change(record: StoredRecord, offset: int, epoch: int) -> QuorumChange | None:
    """Returns what a control record says of the quorum; None for one that says nothing of it. Raises
    DecodeError or struct.error."""
    if record.key is None or record.value is None:
        return None
    _, kind = _KEY.unpack_from(record.key)
    at_ns = record.timestamp_ms * _MS
    if kind == _LEADER_CHANGE:
        [version] = struct.unpack_from(">h", record.value)
        message: Any
        message, _ = entity_reader(LeaderV0 if version == 0 else LeaderV1)(record.value, 0)
        return QuorumChange(offset, epoch, at_ns, leader=int(message.leader_id))
    if kind == _VOTERS:
        members, _ = entity_reader(VotersRecord)(record.value, 0)
        voters = (Voter(int(one.voter_id), directory_text(one.voter_directory_id)) for one in members.voters)
        return QuorumChange(offset, epoch, at_ns, voters=tuple(sorted(voters)))
    return None

"""The small text files beside the logs, in Kafka's own formats (docs/protocol.md 2.14).

Offset checkpoints: version, number of lines, then ``topic partition offset``. Leader-epoch checkpoints: the
same with ``epoch start_offset``. A checkpoint that cannot be read is reported and treated as absent: each
of them only saves work or narrows what recovery must look at, except for the clean-shutdown file, whose
absence is the safe answer.

A bit that changes in a number leaves a number: what has no other witness (offsets, the topic's id, a vote)
carries a CRC32C of itself, in a place where Kafka's own readers take no harm from it. A file without one, of
Kafka's or older than this, is taken as it is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

from crc32c import crc32c

from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import EpochEntry, QuorumState, TopicPartition
from wrackline.broker.storage.files import fsync_dir, replace_file
from wrackline.broker.storage.uuids import decode_uuid, encode_uuid

_LOG = logging.getLogger("broker.storage")
CHECKPOINT_FILES: Mapping[Checkpoint, str] = {
    Checkpoint.HIGH_WATERMARK: "replication-offset-checkpoint",
    Checkpoint.RECOVERY_POINT: "recovery-point-offset-checkpoint",
    Checkpoint.LOG_START: "log-start-offset-checkpoint",
}
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
EPOCHS_FILE = "leader-epoch-checkpoint"
META_FILE = "meta.properties"
QUORUM_FILE = "quorum-state"
PARTITION_METADATA_FILE = "partition.metadata"
_CHECKSUM = "crc32c"
_CHECKSUM_TOPIC = "#crc32c"
"""No topic can be called so: in an offset checkpoint the last row, ``#crc32c 0 <CRC of the rows before
it>``."""


class CheckpointError(ValueError):
    """A file beside the logs is not what it should be: which one, and what is wrong with it."""


def _lines(path: Path, fields: int) -> list[list[str]]:
    """The rows of a checkpoint file; [] when there is no file. Raises CheckpointError."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not text ({error.reason})") from error
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != "0" or not lines[1].isdigit():
        raise CheckpointError(f"{path}: does not begin with version 0 and a number of lines")
    rows = [line.split(" ") for line in lines[2:]]
    if len(rows) != int(lines[1]) or not text.endswith("\n"):
        raise CheckpointError(f"{path}: {lines[1]} lines promised, {len(rows)} found")
    if any(len(row) != fields for row in rows):
        raise CheckpointError(f"{path}: a line does not have {fields} fields")
    return rows


def _text(rows: Iterable[str]) -> bytes:
    lines = list(rows)
    return ("\n".join(["0", str(len(lines)), *lines]) + "\n").encode()


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Raises CheckpointError."""
    rows = _lines(path, fields=3)
    try:
        if rows and rows[-1][0] == _CHECKSUM_TOPIC and int(rows.pop()[2]) != _crc_of(map(" ".join, rows)):
            raise CheckpointError(f"{path}: its checksum is wrong")
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    rows = [f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items())]
    replace_file(path, _text([*rows, f"{_CHECKSUM_TOPIC} 0 {_crc_of(rows)}"]))


def _crc_of(rows: Iterable[str]) -> int:
    return crc32c("\n".join(rows).encode())


def read_epochs(path: Path) -> tuple[EpochEntry, ...]:
    """Raises CheckpointError."""
    try:
        return tuple(EpochEntry(int(epoch), int(start)) for epoch, start in _lines(path, fields=2))
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def write_epochs(path: Path, entries: Iterable[EpochEntry], *, durable: bool = True) -> None:
    rows = (f"{entry.epoch} {entry.start_offset}" for entry in entries)
    replace_file(path, _text(rows), durable=durable)


def write_clean_shutdown(data_dir: Path, broker_epoch: int) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(data_dir / CLEAN_SHUTDOWN_FILE, content.encode())


def take_clean_shutdown(data_dir: Path) -> int | None:
    """The broker epoch of the last controlled shutdown, or None; the file is gone on return (R10: it is
    never present while the broker runs, or a later crash would look clean)."""
    path = data_dir / CLEAN_SHUTDOWN_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    path.unlink()
    fsync_dir(data_dir)
    try:
        epoch = json.loads(content)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        epoch = None
    if not isinstance(epoch, int):
        _LOG.warning("%s cannot be read: going on as after an unclean stop", path)
        return None
    return epoch


def write_quorum_state(data_dir: Path, state: QuorumState) -> None:
    """Kafka's names, and the directory's own id: durable on return. Raises OSError."""
    fields = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": state.voted_for,
        "votedDirectoryId": encode_uuid(state.voted_directory),
        "directoryId": encode_uuid(state.directory_id),
        "data_version": 1,
    }
    replace_file(data_dir / QUORUM_FILE, _json({**fields, _CHECKSUM: crc32c(_json(fields))}))


def _json(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def read_quorum_state(data_dir: Path) -> QuorumState | None:
    """Reads the quorum state; None when there is no file. Raises CheckpointError: to go on without a vote
    that was given could make two leaders of one epoch."""
    path = data_dir / QUORUM_FILE
    try:
        fields = json.loads(path.read_bytes())
        if fields.pop(_CHECKSUM, None) not in (None, crc32c(_json(fields))):
            raise ValueError("its checksum is wrong")
        return QuorumState(
            epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields["leaderId"]),
            voted_for=int(fields["votedId"]),
            voted_directory=decode_uuid(fields["votedDirectoryId"]),
            directory_id=decode_uuid(fields["directoryId"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{path} is not a quorum state ({error!r})"
        raise CheckpointError(f"{problem}: {unknown_vote(data_dir)}") from error


def unknown_vote(data_dir: Path) -> str:
    """Returns what follows for a controller, and its way out."""
    return f"this controller cannot know whom it voted for; {empty_controller(data_dir)}"


def empty_controller(data_dir: Path) -> str:
    """The way out of a controller whose votes or acknowledgements are in doubt. In a combined node it has a
    directory of its own, inside the broker's."""
    return f"empty {data_dir}, and nothing beside it, only while a majority of the other controllers is up"


def read_properties(path: Path) -> dict[str, str]:
    """``name=value`` lines; {} when there is no file. Raises CheckpointError."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not text ({error.reason})") from error
    content, _, checksum = text.rpartition(f"\n{_CHECKSUM}=")
    if _CHECKSUM in text and checksum != f"{crc32c(content.encode())}\n":
        raise CheckpointError(f"{path}: its checksum is wrong")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs if name != _CHECKSUM}


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    content = "\n".join(f"{name}={value}" for name, value in properties.items())
    replace_file(path, f"{content}\n{_CHECKSUM}={crc32c(content.encode())}\n".encode())


def read_topic_id(partition_dir: Path) -> UUID | None:
    """Reads the topic id from partition.metadata; None when it is missing or unreadable."""
    try:
        text = (partition_dir / PARTITION_METADATA_FILE).read_bytes().decode()
        content, _, checksum = text.partition(f"\n{_CHECKSUM}: ")
        if checksum and int(checksum) != crc32c(content.encode()):
            return None
        return decode_uuid(
            next(
                line.partition(":")[2].strip()
                for line in content.splitlines()
                if line.startswith("topic_id:")
            )
        )
    except (FileNotFoundError, UnicodeDecodeError, StopIteration, ValueError):
        return None


def write_topic_id(partition_dir: Path, topic_id: UUID, *, durable: bool = True) -> None:
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    checked = f"{text}\n{_CHECKSUM}: {crc32c(text.encode())}"
    replace_file(partition_dir / PARTITION_METADATA_FILE, checked.encode(), durable=durable)

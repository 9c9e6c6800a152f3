"""The content of a snapshot of the metadata log: the records that build its image from nothing (KIP-630).

Ordinary record batches, their offsets counted from 0, between a header and a footer. Each batch has its CRC,
the footer says how many records there are, the header which snapshot it is: a file that lacks a piece, has
one of another or has a wrong bit in it is no snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from wrackline.broker.model.batches import batch
from wrackline.broker.model.metadata.image import ClusterImage, ImageError, PartitionImage
from wrackline.broker.model.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
    decode,
    encode,
)
from wrackline.broker.model.types import SnapshotId

_VERSION = 0
_BATCH_RECORDS = 500


def write(image: ClusterImage, snapshot: SnapshotId, now_ms: float) -> bytes:
    """``image`` as it was after the record at ``snapshot.end_offset - 1``."""
    assert image.metadata_offset == snapshot.end_offset - 1, "an image of another place in the log"
    header = {"version": _VERSION, **snapshot._asdict(), "controller_id": image.controller_id}
    values = [_control("SnapshotHeader", header), *map(encode, _records(image))]
    values.append(_control("SnapshotFooter", {"records": len(values) - 1}))
    return b"".join(
        batch.build(values[at : at + _BATCH_RECORDS], at, snapshot.epoch, int(now_ms))
        for at in range(0, len(values), _BATCH_RECORDS)
    )


def _control(kind: str, fields: dict[str, int]) -> bytes:
    return json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()


def _records(image: ClusterImage) -> Iterator[MetadataRecord]:
    """Yields records in the order in which the image hands its parts out, which is the log's: decisions hang
    on it."""
    for name, level in image.features.items():
        yield FeatureLevelRecord(name, level)
    if image.zk_migration:
        yield ZkMigrationStateRecord(image.zk_migration)
    for (kind, resource), settings in image.configs.items():
        for name, value in settings.items():
            yield ConfigRecord(kind, resource, name, value)
    if image.next_producer_id:
        yield ProducerIdsRecord(-1, -1, image.next_producer_id)
    for broker in image.brokers.values():
        yield RegisterBrokerRecord(
            broker.id,
            broker.incarnation,
            broker.epoch,
            broker.host,
            broker.port,
            broker.rack,
            broker.fenced,
            broker.in_controlled_shutdown,
            broker.registration_offset,
            tuple(broker.levels),
            broker.from_zookeeper,
            broker.replication_port,
        )
    for topic in image.topics_by_name.values():
        yield TopicRecord(topic.name, topic.topic_id)
        yield from map(_partition, topic.partitions.values())


def _partition(partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition.tp.partition,
        topic_id=partition.topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        adding_replicas=partition.adding,
        removing_replicas=partition.removing,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        leader_recovery_state=partition.leader_recovery_state,
    )


def read(data: bytes, snapshot: SnapshotId) -> ClusterImage:
    """The image. Raises ValueError (also CorruptBatch, ImageError) where ``data`` is not this snapshot,
    whole."""
    values = _values(data)
    try:
        header = json.loads(next(values, b"{}"))
        result = header["version"], header["end_offset"], header["epoch"]
        controller_id = int(header["controller_id"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it does not begin with the header of a snapshot ({error!r})") from error
    if header.get("type") != "SnapshotHeader" or result != (_VERSION, *snapshot):
        raise ValueError(f"its header is of another snapshot or version: {result}")
    image, last = ClusterImage(controller_id=controller_id), b""
    count = 0
    for value in values:
        if last:
            image.put(decode(last), snapshot.end_offset - 1)
            count += 1
        last = value
    if not last or last != _control("SnapshotFooter", {"records": count}):
        raise ValueError(f"its last record is no footer that speaks of {count} records")
    image.metadata_offset = snapshot.end_offset - 1
    return image


def _values(data: bytes) -> Iterator[bytes]:
    at = 0
    for header, whole in batch.split(data):
        if not batch.crc_is_right(header, whole):
            raise batch.CorruptBatch(f"the checksum of the batch at {header.base_offset} is wrong")
        if header.base_offset != at:
            raise ImageError(f"a batch at {header.base_offset} where {at} is due")
        at = header.last_offset + 1
        yield from (value for _, value in batch.values_of(header, whole))

"""The workload ``compact``: what ``log`` does, with few keys and a topic that is compacted.

A record may be gone once its partition has a later one of the same key; the last of a key may not, unless it
is a tombstone: then there is either the tombstone or nothing. The key
follows from the value, so whoever reads a record back knows whether it came under its own key.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wrackline.history.model import parts_of
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import MILLISECONDS
from wrackline.workloads.clients.settings import PatientClientSettings
from wrackline.workloads.log import AppendingSpec, AppendingWorkload
from wrackline.workloads.log.spec import compacted_topic, key_among


class CompactSpec(AppendingSpec):
    """Settings of the workload ``compact``."""

    name: Literal["compact"] = "compact"
    """Clients send records with keys to a topic that is compacted."""
    idempotence: bool = True
    """Brokers drop what a producer sends again."""
    client: PatientClientSettings = PatientClientSettings()
    """Deadlines and other settings of the clients."""
    records_per_op: Literal[1] = 1
    """Each operation sends one record, of one key."""
    keys: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    """Of each partition."""
    segment_ms: Annotated[int, Field(ge=100, le=86_400_000), MILLISECONDS] = 2_000
    """How old a segment may become before the next one is begun: only segments that have ended are
    compacted."""

    delete_keys: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the sends that delete their key: the record is a tombstone, whose value is null."""
    delete_retention_ms: Annotated[int, Field(ge=0, le=86_400_000), MILLISECONDS] = 15_000
    """``delete.retention.ms``: how long a tombstone stays after it was compacted. A final read that takes
    longer may miss it, and be given an older record of the key before that."""

    @property
    def tombstones(self) -> float:
        return self.delete_keys

    @property
    def needs(self) -> frozenset[Capability]:
        return super().needs | {Capability.COMPACTION}

    @property
    def topic_configs(self) -> dict[str, str]:
        return compacted_topic(self.segment_ms) | {"delete.retention.ms": str(self.delete_retention_ms)}

    @property
    def contiguous(self) -> bool:
        return False

    @property
    def compacted(self) -> bool:
        return True

    def key_of(self, partition: int, value: int) -> bytes:
        process, counter, _ = parts_of(value)
        return key_among(self.keys, partition, process, counter)


class CompactWorkload(AppendingWorkload):
    settings = CompactSpec

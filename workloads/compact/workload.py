"""The workload ``compact``: what ``log`` does, with few keys and a topic that is compacted.

A record may be gone once its partition has a later one of the same key; the last of a key may not. The key
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

    @property
    def needs(self) -> frozenset[Capability]:
        return super().needs | {Capability.COMPACTION}

    @property
    def topic_configs(self) -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "segment.ms": str(self.segment_ms),
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": str(self.segment_ms),
        }

    @property
    def contiguous(self) -> bool:
        return False

    @property
    def compacted(self) -> bool:
        return True

    def key_of(self, partition: int, value: int) -> bytes:
        process, counter, _ = parts_of(value)
        number = (process * 0x9E3779B1 ^ counter * 0x85EBCA77) % 0xFFFFFFFB % self.keys
        return f"k{partition}-{number}".encode()


class CompactWorkload(AppendingWorkload):
    settings = CompactSpec

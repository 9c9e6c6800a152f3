"""The settings of the workload ``streams`` in a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from wrackline.history.model import parts_of
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import MILLISECONDS, SECONDS
from wrackline.workloads.clients.settings import PatientClientSettings
from wrackline.workloads.clients.versions import KAFKA_STREAMS, NEWEST
from wrackline.workloads.log.spec import AppendingSpec
from wrackline.workloads.payload import MAX_BYTES, OVERHEAD

STATE_BYTES = 8
"""The count behind the head of an output's payload."""
Protocol = Literal["classic", "streams"]
EverySeconds = Annotated[float, Field(ge=0, le=86_400), SECONDS]


class StreamsClientSettings(PatientClientSettings):
    """Deadlines of the clients, which are of the application's own version."""

    library: Literal["java"] = "java"
    """The application runs with Kafka's own library."""


class StreamsSpec(AppendingSpec):
    """Settings of the workload ``streams``."""

    name: Literal["streams"] = "streams"
    """An application of Kafka Streams turns the first topic into the second."""
    rate: Annotated[float, Field(ge=0)] = 60
    """Operations per second of all kinds together; 0: as fast as the clients can."""
    idempotence: bool = True
    """Brokers drop what a producer sends again."""
    record_bytes: Annotated[int, Field(ge=OVERHEAD + STATE_BYTES, le=MAX_BYTES)] = 128
    """Size of a record's value."""
    client: StreamsClientSettings = StreamsClientSettings()
    """Deadlines and other settings of the clients."""
    records_per_op: Literal[1] = 1
    """Each operation sends one record."""
    instances: Annotated[int, Field(ge=1, le=20)] = 2
    """Processes of the application, each a JVM."""
    threads: Annotated[int, Field(ge=1, le=20)] = 1
    """``num.stream.threads`` of each."""
    protocol: Protocol = "classic"
    """``group.protocol``; ``streams`` is that of KIP-1071."""
    migrate_after_s: EverySeconds = 0
    """After so many seconds all instances stop, and start with the other ``group.protocol`` when nobody is in
    the group any more (an offline migration, KIP-1071); 0: never."""
    store: Literal["memory", "rocksdb"] = "memory"
    """The kind of state store. Its changelog is a topic in both cases."""
    standbys: Annotated[int, Field(ge=0, le=5)] = 0
    """``num.standby.replicas``."""
    commit_ms: Annotated[int, Field(ge=10, le=60_000), MILLISECONDS] = 200
    """``commit.interval.ms``: how long a transaction of the application lasts."""
    transaction_timeout_ms: Annotated[int, Field(ge=1_000, le=900_000), MILLISECONDS] = 10_000
    """``transaction.timeout.ms`` of the application's producers."""
    session_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000), MILLISECONDS] = 6_000
    """Without a heartbeat for so long an instance is out of its group. With ``protocol: streams`` the
    brokers' own setting counts."""
    crash_every_s: EverySeconds = 20
    """On average, after so many seconds an instance is killed (kill -9); 0: never."""
    leave_every_s: EverySeconds = 40
    """On average, after so many seconds an instance is stopped (SIGTERM); 0: never."""
    pause_every_s: EverySeconds = 30
    """On average, after so many seconds an instance is halted (SIGSTOP); 0: never."""
    away_ms: Annotated[int, Field(ge=0, le=600_000), MILLISECONDS] = 8_000
    """At most: how long it is before an instance goes on, or another takes its place."""
    catch_up_s: Annotated[float, Field(gt=0, le=3_600), SECONDS] = 90
    """How long the application may take, after healing, to process all that it was sent."""

    @property
    def needs(self) -> frozenset[Capability]:
        own = {Capability.TRANSACTIONS, Capability.GROUPS, Capability.COMPACTION, Capability.STREAMS}
        if "streams" in self.protocols:
            own.add(Capability.STREAMS_PROTOCOL)
        return super().needs | own

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """Returns those that the application takes part by, one after another."""
        if not self.migrate_after_s:
            return (self.protocol,)
        return ("classic", "streams") if self.protocol == "classic" else ("streams", "classic")

    @property
    def isolation(self) -> str:
        return "read_committed"

    @property
    def contiguous(self) -> bool:
        return False

    @property
    def patience_s(self) -> float:
        return super().patience_s + self.catch_up_s

    def lanes(self, f: str, topics: Mapping[str, int]) -> int:
        """Clients send to the first topic alone."""
        return next(iter(topics.values())) if f == "send" else super().lanes(f, topics)

    def source_of(self, topics: Mapping[str, int]) -> dict[str, str]:
        first, second = topics
        return {second: first}

    def misfits(self, topics: Mapping[str, int]) -> Iterator[str]:
        if len(topics) != 2 or len(set(topics.values())) != 1:
            given = ", ".join(f"{name} with {partitions}" for name, partitions in topics.items())
            yield (
                "name streams takes two topics with as many partitions each, input and output: "
                "`topics: [{name: log, partitions: 4}, {name: log-out, partitions: 4}]`, not "
                f"{given}"
            )
        if "streams" in self.protocols and KAFKA_STREAMS.line_of(self.client.version or NEWEST) < (4, 2):
            yield f"protocol streams needs client.version 4.2.0 or newer, not {self.client.version}"

    def key_of(self, partition: int, value: int) -> bytes:  # noqa: ARG002
        """The logical process that sent it: what the application counts is that of one process."""
        return b"p%d" % parts_of(value)[0]

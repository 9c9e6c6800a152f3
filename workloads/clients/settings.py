"""The settings of the clients of any workload in a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from wrackline.plugins.fields import MILLISECONDS, Strict, in_milliseconds
from wrackline.workloads.clients.properties import ALLOWED, refusal
from wrackline.workloads.clients.versions import KAFKA_CLIENTS, LIBRDKAFKA, NEWEST


class ClientSettings(Strict):
    """Deadlines of the clients, short so that a fault shows as errors and not as silence. Milliseconds."""

    library: Literal["librdkafka", "java"] = "librdkafka"
    """What the clients are made with: confluent-kafka, which is librdkafka, or Kafka's own kafka-clients in a
    JVM."""
    version: str = ""
    """With ``library: java`` that of kafka-clients: by default the version of the system where it is Apache
    Kafka, else the newest that is known. With ``library: librdkafka`` that of confluent-kafka, which brings
    the librdkafka of the same number: by default the one that Wrackline is installed with."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """How producers compress their batches."""
    message_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 3_000
    """How long a record may take from being handed to the client to its delivery report."""
    request_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 2_500
    """How long a broker may wait for the other replicas (acks=all)."""
    socket_timeout_ms: Annotated[int, Field(ge=1_500, le=300_000), MILLISECONDS] = 4_000
    """How long a request may take."""
    rack: str = ""
    """Where consumers stand (``client.rack``): they may be sent to the replica in this rack."""
    linger_ms: Annotated[float, Field(ge=0, le=10_000), MILLISECONDS] = 0
    """How long a record waits for others that are sent in the same batch."""
    retries: Annotated[int, Field(ge=0)] = 0
    """How often the client itself retries. It is 0, so that an error code is about the first try; with
    idempotence the client always retries, until the message timeout."""
    poll_ms: Annotated[int, Field(ge=1, le=60_000), MILLISECONDS] = 100
    """How long a poll waits for records."""
    poll_records: Annotated[int, Field(ge=1, le=10_000)] = 500
    """How many records a poll takes at most."""
    fetch_wait_max_ms: Annotated[int, Field(ge=0, le=60_000), MILLISECONDS] = 100
    """How long a broker may wait before it answers a fetch that finds no records."""
    end_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 2_000
    """How long a request for an end offset may take."""
    librdkafka: Annotated[
        dict[str, str | int | float | bool],
        # Not in its repr: what clients are let in with stands here while a run goes on.
        Field(repr=False, json_schema_extra={"propertyNames": {"enum": sorted(ALLOWED)}}),
    ] = Field(default_factory=dict)
    """Other properties of librdkafka, as they are (wrackline.workloads.clients.properties says which); these
    win."""

    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "request_timeout_ms": lambda one: min(one.request_timeout_ms, one.message_timeout_ms),
        "message_timeout_ms": lambda one: max(one.message_timeout_ms, one.request_timeout_ms),
    }

    @field_validator("librdkafka")
    @classmethod
    def _that_do_no_harm(
        cls, given: dict[str, str | int | float | bool]
    ) -> dict[str, str | int | float | bool]:
        for name in given:
            if why := refusal(name):
                raise ValueError(f"{name}: {why}")
        return in_milliseconds(given)

    @model_validator(mode="after")
    def _of_one_library(self) -> Self:
        if self.library == "java" and self.librdkafka:
            raise ValueError("librdkafka: these are properties of another library than java; leave them out")
        if self.library == "java":
            KAFKA_CLIENTS.check(self.version or NEWEST)
        elif self.version:
            if LIBRDKAFKA.line_of(self.version) >= (3, 0):
                raise ValueError(f"version {self.version} is one of kafka-clients, which need library: java")
            LIBRDKAFKA.check(self.version)
        return self


class PatientClientSettings(ClientSettings):
    """Deadlines of idempotent producers that try again until a fault is over.

    When a record's time is over, librdkafka takes a new producer epoch and sends what else is under way once
    more, though it may be in the log: then a record can be there twice, and the brokers cannot know."""

    message_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 20_000
    """How long a record may take from being handed to the client to its delivery report, with all tries."""
    request_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 1_500
    """How long a broker may wait for the other replicas (acks=all)."""
    socket_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000), MILLISECONDS] = 2_000
    """How long a request may take; then the client tries again."""

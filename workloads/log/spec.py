"""What a specification may say of the workload ``log``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.generators import Spacing
from workloads.payload import MAX_BYTES, OVERHEAD


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClientSettings(_Strict):
    """Deadlines of the clients, short so that a fault shows as errors and not as silence. Milliseconds."""

    message_timeout_ms: Annotated[int, Field(ge=100, le=300_000)] = 3_000
    """How long a record may take from being handed to the client to its delivery report."""
    request_timeout_ms: Annotated[int, Field(ge=100, le=300_000)] = 2_500
    """How long a broker may wait for the other replicas (acks=all)."""
    socket_timeout_ms: Annotated[int, Field(ge=1_500, le=300_000)] = 4_000
    linger_ms: Annotated[float, Field(ge=0, le=10_000)] = 0
    retries: Annotated[int, Field(ge=0)] = 0
    """Of the client itself. 0, so that an error code is about the first try and tells what happened; with
    idempotence the client always retries, until the message timeout."""
    poll_ms: Annotated[int, Field(ge=1, le=60_000)] = 100
    poll_records: Annotated[int, Field(ge=1, le=10_000)] = 500
    fetch_wait_max_ms: Annotated[int, Field(ge=0, le=60_000)] = 100
    end_timeout_ms: Annotated[int, Field(ge=100, le=300_000)] = 2_000
    librdkafka: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Any other property of librdkafka, as it is; these win."""


class Mix(_Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 8
    poll: Annotated[float, Field(ge=0)] = 3
    end: Annotated[float, Field(ge=0)] = 1


class LogSpec(_Strict):
    name: Literal["log"] = "log"
    duration_s: Annotated[float, Field(gt=0, le=86_400)] = 60
    """Of the main phase, in which the nemesis acts."""
    rate: Annotated[float, Field(ge=0)] = 200
    """Operations per second of all kinds together; 0: as fast as the clients can."""
    spacing: Spacing = Spacing.FIXED
    mix: Mix = Mix()
    senders: Annotated[int, Field(ge=0, le=200)] = 6
    pollers: Annotated[int, Field(ge=0, le=200)] = 2
    enders: Annotated[int, Field(ge=0, le=200)] = 1
    acks: Literal[0, 1, "all"] = "all"
    idempotence: bool = False
    record_bytes: Annotated[int, Field(ge=OVERHEAD, le=MAX_BYTES)] = 128
    records_per_op: Annotated[int, Field(ge=1, le=1_000)] = 1
    """At most: each operation sends one to this many records, to one partition."""
    reassign_every: Annotated[int, Field(ge=0)] = 40
    """On average, after so many polls a consumer takes other partitions or another position; 0: never."""
    client: ClientSettings = ClientSettings()

    @property
    def concurrency(self) -> int:
        return self.senders + self.pollers + self.enders

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each kind that has a process to do it."""
        there = {"send": self.senders, "poll": self.pollers, "end": self.enders}
        weights = {"send": self.mix.send, "poll": self.mix.poll, "end": self.mix.end}
        return {f: weight for f, weight in weights.items() if there[f] and weight > 0}

    @model_validator(mode="after")
    def _something_to_do(self) -> LogSpec:
        if not self.weights:
            raise ValueError(
                "no operation is left: give at least one of senders, pollers, enders a process and a weight"
            )
        if self.idempotence and self.acks != "all":
            raise ValueError("idempotence needs acks: all")
        if self.client.request_timeout_ms > self.client.message_timeout_ms:
            raise ValueError("client.request_timeout_ms must not be more than client.message_timeout_ms")
        return self

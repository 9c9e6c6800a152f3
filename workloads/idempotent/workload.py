"""The workload ``idempotent``: in ``log`` a client says how its first try went; here it tries until it
succeeds, and the brokers must drop what came twice and keep what came in order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wrackline.plugins.fields import MILLISECONDS
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.log import AppendingSpec, AppendingWorkload


class PatientClientSettings(ClientSettings):
    """Deadlines of clients that try again until a fault is over."""

    message_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 20_000
    """How long a record may take from being handed to the client to its delivery report, with all tries."""
    request_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 1_500
    """How long a broker may wait for the other replicas (acks=all)."""
    socket_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000), MILLISECONDS] = 2_000
    """How long a request may take; then the client tries again."""


class IdempotentSpec(AppendingSpec):
    """Settings of the workload ``idempotent``."""

    name: Literal["idempotent"] = "idempotent"
    """Idempotent producers send, and try again for long."""
    acks: Literal["all"] = "all"
    """Idempotent producers wait for all replicas in the ISR."""
    idempotence: Literal[True] = True
    """Brokers drop what a producer sends again."""
    client: PatientClientSettings = PatientClientSettings()
    """Deadlines and other settings of the clients."""


class IdempotentWorkload(AppendingWorkload):
    settings = IdempotentSpec

"""The workload ``idempotent``: in ``log`` a client says how its first try went; here it tries until it
succeeds, and the brokers must drop what came twice and keep what came in order."""

from __future__ import annotations

from typing import Literal

from wrackline.workloads.clients.settings import PatientClientSettings
from wrackline.workloads.log import AppendingSpec, AppendingWorkload


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

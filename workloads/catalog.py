"""The workloads by name: what a specification may ask for, and who performs it."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.workloads.log import ClientsSpec, LogSpec, LogWorkload, Workload
from wrackline.workloads.queue import QueueSpec, QueueWorkload
from wrackline.workloads.register import RegisterSpec, RegisterWorkload

WORKLOADS: Mapping[type[ClientsSpec], type[Workload]] = {
    LogSpec: LogWorkload,
    RegisterSpec: RegisterWorkload,
    QueueSpec: QueueWorkload,
}
AnySpec = LogSpec | RegisterSpec | QueueSpec


def workload_for(spec: ClientsSpec) -> type[Workload]:
    """The workload that a specification asks for."""
    return WORKLOADS[type(spec)]

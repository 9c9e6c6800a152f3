"""Workload ``log``: producers append to a partitioned log, consumers read it, others ask where it ends."""

from wrackline.workloads.log.spec import AppendingSpec, ClientsSpec, LogSpec
from wrackline.workloads.log.workload import AppendingWorkload, LogWorkload, Workload, workload_for

__all__ = [
    "AppendingSpec",
    "AppendingWorkload",
    "ClientsSpec",
    "LogSpec",
    "LogWorkload",
    "Workload",
    "workload_for",
]

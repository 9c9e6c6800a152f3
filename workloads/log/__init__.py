"""Workload ``log``: producers append to a partitioned log, consumers read it, others ask where it ends."""

from workloads.log.spec import ClientsSpec, LogSpec
from workloads.log.workload import LogWorkload, Workload

__all__ = ["ClientsSpec", "LogSpec", "LogWorkload", "Workload"]

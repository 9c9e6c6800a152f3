"""Workload ``log``: producers append to a partitioned log, consumers read it, others ask where it ends."""

from wrackline.workloads.log.spec import ClientsSpec, LogSpec
from wrackline.workloads.log.workload import LogWorkload, Workload, workload_for

__all__ = ["ClientsSpec", "LogSpec", "LogWorkload", "Workload", "workload_for"]

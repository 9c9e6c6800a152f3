"""Workload ``log``: producers append to a partitioned log, consumers read it, others ask where it ends."""

from workloads.log.spec import LogSpec
from workloads.log.workload import LogWorkload

__all__ = ["LogSpec", "LogWorkload"]

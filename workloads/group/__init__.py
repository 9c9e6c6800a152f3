"""Workload ``group``: producers, and a consumer group whose members come, commit, leave and crash."""

from wrackline.workloads.group.spec import GroupSpec
from wrackline.workloads.group.workload import GroupWorkload

__all__ = ["GroupSpec", "GroupWorkload"]

"""Workload ``share``: producers, and share groups whose members acquire, acknowledge, hold, leave and
crash (KIP-932)."""

from wrackline.workloads.share.spec import ShareSpec
from wrackline.workloads.share.workload import ShareWorkload

__all__ = ["ShareSpec", "ShareWorkload"]

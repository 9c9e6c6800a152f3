"""Workload ``queue``: each partition is a FIFO queue; sending enqueues, and one shared position is its head."""

from workloads.queue.spec import QueueSpec
from workloads.queue.workload import QueueWorkload

__all__ = ["QueueSpec", "QueueWorkload"]

"""Workload ``queue``: each partition is a FIFO queue; sending enqueues, and one shared position is its
head."""

from wrackline.workloads.queue.spec import QueueSpec
from wrackline.workloads.queue.workload import QueueWorkload

__all__ = ["QueueSpec", "QueueWorkload"]

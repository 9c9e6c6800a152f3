"""Workload ``streams``: an application of Kafka Streams with exactly-once turns one topic into another."""

from wrackline.workloads.streams.spec import StreamsSpec
from wrackline.workloads.streams.workload import StreamsWorkload

__all__ = ["StreamsSpec", "StreamsWorkload"]

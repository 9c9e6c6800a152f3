"""Metrics of a broker's replicas, counted when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.metric import Metric


def replica_metrics(replicas: Iterable[Replica]) -> tuple[Metric, ...]:
    here = list(replicas)
    led = [(each, each.leader.isr) for each in here if each.leader is not None]
    counts = {
        "partition_count": (len(here), "Replicas on this broker."),
        "leader_count": (len(led), "Partitions that this broker leads."),
        "under_replicated_partition_count": (
            sum(len(isr) < len(each.replicas) for each, isr in led),
            "Partitions led here whose ISR lacks a replica.",
        ),
        "under_min_isr_partition_count": (
            sum(len(isr) < each.min_isr for each, isr in led),
            "Partitions led here whose ISR is smaller than min.insync.replicas: acks=all is refused.",
        ),
        "offline_replica_count": (
            sum(each.failed for each in here),
            "Replicas here whose records cannot be used.",
        ),
        "producer_count": (
            sum(len(each.log.producers) for each in here),
            "Idempotent producers that the logs here remember, one for each log that it wrote to.",
        ),
    }
    return tuple(Metric(name, "gauge", text, {"": value}) for name, (value, text) in counts.items())

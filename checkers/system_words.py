"""What decides over losing data, in the words of the system that was tested: whoever reads a verdict knows
that system's settings, and not ours."""

from __future__ import annotations

from wrackline.history.model import RunInfo

KAFKA = "apache-kafka"
FLUSHED = "every-write"
ELR = "eligible.leader.replicas.version"
_OF_KRAFT = "metadata.version"
"""A feature that every cluster of Apache Kafka in KRaft mode has."""


def is_kafka(info: RunInfo) -> bool:
    """Whether Apache Kafka was tested: as the specification says, or as the cluster reports."""
    return info.system_kind == KAFKA or _OF_KRAFT in info.features


def recovery(info: RunInfo) -> str:
    """How a leader is found when no clean one is left. Kafka with eligible leader replicas (KIP-966) then
    elects the last known leader, without them nobody."""
    if not is_kafka(info):
        return info.recovery_strategy
    return "last-known-leader" if info.features.get(ELR, 0) else "none"


def elections(info: RunInfo) -> str:
    """Who may be elected, and how it was decided."""
    if not is_kafka(info):
        return f"unclean election {'on' if info.unclean_election else 'off'}, recovery {recovery(info)}"
    elr = f"{ELR}={info.features.get(ELR, 0)}" if info.features else f"{ELR} is not on record"
    unclean = f"unclean.leader.election.enable={'true' if info.unclean_election else 'false'}"
    return f"{unclean}, {elr}, recovery {recovery(info)}"


def flushing(info: RunInfo) -> str:
    """When records are synced."""
    if not is_kafka(info):
        return f"flush mode {info.flush_mode}"
    if info.flush_mode == FLUSHED:
        return "flush.messages=1: every write is synced before it counts"
    return "flush.messages is not 1: the kernel alone decides when records reach the disk"


def version(info: RunInfo) -> str:
    """``kafka-4.4.0``; of ours with its profile."""
    return info.system + (f", profile {info.profile}" if info.profile else "")


def features(info: RunInfo) -> str:
    """``metadata.version 33, transaction.version 2``; empty where there are none."""
    return ", ".join(f"{name} {level}" for name, level in sorted(info.features.items()))

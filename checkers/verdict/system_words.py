"""The settings that decide over losing data, in the words of the system that was tested: readers of a
verdict know that system's settings, and not ours."""

from __future__ import annotations

from wrackline.history.model import RunInfo

KAFKA = "apache-kafka"
FLUSHED = "every-write"
ELR = "eligible.leader.replicas.version"
_OF_KRAFT = "metadata.version"
"""A feature that every cluster of Apache Kafka in KRaft mode has."""
_TRANSACTIONS = "transaction.version"
_ROWS = {
    "unclean election and proactive recovery off": "unclean.leader.election.enable=false",
    "unclean election or proactive recovery on": "unclean.leader.election.enable=true",
}
"""What the table of contracts calls it -> Kafka's setting."""


def is_kafka(info: RunInfo) -> bool:
    """Tells whether Apache Kafka was tested: as the specification says, or as the cluster reports."""
    return info.system_kind == KAFKA or _OF_KRAFT in info.features


def recovery(info: RunInfo) -> str:
    """Names the way in which a leader is found when no clean one is left. Kafka with eligible leader
    replicas (KIP-966) then elects the last known leader, without them nobody."""
    if not is_kafka(info):
        return info.recovery_strategy
    return "last-known-leader" if info.features.get(ELR, 0) else "none"


def elections(info: RunInfo) -> str:
    """Says which replicas may be elected, and which settings decide it."""
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


def system(info: RunInfo) -> str:
    """``Apache Kafka 4.4.0``; of other systems their own name."""
    return f"Apache Kafka {info.system_version}" if is_kafka(info) and info.system_version else info.system


def client(info: RunInfo) -> str:
    """``librdkafka 2.16.0, which speaks EndTxn v1``; empty where it is not on record."""
    library = str(info.client.get("library", ""))
    if not library:
        return ""
    name = f"{'the Java client' if library == 'java' else library} {info.client.get('version', '')}".strip()
    ends = info.client.get("end_txn_version")
    return name if ends is None else f"{name}, which speaks EndTxn v{ends}"


def pair(info: RunInfo) -> str:
    """Names client and system: ``with librdkafka 2.16.0, which speaks EndTxn v1, on Apache Kafka 4.4.0
    (transaction.version 2)``. A broker that handles transactions rightly with one client may not with an
    older one. Empty where neither client nor kind of system is on record."""
    who, where = client(info), system(info) if info.system_kind else ""
    level = info.features.get(_TRANSACTIONS)
    if where and level is not None:
        where += f" ({_TRANSACTIONS} {level})"
    if not who:
        return f"on {where}" if where else ""
    comma = "," if "," in who else ""
    return f"with {who}" + (f"{comma} on {where}" if where else "")


def row(text: str, info: RunInfo) -> str:
    """A row of the table of contracts (wrackline.checkers.verdict.contracts)."""
    if is_kafka(info):
        for ours, theirs in _ROWS.items():
            text = text.replace(ours, theirs)
    return text

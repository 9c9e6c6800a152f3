"""Capabilities of a system beyond a plain log, which a workload may need."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """A capability that a system may offer and a workload may need."""

    IDEMPOTENCE = "idempotence"
    """Producers whose records are numbered, so that one that is sent twice is written once."""
    TRANSACTIONS = "transactions"
    GROUPS = "groups"
    """Consumer groups, and offsets that they commit."""
    CONSUMER_PROTOCOL = "consumer protocol"
    """Groups by KIP-848 (``group.protocol: consumer``)."""
    SHARE_GROUPS = "share groups"
    """Groups whose members acquire records and acknowledge each of them (KIP-932)."""
    DELIVERY_LIMITS = "delivery limits of groups"
    """Each share group may have a limit of its own (``share.delivery.count.limit``)."""
    DELETE_RECORDS = "DeleteRecords"
    """Clients delete records from the beginning of a log (KIP-107)."""
    FOLLOWER_FETCHING = "follower fetching"
    """Consumers of a rack read from the replica in it (KIP-392)."""
    COMPACTION = "compaction"
    """Topics with ``cleanup.policy=compact``."""

    STREAMS = "applications of Kafka Streams"
    """They make topics of their own."""
    STREAMS_PROTOCOL = "streams protocol"
    """Groups by KIP-1071 (``group.protocol: streams``)."""


EVERYTHING = frozenset(Capability)

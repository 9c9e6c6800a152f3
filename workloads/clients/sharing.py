"""The interface between the workload ``share`` and a library with share groups (KIP-932), besides that of
`base`.

A member acquires records: it has each of them alone until it acknowledges it, or until the lock on it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from wrackline.workloads.clients.base import Client, Fetched, Settings

ACCEPT, RELEASE, REJECT, RENEW = "accept", "release", "reject", "renew"
FINAL = frozenset({ACCEPT, REJECT})
"""Kinds of acknowledgement after which a record is delivered no more."""


class Acquired(NamedTuple):
    """The records of one poll."""

    records: Sequence[Fetched]
    counts: Sequence[int]
    """The delivery count of each."""
    error: str | None
    age_s: float
    """So long before the poll began a record of it was acquired at the earliest: a client has records that
    the broker sent after its last poll had ended."""


class Lag(NamedTuple):
    """How far a group is in a partition."""

    start: int
    """Offset from which on records may be delivered yet."""
    lag: int
    """Records that are not final; -1: the cluster does not know."""


Acknowledged = Callable[[int, Sequence[int], str | None], None]
"""Is called with what became of acknowledgements, in a later call of the member: partition, offsets,
error."""


class ShareMember(Client, Protocol):
    """A member of a share group. Of one thread at a time."""

    def subscribe(self, topic: str, acknowledged: Acknowledged) -> None: ...

    def poll(self, timeout_s: float) -> Acquired:
        """Returns records that it acquired. Of a member that acknowledges implicitly this accepts what the
        poll before gave; of another one all of that must have been acknowledged."""

    def acknowledge(self, partition: int, offset: int, kind: str) -> None:
        """Says what became of a record of the last poll; a commit or the next poll sends it. Raises
        ClientError."""

    def commit(self) -> Mapping[int, str | None]:
        """Sends acknowledgements and waits: partition -> error. Raises ClientError."""

    def commit_later(self) -> None:
        """Sends acknowledgements and does not wait. Raises ClientError."""

    def crash(self) -> None:
        """End the client without a word to the brokers."""


class ShareGroups(Protocol):
    """The administration of share groups. Every call raises ClientError."""

    def configure(self, group: str, settings: Mapping[str, str]) -> None:
        """Gives a group settings by Kafka's names."""

    def delivery_limit(self, group: str) -> int:
        """How often a record may be delivered to the group."""

    def lags(self, group: str, topic: str) -> Mapping[int, Lag]:
        """Partition -> how far the group is; of those that it was ever in."""

    def close(self) -> None: ...


@runtime_checkable
class SharingLibrary(Protocol):
    """A library with share groups, besides all else."""

    def share_member(
        self, bootstrap: str, settings: Settings, group: str, *, explicit: bool
    ) -> ShareMember: ...

    def share_groups(self, bootstrap: str, settings: Settings) -> ShareGroups: ...

"""The interface between a workload and a client library: a few small protocols, and the values that they use.

A library's own errors, messages and callbacks stay on its side. Clients are made in the thread that has
entered the fleet's network, and their own threads stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple, Protocol

from wrackline.errors import InfrastructureError
from wrackline.history.values import dataclass
from wrackline.workloads.clients.outcomes import Outcome
from wrackline.workloads.clients.settings import ClientSettings


class ClientError(Exception):
    """A call of a client failed. The message is Kafka's name for the error, or the library's own
    (``_TIMED_OUT``)."""

    def __init__(
        self,
        name: str,
        *,
        fatal: bool = False,
        again: bool = False,
        must_abort: bool = False,
        said: str = "",
    ) -> None:
        super().__init__(name)
        self.name = name
        self.fatal = fatal
        """This client is of no further use."""
        self.again = again
        """The same call may be made again, and goes on where it was."""
        self.must_abort = must_abort
        """The transaction can only be aborted."""
        self.said = said
        """What the library says in its own words."""


class Unavailable(InfrastructureError):
    """The library cannot be used on this machine. One line: what is missing, and how to mend it."""


class RefusedSetting(Exception):
    """The library does not take a setting; the message is what it says of it."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be sent."""

    partition: int
    key: bytes
    payload: bytes
    timestamp_ms: int
    is_tombstone: bool = False
    """The value is null, and the payload stands in a header (wrackline.workloads.payload.HEADER)."""


class Fetched(NamedTuple):
    """A record that a consumer was given. ``leader_epoch`` is -1 where nobody told it; ``value`` of a
    tombstone is its header."""

    partition: int
    offset: int
    leader_epoch: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Polled:
    """The records and markers of one poll."""

    records: Sequence[Fetched]
    error: str | None
    """Name of the first error among it."""
    position_lost: bool
    """After that error the consumer has no position, and must be assigned one."""
    ended: Mapping[int, int]
    """Partition -> offset where the consumer met the end, if it was made with ``tell_end``."""
    followers: Mapping[int, int] = field(default_factory=dict)
    """Partition -> the follower that it is read from, where that is not the leader: as far as the library
    says it, of consumers in a rack."""


class Settings(Protocol):
    """The part of a workload's specification that is about its clients."""

    @property
    def acks(self) -> Literal[0, 1, "all"]: ...

    @property
    def idempotence(self) -> bool: ...

    @property
    def isolation(self) -> str:
        """``read_committed``, ``read_uncommitted``; empty where the workload has no transactions."""

    @property
    def membership(self) -> GroupSettings | None:
        """Returns how members take part; None where the workload has no group."""

    @property
    def sharing(self) -> bool:
        """Tells whether its clients are members of share groups."""

    @property
    def reset(self) -> str:
        """``auto.offset.reset`` of the consumers that the workload is about; empty: ``none``."""

    @property
    def client(self) -> ClientSettings: ...


class Client(Protocol):
    @property
    def broken(self) -> bool:
        """A fatal error: another client must take its place."""

    def close(self) -> None:
        """End the client, and drop what is queued. It may take seconds when a broker is silent."""


class Producer(Client, Protocol):
    """Sends operations of a few records, and gets the outcome of every record."""

    def begin(
        self, topic: str, records: Sequence[Outgoing], finished: Callable[[list[Outcome]], None]
    ) -> None:
        """Hand records over and return; ``finished`` is given one outcome per record, in order, once: by
        ``serve`` in the thread that calls it, or here when the client refused them all."""

    def serve(self, timeout_s: float) -> None:
        """Wait up to so long for delivery reports and pass them on. A record without one by its deadline is
        unknown. One thread at a time; another may call ``begin`` meanwhile."""

    def send(self, topic: str, records: Sequence[Outgoing]) -> list[Outcome]:
        """Send and wait: ``begin``, and ``serve`` until all is known."""


class Consumer(Client, Protocol):
    """Takes partitions by itself, unless it is a `Member`."""

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """Take these partitions (and no others) from these offsets on."""

    def poll(self, max_records: int | None = None, timeout_s: float | None = None) -> Polled:
        """Returns the records that are there by the timeout, without waiting for more once something came."""

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """(log start, end offset), asked of the leader now. Of a consumer of committed records the end is
        the last stable offset. Raises ClientError."""

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Partition -> committed offset of its group (-1: none), asked of the coordinator now. Raises
        ClientError."""

    @property
    def requires_stable(self) -> bool:
        """Tells whether ``committed`` asks for stable offsets (KIP-447)."""

    def coordinator(self) -> int:
        """Returns the node that the library takes for its group's coordinator; -1: it does not say."""


class Admin(Client, Protocol):
    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records below an offset; returns the low watermark that the leader answered. Raises
        ClientError."""


class TransactionalProducer(Producer, Protocol):
    """One transaction at a time. Every call raises ClientError."""

    def init_transactions(self, timeout_s: float) -> None:
        """Prepares the producer, once, before the first transaction. Whatever an earlier producer of the same
        transactional id had left open is ended by it."""

    def begin_transaction(self) -> None: ...

    def send_offsets(
        self, topic: str, offsets: Mapping[int, int], consumer: Consumer, timeout_s: float
    ) -> None:
        """Offsets of the consumer's group become part of the transaction. The consumer is of the same
        library."""

    def commit_transaction(self, timeout_s: float) -> None: ...

    def abort_transaction(self, timeout_s: float) -> None: ...


class Listener(Protocol):
    """Callbacks of a member of a group while it polls (or closes), in the thread that does so."""

    def assigned(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Tells the member that these partitions were given to it in addition to what it has. Gives the
        offsets to begin at; where it names none, the member goes on at what its group committed."""

    def revoked(self, partitions: Sequence[int]) -> None:
        """Tells the member that these partitions are taken away: the last moment to commit."""

    def lost(self, partitions: Sequence[int]) -> None:
        """Tells the member that these partitions are another's already."""

    def committed(self, error: str | None) -> None:
        """The asynchronous commit that was begun last is over."""


class Membership(NamedTuple):
    """``generation`` is -1 while it is no member. In the protocol of KIP-848 it is the member's own epoch."""

    member: str
    generation: int


class Member(Consumer, Protocol):
    """A consumer that its group tells what to read."""

    def subscribe(self, topic: str, listener: Listener) -> None: ...

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Synchronously. Raises ClientError."""

    def commit_later(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Asynchronously: ``Listener.committed`` is told, in a later poll. Raises ClientError when it was not
        even begun."""

    def membership(self) -> Membership: ...

    def crash(self) -> None:
        """End the client without leaving the group: no commit, no revoke, the coordinator is not told."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The way a member takes part in its group."""

    group: str
    protocol: str
    """``classic`` or ``consumer`` (KIP-848)."""
    assignor: str
    """``range``, ``roundrobin`` or ``cooperative-sticky``; with KIP-848 ``uniform`` or ``range``, which the
    broker has."""
    session_timeout_ms: int
    heartbeat_ms: int
    instance: str = ""
    """``group.instance.id``: the name of a static member."""


class Library(Protocol):
    """A client library. What it makes raises RefusedSetting for a setting that it does not take."""

    name: str
    """As in ``workload.client.library``."""

    @property
    def version(self) -> str: ...

    def locate(self) -> str:
        """Path of what it runs in on this machine. Starts nothing. Raises Unavailable."""

    def check(self, settings: Settings) -> None:
        """Checks that the library takes the settings and can be used here; connects nowhere. Raises
        RefusedSetting, Unavailable."""

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetch to this machine what it lacks, before a run makes hosts. Raises Unavailable."""

    def producer(self, bootstrap: str, settings: Settings) -> Producer: ...

    def transactional(
        self, bootstrap: str, settings: Settings, transactional_id: str, timeout_ms: int
    ) -> TransactionalProducer:
        """``timeout_ms``: ``transaction.timeout.ms``."""

    def consumer(
        self,
        bootstrap: str,
        settings: Settings,
        *,
        tell_end: bool = False,
        isolation: str | None = None,
        group: str = "",
        reset: str = "",
    ) -> Consumer:
        """``isolation`` wins over the settings'. ``group``: whose committed offsets it asks for and commits;
        it does not join it. ``reset``: ``auto.offset.reset``; empty: the loss of its position is an error."""

    def admin(self, bootstrap: str, settings: Settings) -> Admin: ...

    def member(self, bootstrap: str, settings: Settings, group: GroupSettings) -> Member: ...

    def end_txn_version(self, bootstrap: str, settings: Settings, topic: str, name: str) -> int | None:
        """The version of EndTxn that this library and this cluster agree on, seen in a transaction that is
        aborted and has no record (its transactional id and group are ``name``). None where it could not be
        seen."""

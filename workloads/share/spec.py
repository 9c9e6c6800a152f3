"""The settings of the workload ``share`` in a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from wrackline.plugins.acls import Acls, Resource, merged
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import MILLISECONDS, Strict
from wrackline.workloads.clients.settings import PatientClientSettings
from wrackline.workloads.clients.versions import KAFKA_CLIENTS, WITH_SHARE_GROUPS
from wrackline.workloads.log.spec import GROUP_ACLS, ClientsSpec
from wrackline.workloads.txn.spec import TxnSpec

Every = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
OPEN = 4
"""Acknowledgements that a member may have under way at a time, each a process of its own."""
_BUSY = 0.5
"""Share of their time that members poll, so that some are free while others hold records."""


class ShareClientSettings(PatientClientSettings):
    """Deadlines and other settings of the clients."""

    library: Literal["librdkafka", "java"] = "java"
    """What the clients are made with: ``java``; librdkafka has no share groups."""
    poll_records: Annotated[int, Field(ge=1, le=10_000)] = 20
    """How many records a poll takes at most."""

    @model_validator(mode="after")
    def _has_share_groups(self) -> Self:
        if self.library != "java":
            raise ValueError(f"{self.library} has no share groups: the workload share needs library java")
        if self.version and KAFKA_CLIENTS.line_of(self.version) < WITH_SHARE_GROUPS:
            raise ValueError(f"share groups need kafka-clients 4.2.0 or newer, not {self.version}")
        return self


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Weight = 1
    """Weight of sends, transactions among them."""
    acquire: Weight = 1
    """Weight of polls."""


class Answers(Strict):
    """Weights of the kinds of acknowledgements of members that acknowledge explicitly."""

    accept: Weight = 8
    """Weight of ACCEPT: the record was processed."""
    release: Weight = 2
    """Weight of RELEASE: it may be delivered again."""
    reject: Weight = 0.5
    """Weight of REJECT: it can never be processed."""
    renew: Weight = 0.5
    """Weight of RENEW: its lock begins anew, and it is acknowledged later."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.accept + self.reject:
            raise ValueError("accept or reject must have a weight, else no record is ever final")
        return self


class ShareSpec(ClientsSpec):
    name: Literal["share"] = "share"
    """Share groups read what producers send, and acknowledge each record."""
    rate: Annotated[float, Field(ge=0)] = 60
    """Operations per second of all kinds together; 0: as fast as the clients can."""
    idempotence: bool = True
    """Brokers drop what a producer sends again."""
    client: ShareClientSettings = ShareClientSettings()
    """Deadlines and other settings of the clients, which are Java's."""
    mix: Mix = Mix()
    """How often each kind of operation is done, compared with the others."""
    senders: Annotated[int, Field(ge=0, le=200)] = 2
    """Clients that send."""
    in_flight: Annotated[int, Field(ge=1, le=200)] = 8
    """Operations that one sender may have under way at a time, each a logical process of its own."""
    records_per_op: Annotated[int, Field(ge=1, le=1_000)] = 3
    """At most: each send is of one to this many records, to one partition."""
    transactors: Annotated[int, Field(ge=0, le=50)] = 1
    """Clients that send in transactions; each is three processes, as a worker of ``txn`` is."""
    aborts: Share = 0.5
    """Share of the transactions that are meant to be aborted."""
    partitions_per_txn: Annotated[int, Field(ge=2, le=50)] = 2
    """A transaction writes one record to each of so many partitions."""
    transaction_timeout_ms: Annotated[int, Field(ge=1_000, le=900_000), MILLISECONDS] = 10_000
    """After so long the coordinator aborts a transaction by itself (``transaction.timeout.ms``)."""
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """``share.isolation.level`` of the groups; the final read has it too."""
    groups: Annotated[int, Field(ge=1, le=20)] = 2
    """Share groups; each is given every record."""
    members: Annotated[int, Field(ge=1, le=50)] = 3
    """Of each group; each is five processes: one polls, the others acknowledge."""
    implicit_members: Annotated[int, Field(ge=0, le=50)] = 1
    """How many members of each group acknowledge implicitly: the next poll accepts what the last one gave
    (``share.acknowledgement.mode``)."""
    answers: Answers = Answers()
    """Weights of the kinds of acknowledgements."""
    sync_commits: Share = 0.5
    """Share of the acknowledgements that are sent by ``commitSync`` ..."""
    async_commits: Share = 0.25
    """... and by ``commitAsync``; the next poll sends the others."""
    lock_ms: Annotated[int, Field(ge=1_000, le=600_000), MILLISECONDS] | None = 3_000
    """So long a member has a record alone (``share.record.lock.duration.ms`` of the groups); null: what the
    cluster has. Clusters that are deployed here take a second or more, others 15 s by default."""
    delivery_limit: Annotated[int, Field(ge=2, le=10)] | None = None
    """How often a record is delivered to a group at most (``share.delivery.count.limit`` of the groups, which
    Kafka has since 4.3); null: what the brokers say (``group.share.delivery.count.limit``, 5)."""
    heartbeat_ms: Annotated[int, Field(ge=500, le=60_000), MILLISECONDS] | None = 1_000
    """How often a member says that it is there (``share.heartbeat.interval.ms`` of the groups); null: what
    the cluster has. Clusters that are deployed here take half a second or more, others 5 s by default."""
    session_timeout_ms: Annotated[int, Field(ge=3_000, le=300_000), MILLISECONDS] | None = 6_000
    """After so long without a heartbeat a member is put out of its group, and its partitions are given to
    others (``share.session.timeout.ms`` of the groups); null: what the cluster has. Clusters that are
    deployed here take three seconds or more, others 45 s by default."""
    hold_every: Every = 60
    """On average, after so many polls that brought records a member keeps them for longer than their lock
    lasts, and acknowledges them then; 0: never."""
    crash_every: Every = 300
    """On average, after so many polls a member crashes with the records that it has; 0: never."""
    leave_every: Every = 150
    """On average, after so many polls a member leaves its group with the records that it has; 0: never."""
    away_ms: Annotated[int, Field(ge=0, le=600_000), MILLISECONDS] = 1_000
    """At most: how long it is before another member takes the place of one that left or crashed."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        sending = self.senders * self.in_flight + self.transactors
        return {"send": (sending, self.mix.send), "acquire": (self.groups * self.members, self.mix.acquire)}

    @property
    def by_partition(self) -> frozenset[str]:
        return frozenset({"send"})

    @property
    def concurrency(self) -> int:
        sending = self.senders * self.in_flight + 3 * self.transactors
        return sending + (1 + OPEN) * self.groups * self.members

    @property
    def records_per_send(self) -> int:
        return self.records_per_op

    @property
    def poll_wait_s(self) -> float:
        return _BUSY * self._wait_s(self.groups * self.members, "acquire")

    @property
    def patience_s(self) -> float:
        """A member that holds records ends when it has acknowledged them."""
        transaction_s = 2 * self.transaction_timeout_ms / 1e3 if self.transactors else 0.0
        return super().patience_s + 2 * self.longest_lock_s + self.away_ms / 1e3 + transaction_s

    @property
    def longest_lock_s(self) -> float:
        """Returns how long a lock lasts; where the cluster decides, as long as Kafka's default."""
        return (self.lock_ms or 30_000) / 1e3

    @property
    def group_patience_s(self) -> float:
        """Returns how long a healthy group may take until nothing is left: the locks of members that held
        records end, and members that crashed are put out."""
        return 5 * self.longest_lock_s + self.longest_session_ms / 1e3

    @property
    def longest_session_ms(self) -> int:
        """Returns the session time-out; where the cluster decides, Kafka's default."""
        return self.session_timeout_ms or 45_000

    @property
    def needs(self) -> frozenset[Capability]:
        result = super().needs | {Capability.SHARE_GROUPS}
        if self.transactors:
            result |= {Capability.TRANSACTIONS}
        return result | ({Capability.DELIVERY_LIMITS} if self.delivery_limit is not None else set())

    @property
    def acls(self) -> Acls:
        more = {Resource.GROUP: ("DescribeConfigs", "AlterConfigs"), Resource.CLUSTER: ("DescribeConfigs",)}
        transactions = {Resource.TRANSACTIONAL_ID: ("Describe", "Write")} if self.transactors else {}
        return merged((super().acls, GROUP_ACLS, more, transactions))

    @property
    def longest_session_s(self) -> float:
        return self.longest_session_ms / 1e3

    @property
    def isolation(self) -> str:
        return self.isolation_level if self.transactors else ""

    @property
    def sharing(self) -> bool:
        return True

    @property
    def contiguous(self) -> bool:
        return not self.transactors

    @property
    def group_settings(self) -> dict[str, str]:
        """Returns the settings of each group, by Kafka's names."""
        given = {
            "share.record.lock.duration.ms": self.lock_ms,
            "share.delivery.count.limit": self.delivery_limit,
            "share.heartbeat.interval.ms": self.heartbeat_ms,
            "share.session.timeout.ms": self.session_timeout_ms,
        }
        asked = {name: str(value) for name, value in given.items() if value is not None}
        return {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": self.isolation_level,
            **asked,
        }

    @property
    def transactions(self) -> TxnSpec:
        """Returns the settings of those who send in transactions: they read nothing."""
        return TxnSpec(
            client={"library": "java"},  # type: ignore[arg-type]
            workers=max(1, self.transactors),
            aborts=self.aborts,
            partitions_per_txn=self.partitions_per_txn,
            polls_per_txn=0,
            offsets=0,
            transaction_timeout_ms=self.transaction_timeout_ms,
        )

    def misfits(self, topics: Mapping[str, int]) -> Iterator[str]:
        partitions = sum(topics.values())
        if self.transactors and self.partitions_per_txn > partitions:
            yield (
                f"partitions_per_txn {self.partitions_per_txn} needs as many partitions, topic.partitions is "
                f"{partitions}; transactors: 0 leaves transactions out"
            )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.implicit_members > self.members:
            raise ValueError(
                f"implicit_members {self.implicit_members} must not be more than members {self.members}"
            )
        if self.heartbeat_ms and self.session_timeout_ms and self.heartbeat_ms * 2 > self.session_timeout_ms:
            raise ValueError("heartbeat_ms must be at most half of session_timeout_ms")
        if self.sync_commits + self.async_commits > 1:
            raise ValueError("sync_commits and async_commits together must not be more than 1")
        return self

"""The settings of the workload ``log``, and of the clients of any workload, in a specification."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.plugins.acls import Acls, Resource
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import SECONDS, Lax, Most, NoBoolean, Strict
from wrackline.workloads import payload
from wrackline.workloads.clients.base import GroupSettings
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.pace import Spacing
from wrackline.workloads.payload import MAX_BYTES, OVERHEAD

LONGEST_S = 8 * 7 * 86_400
LOG_ACLS: Acls = {
    Resource.TOPIC: ("Create", "Delete", "Describe", "DescribeConfigs", "Read", "Write"),
    # A consumer without a group of its own still asks who coordinates the one that it names.
    Resource.GROUP: ("Describe",),
}
GROUP_ACLS: Acls = {Resource.GROUP: ("Delete", "Describe", "Read")}
MOST_A_SECOND = 1_000_000


class ClientsSpec(Strict):
    """The settings that every workload has: how long, how fast, and how its clients talk to the cluster."""

    name: str
    """The workload's name."""
    duration_s: Annotated[
        float, Field(gt=0), Most(LONGEST_S, "a run is judged whole, so make several"), SECONDS
    ] = 60
    """Of the main phase, in which the nemesis acts: eight weeks at most, on hosts that are made here 24 h."""
    rate: Annotated[float, Field(ge=0), Most(MOST_A_SECOND, "one machine makes no more")] = 200
    """Operations per second of all kinds together; 0: as fast as the clients can."""
    spacing: Annotated[Spacing, Lax] = Spacing.FIXED
    """How operations follow each other in time."""
    acks: Annotated[Literal[0, 1, "all"], NoBoolean] = "all"
    """Which replicas must have a record before it is acknowledged."""
    idempotence: bool = False
    """Brokers drop what a producer sends again."""
    record_bytes: Annotated[
        int, Field(ge=OVERHEAD), Most(MAX_BYTES, "a broker takes no more unless it is told to")
    ] = 128
    """Size of a record's value."""
    client: ClientSettings = ClientSettings()
    """Deadlines and other settings of the clients."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        """Returns for each kind of operation how many processes do it, and its weight."""
        raise NotImplementedError

    @property
    def concurrency(self) -> int:
        """Returns how many logical processes there are at a time."""
        return sum(processes for processes, _ in self.shares.values())

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each kind that has a process to do it."""
        return {f: weight for f, (processes, weight) in self.shares.items() if processes and weight > 0}

    @property
    def by_partition(self) -> frozenset[str]:
        """Kinds whose operations each go to one partition: a dead one must not keep all clients waiting."""
        return frozenset(self.shares) - {"poll"}

    takes_topics: ClassVar[bool] = False
    """Whether its clients use several topics in one run."""
    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "idempotence": lambda one: one.idempotence and one.acks == "all",
    }

    @staticmethod
    def clients_for(partitions: int) -> dict[str, int]:  # noqa: ARG004
        """Returns how many clients of each kind there are by default, where that depends on the topic."""
        return {}

    @property
    def reads(self) -> str:
        """Returns how a read knows that it is the latest; empty where the workload makes no such claim."""
        return ""

    @property
    def records_per_send(self) -> int:
        """Returns the largest number of records of one send."""
        return 1

    @property
    def seek_every(self) -> int:
        """Returns after about how many polls a consumer that takes partitions by itself takes others, or
        another position; 0: never."""
        return 0

    @property
    def poll_wait_s(self) -> float:
        """Returns how long a poll waits for records."""
        return self.client.poll_ms / 1e3

    @property
    def patience_s(self) -> float:
        """An operation that was begun is over by then: a send, or a wait for another one and a read."""
        return (self.client.message_timeout_ms + 2 * self.client.end_timeout_ms) / 1e3 + 5

    @property
    def tombstones(self) -> float:
        """Returns the share of sends that delete their key."""
        return 0

    def key_of(self, partition: int, value: int) -> bytes:  # noqa: ARG002
        """The key of the record with this value, in UTF-8 where it has a meaning (``compacted``)."""
        return payload.key_of(value)

    def _wait_s(self, pollers: int, kind: str = "poll") -> float:
        """Returns how long a poll waits when it must not keep the next one waiting: no longer than the asked
        rate of polls leaves time for. ``kind``: of operations."""
        share = self.weights.get(kind, 0) / sum(self.weights.values())
        asked_ms = 1e3 * pollers / (self.rate * share) if self.rate * share else self.client.poll_ms
        return min(self.client.poll_ms, 0.8 * asked_ms) / 1e3

    # --- what follows from it for others

    @property
    def needs(self) -> frozenset[Capability]:
        """Returns the capabilities that the system must offer."""
        needed = {
            Capability.IDEMPOTENCE: self.idempotence,
            Capability.FOLLOWER_FETCHING: bool(self.client.rack),
        }
        return frozenset(one for one, wanted in needed.items() if wanted)

    @property
    def acls(self) -> Acls:
        """Returns the rights that its clients, and the harness for them, need in a cluster with ACLs: on the
        run's topics, and on all else that the workload uses there."""
        return LOG_ACLS

    @property
    def longest_session_s(self) -> float:
        """Returns after how long without a heartbeat a member has left its group for sure."""
        return 0.0

    @property
    def isolation(self) -> str:
        """Returns the isolation level of consumers: ``read_committed`` or ``read_uncommitted``; empty where
        there are no transactions."""
        return ""

    @property
    def membership(self) -> GroupSettings | None:
        """Returns how members of its group take part; None where there is no group."""
        return None

    @property
    def plaintext_only(self) -> str:
        """Returns the key whose processes speak to brokers without TLS and SASL; empty where none do."""
        return ""

    @property
    def group_names(self) -> Collection[str]:
        """Returns the names of its groups, where it has several."""
        return ()

    @property
    def sharing(self) -> bool:
        """Tells whether its clients are members of share groups."""
        return False

    @property
    def reset(self) -> str:
        """Returns ``auto.offset.reset`` of the consumers that the workload is about; empty: ``none``."""
        return ""

    @property
    def rewinds(self) -> bool:
        """Tells whether consumers of transactions go back after an abort."""
        return False

    @property
    def epochs_before(self) -> int:
        """Returns how many producer epochs of each transactional id are used before the clients begin."""
        return 0

    @property
    def topic_configs(self) -> dict[str, str]:
        """Settings of the topic, with Kafka's names, that the workload rests on; a specification cannot
        change them."""
        return {}

    @property
    def contiguous(self) -> bool:
        """Tells whether every offset of the topic has a record: no transactions' markers, no compaction."""
        return True

    @property
    def compacted(self) -> bool:
        """Tells whether records that a later one of the same key follows may be gone."""
        return False

    def misfits(self, topics: Mapping[str, int]) -> Iterator[str]:  # noqa: ARG002
        """Yields why the workload cannot run on these topics (name -> partitions): key, what is wrong, what
        would do."""
        yield from ()

    def lanes(self, f: str, topics: Mapping[str, int]) -> int:  # noqa: ARG002
        """Returns to how many partitions, the first of all topics, operations of this kind go."""
        return sum(topics.values())

    def source_of(self, topics: Mapping[str, int]) -> dict[str, str]:  # noqa: ARG002
        """Returns the topics that an application of the run makes, each with the topic that it reads."""
        return {}

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if not self.weights:
            raise ValueError(
                f"no operation is left: give at least one of {self._names()} a process and a weight"
            )
        if self.idempotence and self.acks != "all":
            raise ValueError("idempotence needs acks: all")
        if self.client.request_timeout_ms > self.client.message_timeout_ms:
            raise ValueError("client.request_timeout_ms must not be more than client.message_timeout_ms")
        return self

    def _names(self) -> str:
        return ", ".join(name for name in type(self).model_fields if name.endswith("ers"))


def compacted_topic(segment_ms: int) -> dict[str, str]:
    """Settings of a topic whose cleaner has something to do soon."""
    return {
        "cleanup.policy": "compact",
        "segment.ms": str(segment_ms),
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": str(segment_ms),
    }


def key_among(keys: int, partition: int, process: int, number: int) -> bytes:
    """One of the keys of a partition, that follows from what a process sends as its so many-th."""
    pick = (process * 0x9E3779B1 ^ number * 0x85EBCA77) % 0xFFFFFFFB % keys
    return f"k{partition}-{pick}".encode()


class DeletingSpec(ClientsSpec):
    """Settings of workloads whose records may be deleted while their clients are at work."""

    deleters: Annotated[int, Field(ge=1, le=200)] = 1
    """Clients that delete records from the beginning of a partition, where ``mix.delete`` asks for it."""
    keep_records: Annotated[int, Field(ge=0, le=1_000_000)] = 500
    """How many of the latest records of a partition they let stay, at least."""
    auto_offset_reset: Annotated[
        str, Field(pattern=r"^(none|earliest|latest|by_duration:P[0-9DTHMS.]+)$")
    ] = "none"
    """``auto.offset.reset``: where a consumer goes on whose position was deleted. ``none``: it is told, and
    takes the log start itself."""

    @property
    def reset(self) -> str:
        return "" if self.auto_offset_reset == "none" else self.auto_offset_reset

    def deleting(self, weight: float) -> dict[str, tuple[int, float]]:
        """Returns the share of deletions, where there are any."""
        return {"delete": (self.deleters, weight)} if weight else {}


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 8
    """Weight of sends."""
    poll: Annotated[float, Field(ge=0)] = 3
    """Weight of polls."""
    end: Annotated[float, Field(ge=0)] = 1
    """Weight of questions for the end offset."""


MOST_CLIENTS = 200
MOST_IN_FLIGHT = 200
WIDTH_WITHOUT_RATE = 32
TIMEOUT_SCAN_S = 1.0
"""librdkafka looks for records whose time is over once a second."""
UNEVEN = 1.5
"""Partitions are drawn, so one may be asked for more than its share for a while."""


class AppendingSpec(ClientsSpec):
    """Settings of workloads whose clients send to a log, poll it, and ask for its end offset."""

    takes_topics: ClassVar[bool] = True
    mix: Mix = Mix()
    """How often each kind of operation is done, compared with the others."""
    senders: Annotated[int, Field(ge=0, le=MOST_CLIENTS)] = 6
    """Clients that send. What they have under way is shared out among the partitions, so that one without a
    leader does not keep them all waiting."""
    in_flight: Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT)] | None = None
    """Operations that one sender may have under way at a time, each a logical process of its own. None: as
    many as keep up the asked rate while every partition is silent for ``client.message_timeout_ms``;
    without a rate as many as keep the processors busy (32)."""
    pollers: Annotated[int, Field(ge=0, le=MOST_CLIENTS)] = 2
    """Consumers that read."""
    enders: Annotated[int, Field(ge=0, le=MOST_CLIENTS)] = 2
    """Shared out among the partitions as senders are."""
    records_per_op: Annotated[int, Field(ge=1, le=1_000)] = 1
    """At most: each operation sends one to this many records, to one partition."""
    reassign_every: Annotated[int, Field(ge=0)] = 40
    """On average, after so many polls a consumer takes other partitions or another position; 0: never."""

    @property
    def width(self) -> int:
        """Operations that one sender may have under way at a time."""
        if self.in_flight is not None:
            return self.in_flight
        weights = self.mix.send + bool(self.pollers) * self.mix.poll + bool(self.enders) * self.mix.end
        if not self.senders or not weights:
            return 1
        if not self.rate:
            return WIDTH_WITHOUT_RATE
        longest_s = self.client.message_timeout_ms / 1e3 + TIMEOUT_SCAN_S
        silent = self.rate * self.mix.send / weights * longest_s * UNEVEN
        return min(max(1, ceil(silent / self.senders)), MOST_IN_FLIGHT)

    @property
    def records_per_send(self) -> int:
        return self.records_per_op

    @property
    def seek_every(self) -> int:
        return self.reassign_every

    @property
    def poll_wait_s(self) -> float:
        return self._wait_s(self.pollers)

    @staticmethod
    def clients_for(partitions: int) -> dict[str, int]:
        """Returns how many clients there are by default: enough that every other partition is served while
        one keeps its clients waiting."""
        return {"senders": min(max(6, 2 * partitions), MOST_CLIENTS), "enders": min(max(2, partitions), 8)}

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return {
            "send": (self.senders * self.width, self.mix.send),
            "poll": (self.pollers, self.mix.poll),
            "end": (self.enders, self.mix.end),
        }


class LogMix(Mix):
    """Weights of the kinds of operations."""

    delete: Annotated[float, Field(ge=0)] = 0
    """Weight of deletions (DeleteRecords)."""


class LogSpec(AppendingSpec, DeletingSpec):
    """Settings of the workload ``log``."""

    name: Literal["log"] = "log"
    """Clients send to a log, poll it, and ask for its end offset."""
    mix: LogMix = LogMix()
    """How often each kind of operation is done, compared with the others."""

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return super().shares | self.deleting(self.mix.delete)

    @property
    def needs(self) -> frozenset[Capability]:
        return super().needs | ({Capability.DELETE_RECORDS} if self.mix.delete else frozenset())

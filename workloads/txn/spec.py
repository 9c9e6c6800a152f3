"""The settings of the workload ``txn`` in a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.history.model import parts_of
from wrackline.plugins.acls import Acls, Resource, merged
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import MILLISECONDS, Strict
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.log.spec import GROUP_ACLS, ClientsSpec, compacted_topic, key_among

Share = Annotated[float, Field(ge=0, le=1)]
MOST_EPOCHS = 32_766
"""The epoch after the last of these is never given to a client."""
SPARE_MS = 100
"""librdkafka lets a request take so much longer than the transaction that it belongs to."""


class TxnClientSettings(ClientSettings):
    """Deadlines of clients that give a request up, and ask again, while a fault still lasts."""

    request_timeout_ms: Annotated[int, Field(ge=100, le=300_000), MILLISECONDS] = 1_500
    """How long a broker may wait for the other replicas (acks=all)."""
    socket_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000), MILLISECONDS] = 1_500
    """How long a request may take; also one that ends a transaction, which the client sends again then."""


class Mix(Strict):
    """Weights of the kinds of operations."""

    send: Annotated[float, Field(ge=0)] = 1
    """Weight of transactions."""
    poll: Annotated[float, Field(ge=0)] = 1
    """Weight of polls outside of transactions."""


class TxnSpec(ClientsSpec):
    takes_topics: ClassVar[bool] = True
    name: Literal["txn"] = "txn"
    """Transactions: consume, transform, produce, send offsets, commit or abort."""
    rate: Annotated[float, Field(ge=0)] = 40
    """Transactions and polls outside of them, per second; 0: as fast as the clients can."""
    idempotence: Literal[True] = True
    """Transactional producers are idempotent."""
    acks: Literal["all"] = "all"
    """Transactional producers wait for all replicas in the ISR."""
    client: TxnClientSettings = TxnClientSettings()
    """Deadlines and other settings of the clients."""
    mix: Mix = Mix()
    """How often each kind of operation is done, compared with the others."""
    workers: Annotated[int, Field(ge=1, le=100)] = 6
    """Each has one transactional producer, which it keeps as long as it works, and one consumer."""
    pollers: Annotated[int, Field(ge=0, le=100)] = 2
    """Consumers that read outside of transactions."""
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """What all consumers ask for."""
    aborts: Share = 0.5
    """Share of the transactions that are meant to be aborted."""
    partitions_per_txn: Annotated[int, Field(ge=2, le=50)] = 2
    """A transaction writes one record to each of so many partitions."""
    polls_per_txn: Annotated[int, Field(ge=0, le=20)] = 1
    """How often a transaction polls before it writes."""
    offsets: Share = 0.5
    """Share of the transactions that send the offsets of what was polled, after their writes."""
    crashes: Share = 0
    """Share of the transactions whose producer is gone before it asks for the end. The next producer of the
    same transactional id fences it."""
    epochs_used: Annotated[int, Field(ge=0, le=MOST_EPOCHS)] = 0
    """So many producer epochs of each worker's transactional id are used up before the clients begin. A
    producer id has 32,767 of them."""
    after_abort: Literal["rewind", "go-on"] = "rewind"
    """What a worker does with its consumer after an abort: ``rewind`` takes it back to where the transaction
    began, ``go-on`` leaves it where it is, as Kafka does (KAFKA-17582)."""
    hold_ms: Annotated[int, Field(ge=0, le=60_000), MILLISECONDS] = 250
    """At most: how long a transaction waits between two writes, and before it sends offsets."""
    end_hold_ms: Annotated[int, Field(ge=0, le=60_000), MILLISECONDS] = 100
    """At most: how long it waits before it is committed or aborted."""
    transaction_timeout_ms: Annotated[int, Field(ge=1_000, le=900_000), MILLISECONDS] = 10_000
    """After so long the coordinator aborts a transaction by itself (``transaction.timeout.ms``). So long a
    worker waits for the end of one, too."""
    keys: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Of each partition, on a topic that is compacted: all records of a transaction have one key. 0: the
    topic is not compacted."""
    segment_ms: Annotated[int, Field(ge=100, le=86_400_000), MILLISECONDS] = 2_000
    """With ``keys``: how old a segment may become before the next one is begun."""
    reassign_every: Annotated[int, Field(ge=0)] = 40
    """On average, after so many polls a consumer outside of transactions takes other partitions or another
    position; 0: never."""

    @model_validator(mode="after")
    def _librdkafka_takes_the_deadlines(self) -> Self:
        if "transaction_timeout_ms" not in self.model_fields_set:
            self.__dict__["transaction_timeout_ms"] = max(
                self.transaction_timeout_ms, self.client.socket_timeout_ms - SPARE_MS
            )
        elif "socket_timeout_ms" not in self.client.model_fields_set:
            shorter_ms = min(self.client.socket_timeout_ms, self.transaction_timeout_ms + SPARE_MS)
            self.__dict__["client"] = self.client.model_copy(update={"socket_timeout_ms": shorter_ms})
        socket_ms, longest_ms = self.client.socket_timeout_ms, self.transaction_timeout_ms + SPARE_MS
        if self.client.library == "librdkafka" and socket_ms > longest_ms:
            raise ValueError(
                f"client.socket_timeout_ms {socket_ms} must not be more than transaction_timeout_ms + "
                f"{SPARE_MS}, which is {longest_ms}"
            )
        return self

    @property
    def shares(self) -> dict[str, tuple[int, float]]:
        return {"send": (self.workers, self.mix.send), "poll": (self.pollers, self.mix.poll)}

    @property
    def by_partition(self) -> frozenset[str]:
        return frozenset()

    @property
    def concurrency(self) -> int:
        """A worker is three logical processes: its producer, its consumer, and who commits offsets."""
        return 3 * self.workers + self.pollers

    @property
    def seek_every(self) -> int:
        return self.reassign_every

    @property
    def poll_wait_s(self) -> float:
        return self._wait_s(self.pollers)

    @property
    def patience_s(self) -> float:
        holds_s = (self.partitions_per_txn * self.hold_ms + self.end_hold_ms) / 1e3
        return super().patience_s + holds_s + 2 * self.transaction_timeout_ms / 1e3

    @property
    def acls(self) -> Acls:
        return merged((super().acls, GROUP_ACLS, {Resource.TRANSACTIONAL_ID: ("Describe", "Write")}))

    @property
    def needs(self) -> frozenset[Capability]:
        further = {Capability.COMPACTION} if self.keys else set()
        return super().needs | {Capability.TRANSACTIONS} | further

    @property
    def topic_configs(self) -> dict[str, str]:
        return compacted_topic(self.segment_ms) if self.keys else {}

    @property
    def compacted(self) -> bool:
        return bool(self.keys)

    def key_of(self, partition: int, value: int) -> bytes:
        if not self.keys:
            return super().key_of(partition, value)
        process, counter, _ = parts_of(value)
        return key_among(self.keys, partition, process, counter // self.partitions_per_txn)

    @property
    def isolation(self) -> str:
        return self.isolation_level

    @property
    def rewinds(self) -> bool:
        return self.after_abort == "rewind"

    @property
    def epochs_before(self) -> int:
        return self.epochs_used

    @property
    def contiguous(self) -> bool:
        return False

    def misfits(self, topics: Mapping[str, int]) -> Iterator[str]:
        name, least = min(topics.items(), key=lambda one: one[1])
        if self.partitions_per_txn > least:
            yield (
                f"partitions_per_txn {self.partitions_per_txn} needs as many partitions of each topic, "
                f"{name} has {least}"
            )

"""The knobs in which correct histories vary. ``Knobs()`` is a busy quarter of an hour of everything;
``drawn`` spreads over all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np


class Final(Enum):
    """The extent of the final read."""

    COMPLETE = "complete"
    SHORT = "short"
    """Some partitions to their end, some not, some not at all: the run proves less and may show nothing
    more."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Knobs:
    """Shares are probabilities; times are means of exponential delays, in milliseconds."""

    operations: int = 300
    """Of clients, about: sends, polls and end-offset requests are 6 : 3 : 1."""
    partitions: int = 2
    producers: int = 4
    consumers: int = 2
    askers: int = 1
    latency_ms: float = 5.0
    """One way."""
    think_ms: float = 5.0
    """Between a completion and the next invocation of a process."""
    records_at_once: int = 3
    """A send carries 1 to so many records."""
    apart: float = 0.3
    """Records of a send that arrive after the one before, not with it."""
    spread: float = 0.1
    """Sends whose records go to several partitions."""
    refused: float = 0.02
    """Sends refused for certain, from some record on."""
    answer_lost: float = 0.03
    """Sends whose records land and whose answer does not come, from some record on."""
    request_lost: float = 0.02
    """Sends of which nothing arrives, from some record on, and nobody can tell."""
    late: float = 0.2
    """Of the sends without an answer: records land long after the client gave up."""
    never_completes: float = 0.3
    """Of the sends without an answer: not even a completion is on record."""
    ack_without_offset: float = 0.02
    """Sends acknowledged without offsets."""
    failed_read: float = 0.02
    """Polls and end-offset requests that fail."""
    failovers: int = 2
    """Per partition, at most. Each stalls the high watermark, changes the leader, refuses sends, opens
    again."""
    tail_lost: float = 0.5
    """Failovers in which what had not been committed is cut; else it is committed when the new leader
    opens."""
    rebalance: float = 0.1
    """Steps of a consumer that are a new assignment, of other partitions at other offsets."""
    subscribed: float = 0.5
    """Of the consumers: members of a group of their own, told of their partitions by rebalances; others
    assign."""
    groups: int = 1
    """Groups of several members that commit; their operations come on top, 4 for each group where sends are
    6."""
    members: int = 3
    """Of each group."""
    generations: int = 5
    """Of each group, at most, and one more for some hundred operations. Each has other members, other owners,
    and fences those that missed it."""
    joins: float = 0.8
    """Members that are in a generation; the others go on in an older one, and their commits are refused."""
    commits: float = 0.3
    """Steps of a member that commit; half as many ask what is committed."""
    commit_unanswered: float = 0.08
    """Commits whose answer does not come: half of them take effect, most of those late."""
    polled_at_most: int = 20
    """Records of a partition that a poll gives a member."""
    generations_told: bool = True
    """The client tells which member it is, and in which generation."""
    share_members: int = 0
    """Of a share group; 0: there is none. They go on until the group has nothing left."""
    application: bool = False
    """Each record of the log is turned into one of another topic, with a count per key. The final read is
    complete."""
    looks: int = 0
    """At promises of liveness, over the whole run."""
    transactional: int = 0
    """Of the producers: each sends to several partitions and polls in one transaction."""
    aborted: float = 0.1
    """Transactions that abort; their records stay in the log, and no reader is given them."""
    isolated: bool = True
    """All records of a transaction land at one moment, after what it polled; else one by one, as KIP-98 has
    it."""
    keys: int = 0
    """Of a compacted topic so many, and each send has one record; 0: records have no keys."""
    compacted: float = 0.7
    """Records that a later one of the same key follows, and that are gone from the final read, or from a
    replica."""
    idempotence: bool = True
    retried: float = 0.1
    """Without idempotence: records that a retry appends a second time."""
    final: Final = Final.COMPLETE
    replicas: bool = True
    """Every replica's own log is read after healing."""
    straggler: float = 0.2
    """Replicas that are out of the ISR, behind, and hold a record nobody else has above their high
    watermark."""
    epochs_reported: bool = True
    """The consumers' client tells leader epochs (librdkafka does not)."""

    @property
    def may_show(self) -> frozenset[str]:
        """The anomalies that may be found in a correct history and are no false alarm: without idempotence
        a retry appends a second time, which may be behind what was sent after it; nothing keeps the
        records of a transaction together that is not isolated; deliveries of a share group are used up where
        answers come after the lock. Writes that were not proven are counted,
        whatever the run."""
        result = {"unproven-write"}
        if not self.idempotence:
            result |= {"duplicate", "batch-order"}
        if self.transactional and not self.isolated:
            result |= {"write-cycle", "read-cycle"}
        if self.share_members:
            result.add("archived-unrefused")
        return frozenset(result)

    @property
    def threads(self) -> int:
        """Clients that act at the same time."""
        return self.producers + self.consumers + self.askers + self.groups * self.members

    def __post_init__(self) -> None:
        if min(self.partitions, self.producers, self.records_at_once) < 1:
            raise ValueError("a run has one partition, one producer and one record in a send at least")
        if self.groups and min(self.members, self.generations, self.polled_at_most) < 1:
            raise ValueError("a group has one member, one generation and one record in a poll at least")
        if self.transactional > self.producers or (self.transactional and not self.idempotence):
            raise ValueError("transactions are those of producers, with idempotence")
        if self.application and (self.keys or not self.idempotence or self.final is not Final.COMPLETE):
            raise ValueError("an application reads records without keys once, and its topics to their end")
        if self.keys and (self.transactional or self.records_at_once > 1 or not self.idempotence):
            raise ValueError(
                "records with keys are sent one by one, with idempotence and without transactions"
            )


TO_MUTATE = Knobs(
    operations=160,
    straggler=0.0,
    latency_ms=2.0,
    think_ms=8.0,
    never_completes=0.1,
)
"""Of histories that get one anomaly: enough of everything, as much in turn as at once."""


def _one(random: np.random.Generator) -> int:
    """Draws a number and returns 1, so that what is drawn after it stays what it is."""
    random.integers(1, 6)
    return 1


def drawn(seed: int, operations: int = 120) -> Knobs:
    """The knobs of a random correct history; the same seed gives the same."""
    random = np.random.default_rng([seed, 0xA11])

    def share(most: float) -> float:
        """Often nothing, else anything up to the most."""
        return 0.0 if random.random() < 0.25 else float(random.random() * most)

    producers = int(random.integers(1, 8))
    idempotence = bool(random.random() < 0.7)
    transactional = int(random.integers(1, producers + 1)) if idempotence and random.random() < 0.4 else 0
    isolated = bool(random.random() < 0.8)
    apart, spread = share(1.0), share(0.5)
    final = (Final.COMPLETE, Final.COMPLETE, Final.COMPLETE, Final.SHORT, Final.NONE)[random.integers(5)]
    keys = 0
    if idempotence and not transactional:
        keys = int(np.random.default_rng([seed, 0x2E1]).choice([0, 0, 2, 20]))
    return Knobs(
        operations=int(random.integers(operations // 2, operations + operations // 2)),
        partitions=int(random.integers(1, 5)),
        producers=producers,
        consumers=int(random.integers(0, 4)),
        askers=int(random.integers(0, 3)),
        latency_ms=float(random.choice([0.01, 1.0, 5.0, 50.0])),
        think_ms=float(random.choice([0.01, 5.0, 20.0])),
        records_at_once=int(random.integers(1, 6)) if not keys else _one(random),
        keys=keys,
        apart=apart,
        spread=spread,
        refused=share(0.1),
        answer_lost=share(0.15),
        request_lost=share(0.15),
        late=share(0.6),
        never_completes=share(1.0),
        ack_without_offset=share(0.1),
        failed_read=share(0.1),
        failovers=int(random.integers(0, 6)),
        tail_lost=share(1.0),
        rebalance=share(0.4),
        idempotence=idempotence,
        retried=share(0.3),
        final=final,
        replicas=bool(random.random() < 0.8),
        straggler=share(0.6),
        epochs_reported=bool(random.random() < 0.5),
        subscribed=share(1.0),
        groups=int(random.choice([0, 1, 1, 2])),
        members=int(random.integers(1, 5)),
        generations=int(random.integers(1, 9)),
        joins=1.0 - share(0.7),
        commits=share(0.7),
        commit_unanswered=share(0.6),
        polled_at_most=int(random.choice([1, 3, 20, 500])),
        generations_told=bool(random.random() < 0.8),
        share_members=int(np.random.default_rng([seed, 0x54A]).choice([0, 0, 1, 3])),
        application=idempotence and not keys and final is Final.COMPLETE and seed % 3 == 0,
        looks=int(np.random.default_rng([seed, 0x100]).choice([0, 0, 12])),
        transactional=transactional,
        aborted=share(0.4),
        isolated=isolated,
    )

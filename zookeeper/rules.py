"""The rules of profile zk08, the ZooKeeper design (docs/protocol.md 1.1, 2.15).

There are no epochs: a record, a fetch and an answer say nothing of the leader they belong to. Where a rule of
the later profiles compares epochs, the rule here has nothing to compare. Replicas elect each other by a race
for a node in ZooKeeper; ``RaceRules`` says who runs, and what a leader does with its sets of replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.metadata.features import WITH_EPOCHS, WITHOUT_EPOCHS, Levels
from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import NO_ERROR, dataclass
from wrackline.broker.rules.profile import Rules, kip101
from wrackline.broker.rules.replication.isr import IsrRules, JoinFacts
from wrackline.broker.rules.replication.reads import ReadRules
from wrackline.broker.rules.replication.truncation import TruncationRules


class TruncateToOwnHighWatermark(TruncationRules):
    """Z30, Z47: what a follower does not know to be committed goes, whoever leads. What goes may be
    committed, since the follower's high watermark is a fetch behind (B01, B02)."""

    def on_become_follower(self, leo: int, high_watermark: int) -> int:
        return min(leo, high_watermark)


class NoEpochs(ReadRules):
    """The rules without epochs: whoever is assigned may fetch: nothing tells one life of a broker, or one
    leader, from another (B05)."""

    def follower_check(
        self,
        follower: NodeId,
        followers: Collection[NodeId],
        asked_epoch: int,  # noqa: ARG002
        broker_epoch: int,  # noqa: ARG002
        registered: int,  # noqa: ARG002
    ) -> ErrorCode:
        return NO_ERROR if follower in followers else ErrorCode.not_leader_or_follower


class CaughtUp(IsrRules):
    """Z52: a replica of the CUR that has reached the committed offset is promoted. The leader's high
    watermark is at least its log end at the election, so former terms need no look of their own."""

    def may_join(self, facts: JoinFacts) -> bool:
        return self.has_committed(facts)


@dataclass(frozen=True, slots=True)
class RaceFacts:
    """The facts that a replica reads in ZooKeeper before it runs for the leader's node."""

    me: NodeId
    replicas: tuple[NodeId, ...]
    """Assigned; the first one is preferred."""
    isr: tuple[NodeId, ...]
    live: frozenset[NodeId]
    """Registered brokers."""
    unclean: bool = False
    """unclean.leader.election.enable of the topic."""


class Sets(NamedTuple):
    """The sets that a leader writes: AR is their disjoint union (I21)."""

    isr: tuple[NodeId, ...]
    cur: tuple[NodeId, ...]


class RaceRules:
    """Profile zk08. Whoever creates the ephemeral node has won (Z49)."""

    def may_run(self, facts: RaceFacts) -> bool:
        """Assigned, and in the ISR or the ISR is empty (Z32, Z49). An unclean election lets others run when
        nobody of the ISR is there (H19); the document has none."""
        if facts.me not in facts.replicas:
            return False
        if not facts.isr or facts.me in facts.isr:
            return True
        return facts.unclean and not facts.live.intersection(facts.isr)

    def head_start_ms(self, facts: RaceFacts, preferred_replica_ms: float) -> float:
        """Returns how long to wait before running: the preferred replica runs at once (Z42).

        The document asks this of candidates whose high watermark is below another's; nobody can know that of
        replicas that are not led, so all that are not preferred wait.
        """
        return 0.0 if facts.me == facts.replicas[0] else preferred_replica_ms

    def may_open(
        self, end: int, isr: Collection[NodeId], ends: Mapping[NodeId, int], live: Collection[NodeId]
    ) -> bool:
        """Z31, Z48: every member of the former ISR that is alive has all that the new leader has."""
        return all(ends.get(node, -1) >= end for node in isr if node in ends and node in live)

    def at_opening(
        self, me: NodeId, replicas: Sequence[NodeId], ends: Mapping[NodeId, int], end: int
    ) -> Sets:
        """ISR and CUR that a new leader writes: those in sync, and the rest of the assigned ones."""
        isr = tuple(node for node in replicas if node == me or ends.get(node, -1) >= end)
        return Sets(isr, tuple(node for node in replicas if node not in isr))

    def late(self, isr: Collection[NodeId], ends: Mapping[NodeId, int], offset: int) -> frozenset[NodeId]:
        """Z52: members that have not reached a request's offset within KeepInSyncTime."""
        return frozenset(node for node in isr if node in ends and ends[node] < offset)

    def yields(
        self, me: NodeId, replicas: Sequence[NodeId], isr: Collection[NodeId], live: Collection[NodeId]
    ) -> bool:
        """Z53: the preferred replica is in the ISR and could lead. That it is registered is our condition:
        without it the leadership would be given away to a broker that is gone."""
        return replicas[0] != me and replicas[0] in isr and replicas[0] in live

    def is_reassigned(
        self, me: NodeId, target: Collection[NodeId], ends: Mapping[NodeId, int], own_end: int, offset: int
    ) -> bool:
        """Z54: every replica of the target has reached the committed offset."""
        return bool(target) and all(
            (own_end if node == me else ends.get(node, -1)) >= offset for node in target
        )


RACE = RaceRules()


def zk08() -> Rules:
    """The ZooKeeper design: no controller and no epochs, truncation to the high watermark."""
    former = kip101()
    return replace(
        former,
        switches=replace(
            former.switches,
            asks_epoch_first=False,
            has_controller=False,
            waits_for_joining=False,
            has_min_isr=False,
        ),
        truncation=TruncateToOwnHighWatermark(),
        reads=NoEpochs(),
        isr=CaughtUp(),
        levels=Levels(WITHOUT_EPOCHS, WITHOUT_EPOCHS),
    )


def zk08_kip101() -> Rules:
    """The same design with Kafka 0.11's rule: at the level with leader epochs a follower asks its leader
    where its last epoch ends, and cuts there. Below it, as zk08."""
    levels = Levels(WITHOUT_EPOCHS, WITH_EPOCHS)
    before = replace(zk08(), levels=levels)
    switches = replace(before.switches, asks_epoch_first=True)
    return replace(before, switches=switches, truncation=TruncationRules(), former=before)

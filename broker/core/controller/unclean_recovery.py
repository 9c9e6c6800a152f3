"""Unclean recovery of partitions that nobody in ISR and ELR can lead
(docs/protocol.md 2.9, R25-R36; KIP-966).

Balanced: when every member of the LastKnownELR is unfenced, each is asked how far its log reaches, again and
again until all have answered, and the best log leads. Proactive: every replica that is unfenced is asked at
once, and the best log of those that answered within a short window leads; an operator's ElectLeaders of kind
UNCLEAN does the same, whatever the strategy. Manual: a person names the leader (``forced_elections``).

The strategy is the topic's setting ``unclean.recovery.strategy``, else the cluster's; a change of it counts
from its commit on. An attempt is not persisted: a controller that restarts begins anew. It belongs to one
state of the partition and one strategy; any change of either ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import Effect, Send, SetTimer, Trace
from wrackline.broker.model.messages.controller import (
    MAX_LOG_INFOS,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.metadata.image import ClusterImage, ImageDelta, PartitionImage
from wrackline.broker.model.types import NO_EPOCH, NO_LEADER, NodeId, RecoveryStrategy
from wrackline.broker.rules.leadership.election import Recovery
from wrackline.broker.rules.leadership.recovery import UNUSABLE, LogEnd, Verdict
from wrackline.broker.rules.placement.topics import RECOVERY_STRATEGY
from wrackline.broker.rules.profile import Rules

RECOVERY = "recovery"
"""Timer and channel."""
QUESTION_MS = 2_000
"""How long one answer is waited for."""
_FIRST_BACKOFF_MS = 100.0
_LAST_BACKOFF_MS = 2_000.0

Key = tuple[UUID, int]
"""(topic id, partition)."""


class DecidedBy(Enum):
    """The part that elected a leader from outside ISR and ELR."""

    BALANCED = "balanced"
    PROACTIVE = "proactive"
    OPERATOR = "operator"
    """ElectLeaders of kind UNCLEAN: logs were compared."""
    NAMED = "named"
    """ElectLeaders of kind DESIGNATED: a person named the leader."""
    SETTING = "unclean.leader.election.enable"
    """The first live replica, as the topic's setting asks for."""


@dataclass(slots=True)
class _Attempt:
    partition: PartitionImage
    """As it was committed when the attempt began."""
    strategy: RecoveryStrategy
    candidates: tuple[NodeId, ...]
    present: frozenset[NodeId]
    """Those of them that are unfenced now."""
    ends: dict[NodeId, LogEnd] = field(default_factory=dict)
    over_ms: float | None = None
    """When the window of proactive recovery is over; None: it begins when the first question is asked."""

    def lacks(self, broker: NodeId) -> bool:
        return broker in self.present and broker not in self.ends


@dataclass(slots=True)
class _Peer:
    """A broker that is asked. One question at a time."""

    asking: bool = False
    failures: int = 0
    not_before_ms: float = 0.0


class Decision(NamedTuple):
    """The facts that an election was decided on."""

    by: DecidedBy
    ends: tuple[LogEnd, ...] = ()
    silent: tuple[NodeId, ...] = ()
    """Candidates that did not answer in time: what only they have is lost."""


class Recoveries:
    def __init__(self, config: ControllerConfig, rules: Rules) -> None:
        self._default = config.unclean_recovery_strategy
        self._window_ms = config.unclean_recovery_window_ms
        self.forced: set[Key] = set()
        """An operator wants a leader for these now."""
        self._rules = rules
        self._attempts: dict[Key, _Attempt] = {}
        self._peers: dict[NodeId, _Peer] = {}
        self._asked: dict[int, tuple[NodeId, tuple[Key, ...]]] = {}
        """By correlation."""
        self._correlation = 0
        self.decisions: dict[int, Decision] = {}
        """What the election at this offset of the metadata log was decided on, until it is committed."""

    # --- what there is to recover --------------------------------------------------------------------------

    def look(self, image: ClusterImage, delta: ImageDelta) -> list[Effect]:
        """``delta`` was committed: end the attempts it overtook, begin those it made possible; what to
        trace."""
        active = frozenset(broker.id for broker in image.brokers.values() if broker.active)
        self._end_overtaken(image, active)
        lines: list[Effect] = []
        for partition in image.partitions():
            if partition.leader != NO_LEADER:
                continue
            recovery, strategy = self._view(image, partition, active)
            if recovery is None:
                continue
            if not (
                partition.tp in delta.before
                or partition.tp.topic in delta.topics
                or delta.brokers.intersection(recovery.candidates)
            ):
                continue
            self._begin(partition, strategy, recovery)
            lines.append(self._line(partition, strategy, recovery))
        return lines

    def force(self, image: ClusterImage, partition: PartitionImage) -> bool:
        """An operator's election: inspect the logs of whoever is there. False: nobody is."""
        key = (partition.topic_id, partition.tp.partition)
        active = frozenset(broker.id for broker in image.brokers.values() if broker.active)
        self.forced.add(key)
        recovery, strategy = self._view(image, partition, active)
        if recovery is None or not recovery.possible:
            return False
        if key in self._attempts and self._attempts[key].strategy is not strategy:
            del self._attempts[key]
        self._begin(partition, strategy, recovery)
        return True

    def give_up(self, image: ClusterImage, partition: PartitionImage) -> None:
        """The operator's time is over: the configured strategy holds again."""
        key = (partition.topic_id, partition.tp.partition)
        if key in self.forced:
            self.forced.discard(key)
            if self.strategy(image, partition) is not RecoveryStrategy.PROACTIVE:
                self._attempts.pop(key, None)

    def strategy(self, image: ClusterImage, partition: PartitionImage) -> RecoveryStrategy:
        """Proactive for as long as an operator wants a leader now."""
        forced = (partition.topic_id, partition.tp.partition) in self.forced
        return RecoveryStrategy.PROACTIVE if forced else self.configured(image, partition)

    def configured(self, image: ClusterImage, partition: PartitionImage) -> RecoveryStrategy:
        """The topic's, else the cluster's. Before the first claim of a controller has written the cluster's
        default, its file's holds."""
        value = image.setting(partition.tp.topic, RECOVERY_STRATEGY)
        return self._default if value is None else RecoveryStrategy(value)

    def _view(
        self, image: ClusterImage, partition: PartitionImage, active: frozenset[NodeId]
    ) -> tuple[Recovery | None, RecoveryStrategy]:
        strategy = self.strategy(image, partition)
        if not self._rules.switches.has_elr:
            return None, strategy
        return self._rules.recovery.view(strategy, self._rules.election, partition, active), strategy

    def waiting(self, image: ClusterImage) -> Iterator[RecoveryStrategy]:
        """Yields for each partition that only an unclean recovery can give a leader the strategy it waits
        under."""
        active = frozenset(broker.id for broker in image.brokers.values() if broker.active)
        for partition in image.partitions():
            recovery, strategy = self._view(image, partition, active)
            if recovery is not None:
                yield strategy

    def _begin(self, partition: PartitionImage, strategy: RecoveryStrategy, recovery: Recovery) -> None:
        key = (partition.topic_id, partition.tp.partition)
        if self._rules.recovery.may_inspect(strategy, recovery) and key not in self._attempts:
            present = frozenset(recovery.candidates).difference(recovery.missing)
            self._attempts[key] = _Attempt(partition, strategy, recovery.candidates, present)

    def _end_overtaken(self, image: ClusterImage, active: frozenset[NodeId]) -> None:
        """An attempt whose partition or strategy has changed, or that nobody is there for any more (balanced:
        not everybody)."""
        for key, attempt in list(self._attempts.items()):
            attempt.present = active.intersection(attempt.candidates)
            needed = 1 if attempt.strategy is RecoveryStrategy.PROACTIVE else len(attempt.candidates)
            if not self._still_holds(image, key, attempt) or len(attempt.present) < needed:
                del self._attempts[key]
                continue
            for broker, end in list(attempt.ends.items()):
                if broker not in attempt.present or image.brokers[broker].epoch != end.broker_epoch:
                    del attempt.ends[broker]
        for key in list(self.forced):
            partition = image.partition_by_id(*key)
            if partition is None or partition.leader != NO_LEADER:
                self.forced.discard(key)

    def _still_holds(self, image: ClusterImage, key: Key, attempt: _Attempt) -> bool:
        unchanged = image.partition_by_id(*key) == attempt.partition
        return unchanged and self.strategy(image, attempt.partition) is attempt.strategy

    def _line(self, partition: PartitionImage, strategy: RecoveryStrategy, recovery: Recovery) -> Trace:
        if strategy is RecoveryStrategy.MANUAL:
            why = f"{RECOVERY_STRATEGY} is manual: no leader until an operator names one"
        elif strategy is RecoveryStrategy.PROACTIVE and recovery.possible:
            why = "asking every replica that is there how far its log reaches"
        elif recovery.ready:
            why = "every candidate is back: asking how far their logs reach"
        else:
            why = "waiting for the missing candidates"
        return Trace(
            "recovery",
            {
                "tp": str(partition.tp),
                "by": strategy.value,
                "candidates": list(recovery.candidates),
                "missing": list(recovery.missing),
                "winner": None,
                "why": why,
            },
        )

    # --- asking --------------------------------------------------------------------------------------------

    def ask(self, now_ms: float) -> list[Effect]:
        """Questions to everyone who has not answered and is not being asked, and a timer for those to be
        asked again later."""
        effects: list[Effect] = []
        later: list[float] = []
        for attempt in self._attempts.values():
            if attempt.over_ms is None:
                attempt.over_ms = now_ms + self._window_ms
            if attempt.strategy is RecoveryStrategy.PROACTIVE and attempt.over_ms > now_ms:
                later.append(attempt.over_ms)
        for broker, keys in self._unanswered().items():
            peer = self._peers.setdefault(broker, _Peer())
            if peer.asking:
                continue
            if peer.not_before_ms > now_ms:
                later.append(peer.not_before_ms)
                continue
            peer.asking = True
            self._correlation += 1
            asked = tuple(keys[:MAX_LOG_INFOS])
            self._asked[self._correlation] = broker, asked
            request = GetReplicaLogInfoRequest(asked)
            effects.append(Send(self._correlation, broker, RECOVERY, request, QUESTION_MS))
        return [*effects, SetTimer(RECOVERY, min(later))] if later else effects

    def _unanswered(self) -> dict[NodeId, list[Key]]:
        expected: dict[NodeId, list[Key]] = {}
        for key, attempt in self._attempts.items():
            for broker in attempt.candidates:
                if attempt.lacks(broker):
                    expected.setdefault(broker, []).append(key)
        return expected

    def answered(
        self, image: ClusterImage, correlation: int, response: Response | None, now_ms: float
    ) -> list[Effect]:
        """An answer, or None for one that will not come. ``image``: the speculative one, the latest there
        is."""
        if correlation not in self._asked:
            return []
        broker, keys = self._asked.pop(correlation)
        peer = self._peers[broker]
        peer.asking = False
        lines: list[Effect] = []
        if isinstance(response, GetReplicaLogInfoResponse):
            registered = image.brokers.get(broker)
            registered_epoch = NO_EPOCH if registered is None else registered.epoch
            for info in response.entries:
                lines += self._take(broker, response.broker_epoch, registered_epoch, info)
        if any(key in self._attempts and self._attempts[key].lacks(broker) for key in keys):
            backoff_ms = min(_FIRST_BACKOFF_MS * 2.0**peer.failures, _LAST_BACKOFF_MS)
            peer.failures = min(peer.failures + 1, 10)
            peer.not_before_ms = now_ms + backoff_ms
        else:
            peer.failures = 0
        return lines

    def _take(
        self, broker: NodeId, broker_epoch: int, registered_epoch: int, info: ReplicaLogInfo
    ) -> Iterator[Effect]:
        key = (info.topic_id, info.partition)
        attempt = self._attempts.get(key)
        if attempt is None or not attempt.lacks(broker):
            return
        partition = attempt.partition
        match self._rules.recovery.judge(info, broker_epoch, registered_epoch, partition.leader_epoch):
            case Verdict.COUNTS:
                end = LogEnd(broker, broker_epoch, info.last_written_leader_epoch, info.leo)
                attempt.ends[broker] = end
            case Verdict.UNUSABLE:
                attempt.ends[broker] = LogEnd(broker, broker_epoch, NO_EPOCH, UNUSABLE)
            case Verdict.ASK_AGAIN:
                pass
            case Verdict.ABORT:
                del self._attempts[key]
                why = (
                    f"given up: broker {broker} knows leader epoch {info.current_leader_epoch}, "
                    f"this controller {partition.leader_epoch}"
                )
                candidates, by = list(attempt.candidates), attempt.strategy.value
                fields = {"tp": str(partition.tp), "by": by, "candidates": candidates, "winner": None}
                yield Trace("recovery", {**fields, "why": why})

    # --- deciding ------------------------------------------------------------------------------------------

    def decide(self, draft: Draft, now_ms: float) -> None:
        """Elect where enough candidates have answered and nothing has changed, not even in what is not
        committed yet (the election itself, for one): what has will end the attempt when it is committed."""
        for key, attempt in self._attempts.items():
            decided = self._rules.recovery.is_decided(
                attempt.strategy,
                len(attempt.ends),
                len(attempt.candidates),
                window_over=attempt.over_ms is not None and now_ms >= attempt.over_ms,
            )
            if not decided or not self._still_holds(draft.image, key, attempt):
                continue
            answering = [broker for broker in attempt.candidates if broker in attempt.ends]
            ends = tuple(attempt.ends[broker] for broker in answering)
            if not _still_there(draft, ends):
                continue
            winner = self._rules.recovery.winner(ends)
            if winner is None:
                continue
            silent = tuple(broker for broker in attempt.candidates if broker not in attempt.ends)
            by = DecidedBy.OPERATOR if key in self.forced else DecidedBy(attempt.strategy.value)
            self.decisions[draft.next_offset] = Decision(by, ends, silent)
            draft.add(self._rules.election.recovered(attempt.partition, winner))


def _still_there(draft: Draft, ends: Iterable[LogEnd]) -> bool:
    active, brokers = draft.active_brokers(), draft.image.brokers
    return all(end.broker in active and brokers[end.broker].epoch == end.broker_epoch for end in ends)

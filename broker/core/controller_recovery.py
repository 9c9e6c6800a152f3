"""Unclean recovery of partitions that have neither ISR nor ELR (protocol.md 2.9, R25-R36; KIP-966).

Balanced: when every member of the LastKnownELR is unfenced, each is asked how far its log reaches, again and
again until all have answered, and the best log leads. Nothing of this is persisted: a controller that
restarts begins anew. An attempt belongs to one state of the partition; any change of it ends the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from broker.core.config import ControllerConfig
from broker.core.controller_draft import Draft
from broker.core.effects import Effect, Send, SetTimer, Trace
from broker.core.image import ClusterImage, ImageDelta, PartitionImage
from broker.core.messages import (
    MAX_LOG_INFOS,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
    Response,
)
from broker.core.types import NO_EPOCH, NO_LEADER, NodeId, RecoveryStrategy
from broker.rules.election import Recovery
from broker.rules.profile import Rules
from broker.rules.recovery import LogEnd, Verdict

RECOVERY = "recovery"
"""Timer and channel."""
_TIMEOUT_MS = 2_000
_FIRST_BACKOFF_MS = 100.0
_LAST_BACKOFF_MS = 2_000.0

Key = tuple[UUID, int]
"""(topic id, partition)."""


@dataclass(slots=True)
class _Attempt:
    partition: PartitionImage
    """As it was committed when the attempt began."""
    ends: dict[NodeId, LogEnd] = field(default_factory=dict)

    @property
    def candidates(self) -> tuple[NodeId, ...]:
        return self.partition.last_known_elr

    def lacks(self, broker: NodeId) -> bool:
        return broker in self.candidates and broker not in self.ends

    @property
    def complete(self) -> bool:
        return all(broker in self.ends for broker in self.candidates)


@dataclass(slots=True)
class _Peer:
    """A broker that is asked. One question at a time."""

    asking: bool = False
    failures: int = 0
    not_before_ms: float = 0.0


class Recoveries:
    def __init__(self, config: ControllerConfig, rules: Rules) -> None:
        self._strategy = config.unclean_recovery_strategy
        self._rules = rules
        self._attempts: dict[Key, _Attempt] = {}
        self._peers: dict[NodeId, _Peer] = {}
        self._asked: dict[int, tuple[NodeId, tuple[Key, ...]]] = {}
        """By correlation."""
        self._correlation = 0
        self.logs_of: dict[int, tuple[LogEnd, ...]] = {}
        """What the election at this offset of the metadata log was decided on, until it is committed."""

    # --- what there is to recover --------------------------------------------------------------------------

    def look(self, image: ClusterImage, delta: ImageDelta) -> list[Effect]:
        """``delta`` was committed: end the attempts it overtook, begin those it made possible; what to trace."""
        active = frozenset(broker.id for broker in image.brokers.values() if broker.active)
        self._end_overtaken(image, active)
        lines: list[Effect] = []
        for partition in _to_look_at(image, delta):
            recovery = self._rules.election.recovery(partition, active)
            if recovery is None:
                continue
            key = (partition.topic_id, partition.tp.partition)
            if self._rules.recovery.may_inspect(self._strategy, recovery) and key not in self._attempts:
                self._attempts[key] = _Attempt(partition)
            lines.append(self._line(partition, recovery))
        return lines

    def _end_overtaken(self, image: ClusterImage, active: frozenset[NodeId]) -> None:
        for key, attempt in list(self._attempts.items()):
            if image.partition_by_id(*key) != attempt.partition or not active.issuperset(attempt.candidates):
                del self._attempts[key]
                continue
            for broker, end in list(attempt.ends.items()):
                if image.brokers[broker].epoch != end.broker_epoch:
                    del attempt.ends[broker]

    def _line(self, partition: PartitionImage, recovery: Recovery) -> Trace:
        if self._strategy is RecoveryStrategy.MANUAL:
            why = "unclean_recovery_strategy is manual: no leader until an operator decides"
        elif recovery.ready:
            why = "every candidate is back: asking how far their logs reach"
        else:
            why = "waiting for the missing candidates"
        return Trace(
            "recovery",
            {
                "tp": str(partition.tp),
                "candidates": list(recovery.candidates),
                "missing": list(recovery.missing),
                "winner": None,
                "why": why,
            },
        )

    # --- asking --------------------------------------------------------------------------------------------

    def ask(self, now_ms: float) -> list[Effect]:
        """Questions to everyone who has not answered and is not being asked, and a timer for those to be asked
        again later."""
        effects: list[Effect] = []
        later: list[float] = []
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
            effects.append(Send(self._correlation, broker, RECOVERY, request, _TIMEOUT_MS))
        return [*effects, SetTimer(RECOVERY, min(later))] if later else effects

    def _unanswered(self) -> dict[NodeId, list[Key]]:
        wanted: dict[NodeId, list[Key]] = {}
        for key, attempt in self._attempts.items():
            for broker in attempt.candidates:
                if attempt.lacks(broker):
                    wanted.setdefault(broker, []).append(key)
        return wanted

    def heard(
        self, image: ClusterImage, correlation: int, response: Response | None, now_ms: float
    ) -> list[Effect]:
        """An answer, or None for one that will not come. ``image``: the speculative one, the latest there is."""
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
            case Verdict.ASK_AGAIN:
                pass
            case Verdict.ABORT:
                del self._attempts[key]
                why = (
                    f"given up: broker {broker} knows leader epoch {info.current_leader_epoch}, "
                    f"this controller {partition.leader_epoch}"
                )
                fields = {"tp": str(partition.tp), "candidates": list(attempt.candidates), "winner": None}
                yield Trace("recovery", {**fields, "why": why})

    # --- deciding ------------------------------------------------------------------------------------------

    def decide(self, draft: Draft) -> None:
        """Elect where every candidate has answered and nothing has changed, not even in what is not committed
        yet (the election itself, for one): what has will end the attempt when it is committed."""
        for key, attempt in self._attempts.items():
            if not attempt.complete or draft.image.partition_by_id(*key) != attempt.partition:
                continue
            ends = tuple(attempt.ends[broker] for broker in attempt.candidates)
            if not _still_there(draft, ends):
                continue
            self.logs_of[draft.next_offset] = ends
            winner = self._rules.recovery.winner(ends)
            draft.add(self._rules.election.recovered(attempt.partition, winner))


def _still_there(draft: Draft, ends: Iterable[LogEnd]) -> bool:
    active, brokers = draft.active_brokers(), draft.image.brokers
    return all(end.broker in active and brokers[end.broker].epoch == end.broker_epoch for end in ends)


def _to_look_at(image: ClusterImage, delta: ImageDelta) -> Iterator[PartitionImage]:
    for partition in image.partitions():
        if partition.leader != NO_LEADER:
            continue
        if partition.tp in delta.before or delta.brokers.intersection(partition.last_known_elr):
            yield partition

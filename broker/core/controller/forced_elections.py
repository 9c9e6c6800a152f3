"""ElectLeaders of kinds UNCLEAN and DESIGNATED (docs/protocol.md 2.9): an operator wants a leader now, at the
price of a possible loss.

UNCLEAN: whoever can lead without loss does. Else the logs of all replicas that are there are compared, as
proactive recovery does, and the answer waits for the election's commit or the end of the operator's time.
DESIGNATED: the leader that is named leads, where the strategy leaves that to a person.
"""

from __future__ import annotations

from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.elections import unknown
from wrackline.broker.core.controller.decisions.partitions import change
from wrackline.broker.core.controller.metrics import UncleanRecoveries
from wrackline.broker.core.controller.unclean_recovery import QUESTION_MS, DecidedBy, Decision, Recoveries
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import CancelTimer, Effect, Reply, SetTimer
from wrackline.broker.model.messages.admin import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionOutcome,
)
from wrackline.broker.model.messages.requests import Refused
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.broker.rules.leadership.recovery import Named
from wrackline.broker.rules.placement.topics import RECOVERY_STRATEGY

FORCED = "forced-elections"
POSSIBLE_LOSS = "possible data loss: committed records that only other replicas had are gone"


@dataclass(slots=True)
class _Asked:
    request_id: int
    outcomes: dict[TopicPartition, PartitionOutcome | None]
    """None: not decided yet."""
    deadline_ms: float


class ForcedElections:
    def __init__(self, config: ControllerConfig, recoveries: Recoveries, counts: UncleanRecoveries) -> None:
        self._window_ms = config.unclean_recovery_window_ms
        self._recoveries = recoveries
        self._counts = counts
        self._asked: list[_Asked] = []

    def begin(
        self,
        draft: Draft,
        committed: ClusterImage,
        request_id: int,
        request: ElectLeadersRequest,
        now_ms: float,
    ) -> ElectLeadersResponse | None:
        """The answer where it is known already; None: it comes when logs have been compared."""
        if request.election == ElectionType.DESIGNATED:
            return self._designate(draft, request)
        if request.election != ElectionType.UNCLEAN:
            return ElectLeadersResponse(error=ErrorCode.invalid_request)
        expected = request.partitions
        every = expected is None
        tps = [p.tp for p in draft.image.partitions()] if expected is None else list(dict.fromkeys(expected))
        outcomes: dict[TopicPartition, PartitionOutcome | None] = {}
        for tp in tps:
            outcome = self._elect(draft, committed, tp)
            if not (every and outcome is not None and outcome.error is ErrorCode.election_not_needed):
                outcomes[tp] = outcome
        if None not in outcomes.values():
            return _response(outcomes)
        deadline_ms = now_ms + min(request.timeout_ms, self._window_ms + QUESTION_MS)
        self._asked.append(_Asked(request_id, outcomes, deadline_ms))
        return None

    def _elect(self, draft: Draft, committed: ClusterImage, tp: TopicPartition) -> PartitionOutcome | None:
        partition = draft.image.partition(tp)
        if partition is None:
            return unknown(tp)
        if partition.leader != NO_LEADER:
            return PartitionOutcome(tp, ErrorCode.election_not_needed, f"broker {partition.leader} leads")
        active = draft.active_brokers()
        if change(draft, partition, partition.isr, active).leader != NO_LEADER:
            return PartitionOutcome(tp)
        rules = draft.rules
        if not rules.switches.has_elr or rules.election.proactive_recovery(partition, active) is None:
            offset = draft.next_offset
            after = change(draft, partition, partition.isr, active, unclean_election=True)
            if after.leader == NO_LEADER:
                return _nobody(partition)
            self._recoveries.decisions[offset] = Decision(DecidedBy.OPERATOR)
            return PartitionOutcome(tp, message=POSSIBLE_LOSS)
        known = committed.partition(tp)
        if not self._recoveries.force(committed, partition if known is None else known):
            self._recoveries.give_up(committed, partition)
            return _nobody(partition)
        return None

    def _designate(self, draft: Draft, request: ElectLeadersRequest) -> ElectLeadersResponse:
        expected = request.partitions
        if expected is None or len(expected) != len(request.desired):
            return ElectLeadersResponse(error=ErrorCode.invalid_request)
        named = dict(zip(expected, request.desired, strict=True))
        return ElectLeadersResponse(tuple(self._name(draft, tp, leader) for tp, leader in named.items()))

    def _name(self, draft: Draft, tp: TopicPartition, leader: NodeId) -> PartitionOutcome:
        partition = draft.image.partition(tp)
        if partition is None:
            return unknown(tp)
        if not draft.rules.switches.has_elr:
            why = "this profile has no unclean recovery, so nobody can name a leader: --unclean elects one"
            return PartitionOutcome(tp, ErrorCode.invalid_request, why)
        strategy = self._recoveries.configured(draft.image, partition)
        match draft.rules.recovery.named(strategy, partition, leader, draft.active_brokers()):
            case Named.LEADS:
                self._recoveries.decisions[draft.next_offset] = Decision(DecidedBy.NAMED)
                draft.add(draft.rules.election.recovered(partition, leader))
                return PartitionOutcome(tp, message=POSSIBLE_LOSS)
            case Named.NOT_NEEDED:
                error, why = ErrorCode.election_not_needed, f"broker {partition.leader} leads"
            case Named.NOT_MANUAL:
                error = ErrorCode.invalid_request
                why = (
                    f"{RECOVERY_STRATEGY} of topic {tp.topic!r} is {strategy.value}: the controller elects "
                    "by itself; a person names the leader where it is manual"
                )
            case Named.NO_REPLICA:
                error = ErrorCode.invalid_replica_assignment
                why = f"broker {leader} has no replica; there are {sorted(partition.replicas)}"
            case Named.NOT_LIVE:
                error = ErrorCode.eligible_leaders_not_available
                why = f"broker {leader} is fenced, shutting down or not registered"
        return PartitionOutcome(tp, error, why)

    def settle(self, image: ClusterImage, now_ms: float) -> list[Effect]:
        """Answers to those whose elections are committed in ``image``, or whose time is over."""
        effects: list[Effect] = []
        for asked in list(self._asked):
            late = now_ms >= asked.deadline_ms
            for tp, outcome in asked.outcomes.items():
                if outcome is None:
                    asked.outcomes[tp] = self._outcome(image, tp, late=late)
            if None not in asked.outcomes.values():
                self._asked.remove(asked)
                effects.append(Reply(asked.request_id, _response(asked.outcomes)))
        if self._asked:
            effects.append(SetTimer(FORCED, min(asked.deadline_ms for asked in self._asked)))
        elif effects:
            effects.append(CancelTimer(FORCED))
        return effects

    def _outcome(self, image: ClusterImage, tp: TopicPartition, *, late: bool) -> PartitionOutcome | None:
        partition = image.partition(tp)
        if partition is None:
            return unknown(tp)
        if partition.leader != NO_LEADER:
            return PartitionOutcome(tp, message=POSSIBLE_LOSS if partition.leader_recovery_state else None)
        if not late:
            return None
        self._recoveries.give_up(image, partition)
        self._counts.timed_out += 1
        return _nobody(partition)

    def refuse_all(self, refused: Refused) -> list[Effect]:
        """This controller leads no longer."""
        gone: list[Effect] = [Reply(asked.request_id, refused) for asked in self._asked]
        self._asked.clear()
        return [*gone, CancelTimer(FORCED)]


def _nobody(partition: PartitionImage) -> PartitionOutcome:
    why = f"no replica of {sorted(partition.replicas)} is live and has said how far its log reaches"
    return PartitionOutcome(partition.tp, ErrorCode.eligible_leaders_not_available, why)


def _response(outcomes: dict[TopicPartition, PartitionOutcome | None]) -> ElectLeadersResponse:
    return ElectLeadersResponse(tuple(outcome for outcome in outcomes.values() if outcome is not None))

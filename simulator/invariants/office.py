"""The active controller, looked at as a run goes: what it owes whatever it is asked for.

``commit``       an answer leaves when everything decided before it is committed (K02)
``session``      while a broker is unfenced, a time is set at which its silence is noticed (K06)
``speculation``  when nothing is under way, what the controller decides upon is what is committed
``takeover``     who becomes active gives each broker half a session to find it, and a whole one at most
``resignation``  who is active no longer has refused whoever waits, and waits for nothing himself
``recovery``     whose log decides on a leader is asked for its end until that is heard, in pauses that grow;
                 when enough is heard somebody leads
``leaderless``   no partition waits for a leader while a live broker may lead it (K35)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from wrackline.broker.core.controller.controller import SESSIONS, Controller
from wrackline.broker.core.controller.forced_elections import FORCED
from wrackline.broker.core.controller.periodic import PERIODIC
from wrackline.broker.core.controller.unclean_recovery import RECOVERY, Recoveries
from wrackline.broker.model.effects import Reply, Send, SetTimer
from wrackline.broker.model.events import RequestReceived, ResponseReceived, SendFailed, TimerFired
from wrackline.broker.model.messages.admin import DescribeQuorumRequest, ElectionType, ElectLeadersRequest
from wrackline.broker.model.messages.controller import ControllerRegistrationRequest, GetReplicaLogInfoRequest
from wrackline.broker.model.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from wrackline.broker.model.messages.requests import FetchRequest, Refused, Request
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import NO_LEADER, NodeId, RecoveryStrategy, TopicPartition
from wrackline.simulator.invariants.watchers import HAIR_MS, Scope, Watcher
from wrackline.simulator.world.nodes import SimController
from wrackline.simulator.world.world import StepRecord, World

_RESTS_ON_NOTHING = (
    FetchRequest,
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    ControllerRegistrationRequest,
    DescribeQuorumRequest,
)
"""Answers to these speak of the quorum, not of what the controller decides."""

_OF_OFFICE = frozenset({SESSIONS, RECOVERY, FORCED, *PERIODIC})
"""Timers of an active controller."""


_PAUSE_MS, _LONGEST_PAUSE_MS = 100.0, 2_000.0
"""The first pause before a broker is asked again, and the longest: each is twice the one before."""


@dataclass(slots=True)
class _Peer:
    """A broker that is asked for the ends of its logs."""

    correlation: int | None = None
    """Of the question that is under way."""
    keys: tuple[tuple[UUID, int], ...] = ()
    failures: int = 0
    """Answers one after the other from which something was missing."""
    due_ms: float = 0.0
    """When it may be asked again."""


class Office(Watcher):
    """Looks at the steps of controllers that have effects."""

    scope = Scope.CONTROLLERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._ends: dict[int, int] = {}
        """Request id -> end of the metadata log when all that its answer rests on was decided."""
        self._applied: dict[NodeId, int] = {}
        """What was committed when the controller's images were last compared."""
        self._waits: dict[NodeId, set[int]] = {}
        """Active controller -> requests that are not answered yet."""
        self._active: dict[NodeId, Controller] = {}
        """Controllers that were active after their last step, in this life."""
        self._peers: dict[NodeId, tuple[Recoveries, dict[NodeId, _Peer]]] = {}
        """Active controller -> broker that it has asked for the ends of its logs."""

    def __call__(self, world: World, step: StepRecord) -> None:
        server = world.controllers[step.node]
        core = server.core
        if step.cut or not isinstance(core, Controller):
            return
        was_active = self._active.get(step.node) is core
        if not core.is_active:
            if was_active:
                del self._active[step.node]
                self._look_at_resignation(step, server)
            return
        if not was_active:
            self._active[step.node] = core
            self._waits[step.node] = set()
            self._peers[step.node] = core.recoveries, {}
            self._look_at_takeover(step, server, core)
        self._look_at_answers(step, core)
        self._look_at_recoveries(step, server, core)
        image = core.committed
        if image.zk_migration:  # who was ZooKeeper's member has no session yet
            return
        if SESSIONS not in server.timers and not server.inbox and _has_unfenced(core.speculative):
            self.find(step, "session", f"controller {step.node} will not look whether a broker is silent")
        if image.metadata_offset != self._applied.get(step.node):
            self._applied[step.node] = image.metadata_offset
            if core.log.leo == core.log.high_watermark and core.speculative != image:
                text = f"controller {step.node} decides on something else than what is committed"
                self.find(step, "speculation", text)
            self._look_at_leaders(step, image)
            for topic_id, number in core.recoveries.forced:
                partition = image.partition_by_id(topic_id, number)
                if partition is None or partition.leader != NO_LEADER:
                    text = f"an operator's election of {topic_id}-{number} is over, and not forgotten"
                    self.find(step, "speculation", text)

    def _look_at_takeover(self, step: StepRecord, server: SimController, core: Controller) -> None:
        session_ms, now_ms = core.config.session_timeout_ms, server.local_ms(step.at_ms)
        for effect in step.effects:
            if type(effect) is SetTimer and effect.key == SESSIONS:
                after_ms = effect.at_ms - now_ms
                if not session_ms / 2 - HAIR_MS <= after_ms <= session_ms + HAIR_MS:
                    took = f"is active, and takes brokers for silent in {after_ms} ms"
                    self.find(step, "takeover", f"controller {step.node} {took}, of {session_ms}")

    def _look_at_resignation(self, step: StepRecord, server: SimController) -> None:
        for effect in step.effects:
            if type(effect) is Reply and isinstance(effect.response, Refused):
                self._waits[step.node].discard(effect.request_id)
        if waits := self._waits.pop(step.node):
            self.find(step, "resignation", f"controller {step.node} does not answer {len(waits)} who wait")
        if timers := server.timers.keys() & _OF_OFFICE:
            self.find(step, "resignation", f"controller {step.node} still waits for {sorted(timers)}")

    def _look_at_answers(self, step: StepRecord, core: Controller) -> None:
        event = step.event
        if isinstance(event, RequestReceived) and _decides(event.request):
            self._ends[event.request_id] = core.log.leo
            self._waits[step.node].add(event.request_id)
        for effect in step.effects:
            if type(effect) is Reply and effect.request_id in self._ends:
                end = self._ends.pop(effect.request_id)
                self._waits[step.node].discard(effect.request_id)
                if end > core.log.high_watermark and not isinstance(effect.response, Refused):
                    committed = f"{core.log.high_watermark} of {end} records are committed"
                    text = f"controller {step.node} answers {effect.response}, and {committed}"
                    self.find(step, "commit", text)

    def _look_at_recoveries(self, step: StepRecord, server: SimController, core: Controller) -> None:
        recoveries, peers = self._peers[step.node]
        if recoveries is not core.recoveries:  # another level: all begins anew
            self._peers[step.node] = core.recoveries, (peers := {})
        now_ms, event = server.local_ms(step.at_ms), step.event
        attempts, decides = core.recoveries._attempts, type(event) is TimerFired and event.key == RECOVERY
        if isinstance(event, (ResponseReceived, SendFailed)):
            for broker, peer in peers.items():
                if peer.correlation == event.correlation:
                    peer.correlation, decides = None, True
                    lacks = any(key in attempts and attempts[key].lacks(broker) for key in peer.keys)
                    peer.due_ms = now_ms + min(_PAUSE_MS * 2.0**peer.failures, _LONGEST_PAUSE_MS)
                    peer.failures = peer.failures + 1 if lacks else 0
                    if not lacks:
                        peer.due_ms = now_ms
        for effect in step.effects:
            if type(effect) is Send and isinstance(effect.request, GetReplicaLogInfoRequest):
                peer = peers.setdefault(effect.destination, _Peer())
                if peer.correlation is not None or now_ms < peer.due_ms - HAIR_MS:
                    text = f"asks broker {effect.destination} for ends of logs, and should wait"
                    self.find(step, "recovery", f"controller {step.node} {text}")
                peer.correlation, peer.keys = effect.correlation, effect.request.partitions
        for key, attempt in attempts.items():
            partition = core.speculative.partition_by_id(*key)
            if partition != attempt.partition:
                continue
            for broker in attempt.candidates:
                peer = peers.setdefault(broker, _Peer())
                waits = peer.due_ms >= now_ms - HAIR_MS and RECOVERY in server.timers
                if attempt.lacks(broker) and peer.correlation is None and not waits:
                    text = f"does not ask broker {broker} for the end of {attempt.partition.tp}"
                    self.find(step, "recovery", f"controller {step.node} {text}")
            if decides:
                self._look_at_window(step, core, attempt, now_ms)

    def _look_at_window(self, step: StepRecord, core: Controller, attempt: Any, now_ms: float) -> None:
        """The time for answers is over."""
        over = attempt.strategy is RecoveryStrategy.PROACTIVE and now_ms >= attempt.over_ms
        usable = [end for end in attempt.ends.values() if end.leo >= 0]
        sound = all(
            (broker := core.speculative.brokers.get(end.broker)) is not None
            and broker.active
            and broker.epoch == end.broker_epoch
            for end in attempt.ends.values()
        )
        if over and usable and sound:
            text = f"compares logs of {attempt.partition.tp}, its time is over, and nobody is elected"
            self.find(step, "recovery", f"controller {step.node} {text}")

    def _look_at_leaders(self, step: StepRecord, image: ClusterImage) -> None:
        for partition in image.partitions():
            if partition.leader == NO_LEADER:
                for node in partition.isr or partition.elr:
                    broker = image.brokers.get(node)
                    if broker is not None and broker.active:
                        self.find(step, "leaderless", f"{partition.tp} has no leader; broker {node} may lead")


def _has_unfenced(image: ClusterImage) -> bool:
    return any(not broker.fenced for broker in image.brokers.values())


def _decides(request: Request) -> bool:
    if isinstance(request, ElectLeadersRequest):
        return request.election == ElectionType.PREFERRED  # others are answered when logs were compared
    return not isinstance(request, _RESTS_ON_NOTHING)

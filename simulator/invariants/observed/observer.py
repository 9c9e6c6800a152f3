"""The omniscient observer: the state that the invariants need and no node has (docs/invariants.md).

True high watermark, consumed and acknowledged records, who has lost data, who has proved itself complete. It
is built from the effects that were carried out and from the disks, after every step, and never touches a
core.

The central figure is ``match``: how far a replica's log is the same as what was ever committed. It is kept up
to date from appends and truncations, so that most invariants are one comparison per touched replica.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.effects import (
    Append,
    CancelTimer,
    CreateLog,
    DeleteLog,
    DeleteSnapshot,
    Effect,
    Flush,
    MoveLogStart,
    NoReply,
    Reply,
    ResetLog,
    Send,
    SetTimer,
    Trace,
    Truncate,
    WriteEpochs,
    WriteSnapshot,
)
from wrackline.broker.model.events import Boot, RequestReceived
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
)
from wrackline.broker.model.messages.quorum import VoteRequest
from wrackline.broker.model.messages.requests import ProduceRequest, ProduceResponse, Request
from wrackline.broker.model.types import EVERY_WRITE, METADATA, NodeId, TopicPartition
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.invariants.observed.partition import Mark, ObservedPartition
from wrackline.simulator.invariants.observed.registrations import Registrations
from wrackline.simulator.invariants.observed.step import (
    APPENDS,
    CUTS,
    DELETES,
    METADATA_APPENDS,
    Before,
    ObservedStep,
)
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.world import StepRecord, World

_UNSEEN = frozenset({SetTimer, CancelTimer, Send, Flush, WriteEpochs})
"""Effects that change nothing that is looked at here; the most frequent ones."""
REQUESTS = frozenset(
    {
        ProduceRequest,
        AlterPartitionRequest,
        BrokerHeartbeatRequest,
        AllocateProducerIdsRequest,
        VoteRequest,
    }
)
"""Requests whose answers an invariant looks at."""
_NOTES = frozenset({"follower", "fetch_rx", "ack", "flush"})
"""Kinds of lines of a trace that tell of a replica without a change of it, unless ``Before`` is another."""
_LOG_FLAGS = {Append: APPENDS, Truncate: CUTS, ResetLog: CUTS, DeleteLog: DELETES}
_SILENT = frozenset({"receive", "closed", "refused"})
"""Kinds of steps in which no core does anything."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Observer(Registrations):
    """``observe`` after every step, in order."""

    def __init__(self, world: World, profile: str = "kip966") -> None:
        super().__init__(world, profile)
        self._requests: dict[tuple[NodeId, int], tuple[Request, int]] = {}
        self._names: dict[str, TopicPartition] = {}
        self._voters: dict[NodeId, tuple[object, ...]] = {}
        """What each controller was as a voter after its last step."""

    # --- one step -------------------------------------------------------------------------------------------

    def observe(self, step: StepRecord) -> ObservedStep | None:
        """Returns the outcome of the step; None: it touched nothing that is looked at here."""
        kind, event, effects = step.kind, step.event, step.effects
        if kind in _SILENT:
            return None
        node = step.node
        if type(event) is RequestReceived and type(event.request) in REQUESTS:
            self._requests[node, event.request_id] = (event.request, self.metadata_offset)
        changed = step.cut or kind in ("down", "fault")
        controls = node in self.world.controllers
        voter = self._changed_voter(node) if controls and effects else None
        if not (changed or kind == "boot" or voter is not None or self._concern(node, effects)) and not (
            controls and self._commits(node)
        ):
            return None
        seen = ObservedStep(step, voter=voter, quorum=voter is not None)
        touched = self._effects(seen, effects)
        if isinstance(event, Boot):
            self._booted(node, event)
            seen.snapshots = bool(event.snapshots)
            touched.update({tp: True for tp in event.logs if tp != METADATA})
        if changed:
            self._disk_changed(node)
            seen.disks = True
            if kind == "fault" and step.note in ("wipe", "stale restore"):
                self.replaced.add(node)
        if controls:
            voted = any(type(request) is VoteRequest for request, *_ in seen.answers)
            if voter is None and (voted or seen.logs & CUTS):
                seen.voter = self._voter(node)
                seen.quorum = seen.voter is not None
            self._follow_metadata(seen)
        elif touched:
            broker = self.broker(node)
            for tp, changes in touched.items():
                replica = None if broker is None else broker.replica(tp)
                if replica is not None:
                    self._touched(seen, replica, changes)
        return seen

    def _concern(self, node: NodeId, effects: Sequence[Effect]) -> bool:
        """Tells whether anything of these effects is looked at here."""
        requests = self._requests
        for effect in effects:
            kind = type(effect)
            if kind not in _UNSEEN and (kind is not Reply or (node, effect.request_id) in requests):  # type: ignore[union-attr]
                return True
        return False

    def _commits(self, node: NodeId) -> bool:
        """Tells whether the controller knows of more committed metadata than was looked at."""
        controller = self.controller(node)
        return controller is not None and controller.committed.metadata_offset > self.metadata_offset

    def _voter(self, node: NodeId) -> Controller | None:
        """The controller, where anything can be said of its quorum."""
        return None if self.replaced.intersection(self.world.controllers) else self.controller(node)

    def _changed_voter(self, node: NodeId) -> Controller | None:
        """The controller, where it is another voter than after its last step: all that invariants of the
        quorum look at, but the effects and answers of a step."""
        voter = self._voter(node)
        if voter is None:
            return None
        raft, metadata = voter.raft, self.metadata
        now = (
            voter,
            raft.role,
            raft.state,
            raft.leadership is None,
            raft.log.high_watermark,
            raft.log.leo,
            metadata.committed_end,
            metadata.match.get(node, 0),
        )
        if now == self._voters.get(node):
            return None
        self._voters[node] = now
        return voter

    def _disk_changed(self, node: NodeId) -> None:
        """A power cut, wipe or restore of a node whose process is gone."""
        if node not in self.world.brokers and node not in self.world.controllers:
            return
        for tp, known in self.partitions.items():
            self._recheck(node, tp, known, self.log(node, tp))
        log = self.log(node, METADATA)
        self.metadata.match[node] = 0
        if log is not None:
            self.metadata.extend(node, log)

    def _recheck(
        self, node: NodeId, tp: TopicPartition, known: ObservedPartition, log: SimLog | None
    ) -> None:
        was, old = self.before.get((node, tp)), known.match.get(node, 0)
        known.match[node] = 0
        now = 0 if log is None else known.extend(node, log)
        leo = 0 if log is None else log.leo
        if now < old or (was is not None and leo < was.flushed):
            boot = self.boots.get(node)
            known.impaired[node] = 0 if boot is None else self._lives[boot.incarnation_id]

    def _booted(self, node: NodeId, boot: Boot) -> None:
        self.boots[node] = boot
        self.boot_of[boot.incarnation_id] = boot
        self._lives[boot.incarnation_id] = len(self._lives) + 1
        for key in [key for key in self._requests if key[0] == node]:
            del self._requests[key]
        for who, tp in [key for key in self.before if key[0] == node]:
            leo = boot.logs[tp].leo if tp in boot.logs else 0
            self.before[who, tp] = self.before[who, tp]._replace(leo=leo, flushed=leo)

    # --- effects --------------------------------------------------------------------------------------------

    def _effects(self, seen: ObservedStep, effects: Sequence[Effect]) -> dict[TopicPartition, bool]:
        """Returns the partitions that the effects tell of, and of each whether it is surely not as before."""
        node = seen.node
        touched: dict[TopicPartition, bool] = {}
        for effect in effects:
            kind = type(effect)
            if kind in _UNSEEN:
                continue
            match effect:
                case Trace():
                    name = effect.fields.get("tp")
                    if name is not None:
                        tp = self._names.get(name) or self._named(name)
                        touched[tp] = touched.get(tp, False) or effect.kind not in _NOTES
                case Append() | CreateLog() | DeleteLog() | Truncate() | ResetLog():
                    self._log_changed(node, effect)
                    flag = _LOG_FLAGS.get(kind, 0)
                    if effect.tp != METADATA:
                        touched[effect.tp] = True
                    elif kind is ResetLog:
                        seen.snapshots = True
                    elif kind is Append:
                        flag = METADATA_APPENDS if node in self.world.brokers else 0
                    seen.logs |= flag
                case WriteSnapshot() | DeleteSnapshot():
                    seen.snapshots = True
                case MoveLogStart():
                    seen.snapshots |= effect.tp == METADATA
                case Reply():
                    self._replied(seen, effect)
                case NoReply():
                    self._requests.pop((node, effect.request_id), None)
                case _:
                    pass
        return touched

    def _named(self, name: str) -> TopicPartition:
        topic, _, number = name.rpartition("-")
        tp = self._names[name] = TopicPartition(topic, int(number))
        return tp

    def _log_changed(
        self, node: NodeId, effect: Append | CreateLog | DeleteLog | Truncate | ResetLog
    ) -> None:
        known = self.metadata if effect.tp == METADATA else self.partitions.get(effect.tp)
        if known is None:
            return
        match effect:
            case Append():
                log = self.log(node, effect.tp)
                if log is not None and known.match.get(node, 0) <= effect.base_offset:
                    known.extend(node, log)
            case Truncate():
                known.match[node] = min(known.match.get(node, 0), effect.to_offset)
            case ResetLog() | CreateLog() | DeleteLog():
                known.match[node] = 0

    def _replied(self, seen: ObservedStep, reply: Reply) -> None:
        request, received = self._requests.pop((seen.node, reply.request_id), (None, -1))
        if request is not None and type(request) is not ProduceRequest:
            seen.answers.append((request, reply.response, received))
        if not isinstance(request, ProduceRequest) or not isinstance(reply.response, ProduceResponse):
            return
        for result in reply.response.partitions:
            if result.error.value == 0:
                self.acknowledged(seen, result.tp, request.acks, result.base_offset)

    def acknowledged(self, seen: ObservedStep, tp: TopicPartition, acks: int, base_offset: int) -> None:
        log = self.log(seen.node, tp)
        at = -1 if log is None else log.index_of(base_offset)
        there = log is not None and at < len(log.batches)
        mark = Mark.of(log.batches[at]) if there and log is not None else None
        if mark is not None and mark.base != base_offset:
            mark = None
        seen.acks.append((tp, acks, mark, base_offset))
        known = self.partitions.get(tp)
        if mark is None or known is None or acks != -1 or mark.epoch < known.lost_epoch:
            return
        if mark not in known.acked[-8:]:
            insort(known.acked, mark)

    # --- replicas -------------------------------------------------------------------------------------------

    def _touched(self, seen: ObservedStep, replica: Replica, changes: bool) -> None:
        """``changes``: it is surely not as before; else that is to be looked at."""
        node, tp, leader = seen.node, replica.tp, replica.leader
        key = (node, tp)
        was = self.before.get(key)
        known, log = self.partitions.get(tp), self.log(node, tp)
        every_write = replica.ctx.config.flush_mode is EVERY_WRITE
        now = Before(
            replica.ctx.incarnation,
            replica.topic_id,
            leader is not None,
            replica.leader_epoch,
            replica.partition_epoch,
            replica.high_watermark,
            frozenset() if leader is None else leader.isr,
            replica.log.leo,
            replica.log.flushed if every_write else replica.log.leo,
        )
        changes = changes or now != was
        if changes:
            self.before[key] = now
            seen.replicas.append((replica, was))
        if known is None or log is None or known.topic_id != replica.topic_id:
            return
        if leader is not None and replica.leader_epoch >= known.lost_epoch:
            grown = len(seen.grown)
            self._led(seen, known, replica, was, log)
            if len(seen.grown) > grown and not changes:
                seen.replicas.append((replica, was))
        if known.match.get(node, 0) < known.committed_end:
            known.extend(node, log)
        if known.match.get(node, 0) >= log.leo:
            known.suspects.discard(node)

    def _led(
        self, seen: ObservedStep, known: ObservedPartition, replica: Replica, was: Before | None, log: SimLog
    ) -> None:
        leader = replica.leader
        assert leader is not None
        if known.commit(log, replica.high_watermark):
            seen.grown.append(known)
            for other in replica.replicas:
                theirs = self.log(other, known.tp)
                if theirs is not None:
                    known.extend(other, theirs)
        high_watermark = replica.high_watermark
        if was is not None and was.leads and was.leader_epoch == replica.leader_epoch:
            high_watermark = was.high_watermark  # as it was when the fetch came
        for follower in list(known.unproved):
            state = leader.followers.get(follower)
            if (
                state is not None
                and state.fetched_in_epoch == replica.leader_epoch
                and state.broker_epoch == self._known_epoch(follower)
                and state.leo >= max(high_watermark, leader.leso)
            ):
                known.unproved.discard(follower)

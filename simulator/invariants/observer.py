"""What an omniscient observer knows: the state that the invariants need and no node has (docs/invariants.md).

True high watermark, consumed and acknowledged records, who has lost data, who has proved itself complete. It
is built from the effects that were carried out and from the disks, after every step, and never touches a
core.

The central figure is ``match``: how far a replica's log is the same as what was ever committed. It is kept up
to date from appends and truncations, so that most invariants are one comparison per touched replica.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from wrackline.broker.core.broker import Broker
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
from wrackline.broker.model.image import BrokerImage, ClusterImage, PartitionImage, changed
from wrackline.broker.model.messages import ProduceRequest, ProduceResponse, Request
from wrackline.broker.model.records import PartitionChangeRecord, decode
from wrackline.broker.model.types import (
    EVERY_WRITE,
    METADATA,
    NO_EPOCH,
    NO_LEADER,
    NodeId,
    RecoveryStrategy,
    TopicPartition,
)
from wrackline.broker.rules.election import RECOVERING
from wrackline.simulator.invariants.observed_partition import Mark, PartitionGhost
from wrackline.simulator.invariants.observed_step import Before, Change, Seen
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.world import StepRecord, World

_UNSEEN = frozenset({SetTimer, CancelTimer, Send, Flush, WriteEpochs})
"""Effects that change nothing that is looked at here; the most frequent ones."""
_SILENT = frozenset({"receive", "closed", "refused"})
"""Kinds of steps in which no core does anything."""


class Ghost:
    """``observe`` after every step, in order. ``image`` is the committed metadata nobody can deny any
    more."""

    def __init__(self, world: World, profile: str = "kip966") -> None:
        self.world = world
        self.profile = profile
        self.image = ClusterImage()
        """The controller's own object, which moves on: never compare it with itself."""
        self.metadata_offset = -1
        """Up to here ``image`` was looked at."""
        self.metadata = PartitionGhost(METADATA, UUID(int=1))
        self.partitions: dict[TopicPartition, PartitionGhost] = {}
        self.before: dict[tuple[NodeId, TopicPartition], Before] = {}
        self.boots: dict[NodeId, Boot] = {}
        self.boot_of: dict[UUID, Boot] = {}
        """By incarnation: a registration may be committed when the life that asked for it is over."""
        self._lives: dict[UUID, int] = {}
        """Incarnations in the order of their starts, from 1 on; those that began before the ghost did count
        as 0."""
        self.replaced: set[NodeId] = set()
        """Nodes whose disk was wiped or set back: no quorum can promise anything about such a voter."""
        self._known: dict[TopicPartition, PartitionImage] = {}
        self._known_brokers: dict[NodeId, BrokerImage] = {}
        self._requests: dict[tuple[NodeId, int], tuple[Request, int]] = {}
        self._names: dict[str, TopicPartition] = {}

    # --- looking things up ----------------------------------------------------------------------------------

    def of(self, image: PartitionImage) -> PartitionGhost:
        """The partition's ghost; a new one when the topic was created anew."""
        known = self.partitions.get(image.tp)
        if known is None or known.topic_id != image.topic_id:
            known = self.partitions[image.tp] = PartitionGhost(image.tp, image.topic_id)
        return known

    def log(self, node: NodeId, tp: TopicPartition) -> SimLog | None:
        server = self.world.brokers.get(node) or self.world.controllers.get(node)
        return None if server is None else server.disk.logs.get(tp)

    def broker(self, node: NodeId) -> Broker | None:
        """None: it is down, or no broker."""
        server = self.world.brokers.get(node)
        return None if server is None else server.core

    def controller(self, node: NodeId) -> Controller | None:
        server = self.world.controllers.get(node)
        return None if server is None else server.core

    def running(self, node: NodeId, tp: TopicPartition) -> Replica | None:
        """Process up, registered, role assigned: the replica, else None."""
        server, known = self.world.brokers.get(node), self.image.brokers.get(node)
        core = None if server is None else server.core
        if core is None or known is None or core.broker_epoch != known.epoch:
            return None
        replica = core.replica(tp)
        return replica if replica is not None and replica.leader_epoch != NO_EPOCH else None

    def current(self, replica: Replica) -> PartitionImage | None:
        """The committed registration, if ``replica`` is its leader and not a stale one."""
        image = self.image.partition(replica.tp)
        leads = replica.leader is not None and image is not None
        leads = leads and image.leader_epoch == replica.leader_epoch  # type: ignore[union-attr]
        return image if leads else None

    def lossy_limit(self, tp: TopicPartition) -> int:
        """With so many replicas impaired at once, records may be lost. Only kip966 promises more than one."""
        return self.image.min_isr(tp) if self.profile == "kip966" else 1

    def excused(self, image: PartitionImage) -> bool:
        known = self.partitions.get(image.tp)
        if known is None or not known.impaired:
            return False
        return len(known.impaired.keys() & image.replicas) >= self.lossy_limit(image.tp)

    def concerned(self, seen: Seen) -> list[tuple[PartitionImage, PartitionGhost]]:
        """Partitions of which a log, the registration or the committed end is another than before."""
        if seen.concerned is None:
            if seen.disks or seen.brokers_changed:
                tps = dict.fromkeys(self.partitions)
            else:
                tps = dict.fromkeys([change.after.tp for change in seen.changes])
                tps.update(dict.fromkeys([replica.tp for replica, _ in seen.replicas]))
            pairs = [(self.image.partition(tp), self.partitions.get(tp)) for tp in tps]
            seen.concerned = [
                (image, known) for image, known in pairs if image is not None and known is not None
            ]
        return seen.concerned

    # --- one step -------------------------------------------------------------------------------------------

    def observe(self, step: StepRecord) -> Seen | None:
        """What the step came to; None: it touched nothing that is looked at here."""
        kind, event, effects = step.kind, step.event, step.effects
        if kind in _SILENT:
            return None
        node = step.node
        if type(event) is RequestReceived:
            self._requests[node, event.request_id] = (event.request, self.metadata_offset)
        changed = step.cut or kind in ("down", "fault")
        controls = node in self.world.controllers
        if not effects and not changed and kind != "boot" and not controls:
            return None
        seen = Seen(step)
        touched = self._effects(seen, effects)
        if isinstance(event, Boot):
            self._booted(node, event)
            seen.snapshots = bool(event.snapshots)
            touched.update(dict.fromkeys(tp for tp in event.logs if tp != METADATA))
        if changed:
            self._disk_changed(node)
            seen.disks = True
            if kind == "fault" and step.note in ("wipe", "stale restore"):
                self.replaced.add(node)
        if controls:
            seen.quorum = bool(effects)
            if seen.quorum and not self.replaced.intersection(self.world.controllers):
                seen.voter = self.controller(node)
            self._metadata(seen)
        elif touched:
            broker = self.broker(node)
            for tp in touched:
                replica = None if broker is None else broker.replica(tp)
                if replica is not None:
                    self._touched(seen, replica)
        return seen

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

    def _recheck(self, node: NodeId, tp: TopicPartition, known: PartitionGhost, log: SimLog | None) -> None:
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

    def _effects(self, seen: Seen, effects: Sequence[Effect]) -> dict[TopicPartition, None]:
        node = seen.node
        touched: dict[TopicPartition, None] = {}
        for effect in effects:
            kind = type(effect)
            if kind in _UNSEEN:
                continue
            match effect:
                case Trace():
                    name = effect.fields.get("tp")
                    if name is not None:
                        tp = self._names.get(name)
                        touched[tp if tp is not None else self._named(name)] = None
                case Append() | CreateLog() | DeleteLog() | Truncate() | ResetLog():
                    seen.logs = True
                    self._log_changed(node, effect)
                    if effect.tp != METADATA:
                        touched[effect.tp] = None
                    elif isinstance(effect, ResetLog):
                        seen.snapshots = True
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

    def _replied(self, seen: Seen, reply: Reply) -> None:
        request, received = self._requests.pop((seen.node, reply.request_id), (None, -1))
        if request is not None:
            seen.answers.append((request, reply.response, received))
        if not isinstance(request, ProduceRequest) or not isinstance(reply.response, ProduceResponse):
            return
        for result in reply.response.partitions:
            if result.error.value != 0:
                continue
            log = self.log(seen.node, result.tp)
            at = -1 if log is None else log.index_of(result.base_offset)
            there = log is not None and at < len(log.batches)
            mark = Mark.of(log.batches[at]) if there and log is not None else None
            if mark is not None and mark.base != result.base_offset:
                mark = None
            seen.acks.append((result.tp, request.acks, mark, result.base_offset))
            known = self.partitions.get(result.tp)
            if mark is None or known is None or request.acks != -1 or mark.epoch < known.lost_epoch:
                continue
            if mark not in known.acked[-8:]:
                insort(known.acked, mark)

    # --- metadata -------------------------------------------------------------------------------------------

    def _metadata(self, seen: Seen) -> None:
        controller = self.controller(seen.node)
        if controller is None or controller.committed.metadata_offset <= self.metadata_offset:
            return
        before = self.metadata_offset
        self.image = image = controller.committed
        self.metadata_offset = image.metadata_offset
        seen.committed = True
        log = self.log(seen.node, METADATA)
        if log is not None and self.metadata.commit(log, image.metadata_offset + 1):
            self.metadata.extend(seen.node, log)
        self._brokers_changed(seen)
        committed = _partition_records(seen.step.effects, before)
        for partition in image.partitions():
            old = self._known.get(partition.tp)
            if old is partition or old == partition:
                continue
            if old is not None and old.topic_id != partition.topic_id:
                old = None
            self._known[partition.tp] = partition
            records = committed.get((str(partition.topic_id), partition.tp.partition), ())
            seen.changes.append(Change(old, partition, len(records)))
            self._partition_changed(self._passed(old, records[:-1]), partition)

    def _passed(
        self, old: PartitionImage | None, records: Sequence[Mapping[str, Any]]
    ) -> PartitionImage | None:
        """One commit may carry several changes of a partition, like an election and the fencing of the
        elected: what was true in between counts too. Returns the image before the last of them."""
        for fields in records:
            record = decode(orjson.dumps(fields))
            if old is None or not isinstance(record, PartitionChangeRecord):
                break
            between = changed(old, record)
            self._partition_changed(old, between)
            old = between
        return old

    def _brokers_changed(self, seen: Seen) -> None:
        for node, broker in self.image.brokers.items():
            old = self._known_brokers.get(node)
            if old == broker:
                continue
            self._known_brokers[node] = broker
            seen.brokers_changed = True
            if old is None or old.epoch != broker.epoch:
                seen.registered.append((old, broker))
            if old is not None and old.epoch != broker.epoch and not self._clean(broker, old.epoch):
                for known in self.partitions.values():
                    known.unproved.add(node)

    def _clean(self, broker: BrokerImage, former_epoch: int) -> bool:
        boot = self.boot_of.get(broker.incarnation)
        return boot is not None and boot.previous_broker_epoch == former_epoch

    def _partition_changed(self, old: PartitionImage | None, new: PartitionImage) -> None:
        known = self.of(new)
        min_isr = self.image.min_isr(new.tp)
        joined = set(new.isr) - set(() if old is None else old.isr)
        if old is None or set(old.replicas) != set(new.replicas):
            known.below_min |= len(new.isr) < min_isr
        elif min_isr > known.min_isr:
            known.below_min |= len(old.isr) < min_isr
        known.min_isr = min_isr
        uncleanly = new.leader_recovery_state == RECOVERING and new.leader != NO_LEADER
        if uncleanly and (old is None or old.leader != new.leader):
            known.below_min = True
            known.unproved.discard(new.leader)
            if self.excused(new) or self._unclean_election(new.tp):
                self._give_up(known, new)
        elif new.leader != NO_LEADER and (old is None or old.leader != new.leader) and self.excused(new):
            self._give_up(known, new)
        if len(new.isr) >= min_isr:
            known.below_min = False
        for node in joined:
            if node in known.impaired and self._registered_life(node) > known.impaired[node]:
                del known.impaired[node]
        known.suspects -= joined

    def _registered_life(self, node: NodeId) -> int:
        """What joins an ISR is the life that is registered. After a crash that is, until its session ends or
        the next life registers, the one that is over: a proposal that was under way is accepted rightly, and
        brings nothing back of what the crash took."""
        broker = self.image.brokers.get(node)
        return 0 if broker is None else self._lives.get(broker.incarnation, 0)

    def _unclean_election(self, tp: TopicPartition) -> bool:
        """Loss is allowed: by the topic's setting, or by a strategy that waits for nobody (R27)."""
        if self.world.options.controller.get("unclean_recovery_strategy") is RecoveryStrategy.PROACTIVE:
            return True
        return self.image.setting(tp.topic, "unclean.leader.election.enable") == "true"

    def _give_up(self, known: PartitionGhost, image: PartitionImage) -> None:
        """The leader's log is the truth from here on."""
        leader = image.leader
        log = self.log(leader, known.tp)
        match = 0 if log is None else known.extend(leader, log)
        if match < known.committed_end:
            logs = {node: self.log(node, known.tp) for node in image.replicas if node != leader}
            known.give_up(
                match, image.leader_epoch, {node: log.leo for node, log in logs.items() if log is not None}
            )
        known.impaired.pop(leader, None)
        known.suspects.discard(leader)

    # --- replicas -------------------------------------------------------------------------------------------

    def _touched(self, seen: Seen, replica: Replica) -> None:
        node, tp, leader = seen.node, replica.tp, replica.leader
        key = (node, tp)
        was = self.before.get(key)
        known, log = self.partitions.get(tp), self.log(node, tp)
        every_write = replica.ctx.config.flush_mode is EVERY_WRITE
        self.before[key] = Before(
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
        seen.replicas.append((replica, was))
        if known is None or log is None or known.topic_id != replica.topic_id:
            return
        if leader is not None and replica.leader_epoch >= known.lost_epoch:
            self._led(seen, known, replica, was, log)
        if known.match.get(node, 0) < known.committed_end:
            known.extend(node, log)
        if known.match.get(node, 0) >= log.leo:
            known.suspects.discard(node)

    def _led(
        self, seen: Seen, known: PartitionGhost, replica: Replica, was: Before | None, log: SimLog
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

    def _known_epoch(self, node: NodeId) -> int:
        broker = self._known_brokers.get(node)
        return NO_EPOCH if broker is None else broker.epoch


def _partition_records(
    effects: Sequence[Effect], after: int
) -> dict[tuple[str, int], list[Mapping[str, Any]]]:
    """(topic id, partition) -> the records of it that were committed past offset ``after``, in their
    order."""
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for effect in effects:
        if isinstance(effect, Trace) and effect.kind == "ctl_commit" and effect.fields["offset"] > after:
            record = effect.fields["record"]
            if record["type"] in ("PartitionRecord", "PartitionChangeRecord"):
                found.setdefault((record["topic_id"], record["partition_id"]), []).append(record)
    return found

"""Follows the committed registrations of brokers and partitions: who joined an ISR, who was elected, what was
given up by an election that may lose records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any
from uuid import UUID

import orjson

from wrackline.broker.model.batches.batch import values_of
from wrackline.broker.model.effects import Effect, Trace
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage, changed
from wrackline.broker.model.metadata.records import PartitionChangeRecord, decode
from wrackline.broker.model.types import (
    METADATA,
    NO_EPOCH,
    NO_LEADER,
    NodeId,
    RecoveryStrategy,
    TopicPartition,
)
from wrackline.broker.model.values import mypyc_attr
from wrackline.broker.rules.leadership.election import RECOVERING
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.partition import ObservedPartition
from wrackline.simulator.invariants.observed.step import Change, ObservedStep
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.world import World

PartitionRecords = Mapping[tuple[str, int], Sequence[Mapping[str, Any]]]
"""(topic id, partition) -> records of the metadata log, in their order."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Registrations(ObservedCluster):
    """The part of an Observer that looks at committed metadata."""

    def __init__(self, world: World, profile: str) -> None:
        super().__init__(world, profile)
        self.metadata_offset = -1
        """The offset of the metadata log up to which ``image`` was looked at."""
        self._lives: dict[UUID, int] = {}
        """Incarnation -> its number in the order of starts, from 1 on. Those that began before the observer
        are not in it and count as 0."""
        self._known: dict[TopicPartition, PartitionImage] = {}
        self._known_brokers: dict[NodeId, BrokerImage] = {}
        self._level: int | None = None
        self._taken_over: dict[NodeId, UUID] = {}
        """Which life of a broker there was when a controller took over from ZooKeeper."""

    def _follow_metadata(self, seen: ObservedStep) -> None:
        controller = self.controller(seen.node)
        if controller is None and seen.step.cut:
            controller = self.world.controllers[seen.node].last_core  # it committed this, and then died
        if controller is None or controller.committed.metadata_offset <= self.metadata_offset:
            return
        before = self.metadata_offset
        self.image = image = controller.committed
        self.metadata_offset = image.metadata_offset
        seen.committed = True
        log = self.log(seen.node, METADATA)
        if log is not None and self.metadata.commit(log, image.metadata_offset + 1):
            self.metadata.extend(seen.node, log)
        effects = seen.step.effects
        if seen.step.cut and log is not None:  # what it told ends in the middle; its log is whole
            effects = tuple(_commits_of(log, before, image.metadata_offset))
        early = frozenset[NodeId]()
        former: PartitionRecords = {}
        """Of the same commit, under the level before."""
        if image.level != self._level:
            self._level = image.level
            earlier = _committed_until_level(effects)
            former = _partition_records(earlier, before)
            self._begin_anew(former)
            early = _registered(earlier, before)
        self._brokers_changed(seen, early)
        committed = _partition_records(effects, before)
        min_isr_set = _has_set_min_isr(effects, before)
        for partition in image.partitions():
            old = self._known.get(partition.tp)
            if old is partition or old == partition:
                continue
            if old is not None and old.topic_id != partition.topic_id:
                old = None
            self._known[partition.tp] = partition
            key = str(partition.topic_id), partition.tp.partition
            records, under_former = committed.get(key, ()), len(former.get(key, ()))
            seen.changes.append(Change(old, partition, len(records)))
            if min_isr_set:
                self.of(partition).min_isr = 0  # it may have been lower in between
            if under_former:
                below_min = self.of(partition).below_min
                old = self._passed(old, records[:under_former])
                self.of(partition).below_min = below_min
            if under_former < len(records) or not records:
                self._partition_changed(self._passed(old, records[under_former:-1]), partition)
            self.of(partition).min_isr = image.min_isr(partition.tp)

    def _passed(
        self, old: PartitionImage | None, records: Sequence[Mapping[str, Any]]
    ) -> PartitionImage | None:
        """One commit may carry several changes of a partition, like an election and the fencing of the
        elected: what was true in between counts too. Returns the image before the last of them."""
        for between in _images(old, records):
            self._partition_changed(old, between)
            old = between
        return old

    def _begin_anew(self, earlier: PartitionRecords) -> None:
        """The metadata has another level: what its rules promise, they promise from here on. Nobody was
        remembered who left an ISR below MinISR, and who came back uncleanly has been believed. ``earlier``:
        the records of each partition that the same commit has before the level."""
        for tp, known in self.partitions.items():
            partition = self._known.get(tp)
            known.unproved.clear()
            if partition is not None:
                records = earlier.get((str(partition.topic_id), tp.partition), ())
                *_, at_level = (partition, *_images(partition, records))
                known.below_min |= len(at_level.isr) < self.image.min_isr(tp)

    def _brokers_changed(self, seen: ObservedStep, early: Set[NodeId]) -> None:
        """``early``: those that the same commit registered under the level before: they are believed, as
        ever."""
        for node, broker in self.image.brokers.items():
            old = self._known_brokers.get(node)
            if old == broker:
                continue
            self._known_brokers[node] = broker
            seen.brokers_changed = True
            if old is None or old.epoch != broker.epoch:
                seen.registered.append((old, broker))
            if broker.active:
                self.coming.discard(node)
            if broker.from_zookeeper and old is None and node in self.boots:
                self._taken_over[node] = self.boots[node].incarnation_id
            if old is None or old.epoch == broker.epoch or node in early:
                continue
            if not self._clean(broker, old):
                for known in self.partitions.values():
                    known.unproved.add(node)

    def _clean(self, broker: BrokerImage, former: BrokerImage) -> bool:
        if broker.id not in self.world.brokers:
            return True  # a guest of a drill, which has no log
        if former.from_zookeeper and self._taken_over.get(broker.id) == broker.incarnation:
            return True  # this life was there, and has lost nothing
        boot = self.boot_of.get(broker.incarnation)
        return boot is not None and boot.previous_broker_epoch == former.epoch

    def begin_with_members(self) -> None:
        """A controller has taken over the members of each ISR, be they there or not: who of them lacks what
        is committed has lost it by now."""
        self.coming |= {node for partition in self.world.image.partitions() for node in partition.isr}
        for tp, known in self.partitions.items():
            lives = {node: self._lives[boot.incarnation_id] for node, boot in self.boots.items()}
            complete = {node for node in lives if self._has_committed(node, tp, known)}
            known.impaired = {node: life for node, life in lives.items() if node not in complete}

    def _has_committed(self, node: NodeId, tp: TopicPartition, known: ObservedPartition) -> bool:
        log = self.log(node, tp)
        return log is not None and known.extend(node, log) >= known.committed_end

    def _partition_changed(self, old: PartitionImage | None, new: PartitionImage) -> None:
        known = self.of(new)
        min_isr = self.image.min_isr(new.tp)
        joined = set(new.isr) - set(() if old is None else old.isr)
        if old is None or set(old.replicas) != set(new.replicas):
            known.below_min |= len(new.isr) < min_isr
        elif min_isr > known.min_isr:  # raised in this commit, before or after what else it changes
            known.below_min |= min(len(old.isr), len(new.isr)) < min_isr
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
        """Returns the life of the node that is registered, since that is what joins an ISR. After a crash
        that is, until its session ends or the next life registers, the one that is over: a proposal that was
        under way is accepted rightly, and brings nothing back of what the crash took."""
        broker = self.image.brokers.get(node)
        return 0 if broker is None else self._lives.get(broker.incarnation, 0)

    def _unclean_election(self, tp: TopicPartition) -> bool:
        """Loss is allowed: by the topic's setting, or by a strategy that waits for nobody (R27)."""
        if self.world.options.controller.get("unclean_recovery_strategy") is RecoveryStrategy.PROACTIVE:
            return True
        return self.image.setting(tp.topic, "unclean.leader.election.enable") == "true"

    def _give_up(self, known: ObservedPartition, image: PartitionImage) -> None:
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

    def _known_epoch(self, node: NodeId) -> int:
        broker = self._known_brokers.get(node)
        return NO_EPOCH if broker is None else broker.epoch


def _images(image: PartitionImage | None, records: Sequence[Mapping[str, Any]]) -> Iterator[PartitionImage]:
    """Yields the partition after each of these changes, up to a record that makes it anew."""
    for fields in records:
        record = decode(orjson.dumps(fields))
        if image is None or not isinstance(record, PartitionChangeRecord):
            return
        image = changed(image, record)
        yield image


def _committed_until_level(effects: Sequence[Effect]) -> Sequence[Effect]:
    """The effects before the last commit of a level."""
    levels = [
        number
        for number, effect in enumerate(effects)
        if isinstance(effect, Trace)
        and effect.kind == "ctl_commit"
        and effect.fields["record"]["type"] == "FeatureLevelRecord"
    ]
    return effects[: levels[-1]] if levels else ()


def _commits_of(log: SimLog, after: int, upto: int) -> Iterator[Effect]:
    """Yields the trace of each record of a metadata log past offset ``after``, up to ``upto``."""
    for stored in log.batches[log.index_of(after + 1) :]:
        for offset, value in values_of(stored.header, stored.data):
            if after < offset <= upto:
                yield Trace("ctl_commit", {"offset": offset, "record": orjson.loads(value)})


def _committed(effects: Sequence[Effect], after: int) -> Iterator[Mapping[str, Any]]:
    """Yields the records that were committed past offset ``after``, in their order."""
    for effect in effects:
        if isinstance(effect, Trace) and effect.kind == "ctl_commit" and effect.fields["offset"] > after:
            yield effect.fields["record"]


def _registered(effects: Sequence[Effect], after: int) -> frozenset[NodeId]:
    """The brokers whose registration was committed past offset ``after``."""
    return frozenset(
        NodeId(record["broker_id"])
        for record in _committed(effects, after)
        if record["type"] == "RegisterBrokerRecord"
    )


def _has_set_min_isr(effects: Sequence[Effect], after: int) -> bool:
    """Tells whether past offset ``after`` a setting of MinISR was committed."""
    return any(record.get("name") == "min.insync.replicas" for record in _committed(effects, after))


def _partition_records(effects: Sequence[Effect], after: int) -> PartitionRecords:
    """(topic id, partition) -> the records of it that were committed past offset ``after``, in their
    order."""
    result: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for record in _committed(effects, after):
        if record["type"] in ("PartitionRecord", "PartitionChangeRecord"):
            result.setdefault((record["topic_id"], record["partition_id"]), []).append(record)
    return result

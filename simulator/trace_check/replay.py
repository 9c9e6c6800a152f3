"""A trace, step by step, as the invariants are shown a simulated cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import orjson

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.effects import Append, DeleteLog, Effect, ResetLog, Trace, Truncate
from wrackline.broker.model.events import Boot, Event, RequestReceived
from wrackline.broker.model.messages.requests import ProduceRequest
from wrackline.broker.model.metadata.image import ClusterImage, ImageError
from wrackline.broker.model.metadata.records import decode
from wrackline.broker.model.types import (
    METADATA,
    FlushMode,
    NodeId,
    QuorumState,
    RecoveredLog,
    TopicPartition,
)
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.observed.observer import Observer
from wrackline.simulator.invariants.observed.step import ObservedStep
from wrackline.simulator.trace_check.lines import (
    COMMIT,
    ROLE,
    START,
    STOP,
    Line,
    Step,
    commits_of,
    partition_of,
)
from wrackline.simulator.trace_check.nodes import (
    MetadataOffsets,
    Offsets,
    TracedBroker,
    TracedConfig,
    TracedContext,
    TracedController,
    TracedLog,
    TracedReplica,
    TracedServer,
    TracedVoter,
    TracedWorld,
)
from wrackline.simulator.world.world import StepRecord, World

ACKS_ALL = -1


class TracedObserver(Observer):
    """An ``Observer`` of a world that is made of traces."""

    def __init__(self, traced: TracedWorld, profile: str) -> None:
        super().__init__(cast(World, traced), profile)
        self._traced = traced

    def broker(self, node: NodeId) -> Broker | None:
        server = self._traced.brokers.get(node)
        return None if server is None else cast("Broker | None", server.core)

    def _voter(self, node: NodeId) -> Controller | None:
        """A voter of whose disk nobody knows that it was replaced, once it has told of its role."""
        traced = self._traced.controllers.get(node)
        return None if traced is None or traced.raft is None else super()._voter(node)

    def _effects(self, seen: ObservedStep, effects: Sequence[Effect]) -> dict[TopicPartition, bool]:
        touched = super()._effects(seen, effects)
        for effect in effects:
            if isinstance(effect, Trace) and effect.kind == "ack" and effect.fields["error"] == "none":
                tp = self._named(effect.fields["tp"])
                self.acknowledged(seen, tp, effect.fields["acks"], effect.fields["offset"])
        return touched


class Replay:
    """Makes a world of the steps of traces; ``records`` gives what an observer is shown of each step."""

    def __init__(
        self,
        world: TracedWorld,
        streams: Mapping[NodeId, Sequence[Step]],
        flush: FlushMode,
    ) -> None:
        self._world = world
        self._config = TracedConfig(flush)
        self._commits = commits_of(streams)
        self._pending = sorted(self._commits, reverse=True)
        """Offsets that nobody has committed yet, the next one last."""
        self._starts = _starts(streams)
        self._image = ClusterImage()
        """What is committed, as far as any controller has told: one for all of them."""
        self._number = 0
        self._batches: dict[tuple[UUID, TopicPartition, int], set[tuple[int, int, int]]] = defaultdict(set)
        """(topic, partition, base offset) -> (last offset, epoch, CRC) of every batch that was appended
        anywhere."""
        self.blind: dict[TopicPartition, str] = {}
        """Partitions of which nothing can be said from some step on, and why."""
        self.gap: str = ""
        """Why nothing can be said of the metadata any more."""
        for node, steps in streams.items():
            if any(step.kinds & {COMMIT, ROLE} for step in steps):
                world.controllers[node] = TracedController(self._image)
            else:
                world.brokers[node] = TracedServer()

    def records(self, step: Step) -> Iterator[StepRecord]:
        """The step, and then the end of its process if the trace has no more of it."""
        if step.node in self._world.controllers:
            yield self._controller(step, self._world.controllers[step.node])
            return
        yield from self._broker(step, self._world.brokers[step.node])

    def _record(
        self, step: Step, kind: Any, event: Event | None, effects: Sequence[Effect], note: str = ""
    ) -> StepRecord:
        self._number += 1
        return StepRecord(self._number, step.at_ns / 1e6, kind, step.node, event, tuple(effects), note=note)

    # --- controllers ----------------------------------------------------------------------------------------

    def _controller(self, step: Step, controller: TracedController) -> StepRecord:
        event: Boot | None = None
        if step.incarnation != controller.incarnation:
            controller.incarnation, controller.raft = step.incarnation, None
            event = Boot(UUID(step.incarnation), {})
        effects = self._commit(step)
        for line in step.lines:
            if line.kind == ROLE and "voted_for" in line.fields:  # older brokers do not tell
                fields = line.fields
                state = QuorumState(fields["epoch"], fields["leader"], fields["voted_for"])
                controller.raft = TracedVoter(RaftRole(fields["role"]), state, MetadataOffsets(fields["leo"]))
                effects.append(Trace(ROLE, fields))
        return self._record(step, "handle" if event is None else "boot", event, effects)

    def _commit(self, step: Step) -> list[Effect]:
        """Applies everything up to what this controller says is committed, whoever has told of it."""
        upto = max((line.fields["offset"] for line in step.lines if line.kind == COMMIT), default=-1)
        effects: list[Effect] = []
        while not self.gap and self._pending and self._pending[-1] <= upto:
            offset = self._pending.pop()
            fields = self._commits[offset]
            try:
                self._image.apply(decode(orjson.dumps(fields)), offset)
            except (ImageError, ValueError) as error:
                self.gap = f"{step.place}: {error}"
                break
            effects.append(Trace(COMMIT, {"offset": offset, "record": fields}))
        return effects

    # --- brokers --------------------------------------------------------------------------------------------

    def _broker(self, step: Step, server: TracedServer) -> Iterator[StepRecord]:
        event: Event | None = None
        if START in step.kinds:
            event = self._start(step, server)
        core = server.core
        if core is not None:
            effects: list[Effect] = []
            for line in step.lines:
                effects += self._line(server, core, line)
                effects.append(Trace(line.kind, line.fields))
            if any(line.kind == "append" and line.fields["acks"] == ACKS_ALL for line in step.lines):
                event = RequestReceived(0, ProduceRequest(ACKS_ALL, 0, ()))
            yield self._record(step, "boot" if isinstance(event, Boot) else "handle", event, effects)
        if (step.last or STOP in step.kinds) and server.core is not None:
            server.core = None
            lost = self._end(step, server)
            yield self._record(step, "down", None, (), "power" if lost else "")

    def _start(self, step: Step, server: TracedServer) -> Boot:
        [line] = [line for line in step.lines if line.kind == START]
        context = TracedContext(UUID(step.incarnation), self._config)
        server.core = core = TracedBroker(step.node, context)
        server.incarnation += 1
        logs: dict[TopicPartition, RecoveredLog] = {}
        for name, result in line.fields["logs"].items():
            tp = partition_of(name)
            if tp == METADATA:
                continue
            recovered = RecoveredLog(
                UUID(result["topic_id"]), result["start"], result["leo"], result["flushed"], result["hwm"]
            )
            logs[tp] = recovered
            self._found(step, server, tp, recovered)
            bounds = Offsets(recovered.log_start, recovered.leo, recovered.flushed)
            core.replicas[tp] = TracedReplica(
                context, tp, recovered.topic_id, bounds, recovered.high_watermark
            )
        return Boot(context.incarnation, logs, previous_broker_epoch=line.fields["previous_epoch"])

    def _found(self, step: Step, server: TracedServer, tp: TopicPartition, found: RecoveredLog) -> None:
        """Adds the batches that the disk has and no line tells of: they were written when the process was
        killed, between the write and its line: they are as other replicas have them, or nothing can be
        said."""
        log = server.disk.logs.get(tp)
        if log is None:
            log = server.disk.logs[tp] = TracedLog(found.topic_id, found.log_start, found.log_start)
        assert isinstance(log, TracedLog)
        while log.leo < found.leo:
            expected = log.leo
            fits = [one for one in self._batches[found.topic_id, tp, expected] if one[0] < found.leo]
            if len(fits) != 1:
                self._lose_sight(
                    tp, f"{step.place}: the log has records from {expected} on of which no trace tells"
                )
                log.leo = found.leo
                break
            log.wrote(expected, *fits[0])
        log.synced = found.flushed

    def _lose_sight(self, tp: TopicPartition, why: str) -> None:
        self.blind.setdefault(tp, why)

    def _end(self, step: Step, server: TracedServer) -> bool:
        """Cuts the disk to what the next life finds: this is what this life's end has left. True: it has
        left less than there was, as a power cut does."""
        result = self._starts.get((step.node, step.incarnation))
        if result is None:
            return False
        lost = False
        for tp, log in list(server.disk.logs.items()):
            left = result.get(str(tp))
            if left is None or left["topic_id"] != str(log.topic_id):
                del server.disk.logs[tp]
            elif left["leo"] < log.leo:
                log.cut(left["leo"])
                lost = True
        return lost

    def _line(self, server: TracedServer, core: TracedBroker, line: Line) -> list[Effect]:
        """Makes the state what the line says; returns the effects that the invariants look for in a step."""
        fields = line.fields
        match line.kind:
            case "register":
                core.broker_epoch = fields["epoch"]
            case "md_apply":
                self._apply(server, core, line.tp, fields)
            case "delete":
                core.replicas.pop(line.tp, None)
                server.disk.logs.pop(line.tp, None)
                return [DeleteLog(line.tp)]
            case _ if "tp" in fields and (replica := core.replicas.get(line.tp)) is not None:
                return self._of_replica(server, replica, line)
        return []

    def _apply(
        self, server: TracedServer, core: TracedBroker, tp: TopicPartition, fields: Mapping[str, Any]
    ) -> None:
        topic_id = UUID(fields["topic_id"])
        replica = core.replicas.get(tp)
        if replica is None:
            replica = core.replicas[tp] = TracedReplica(core.ctx, tp, topic_id, Offsets())
            server.disk.logs[tp] = TracedLog(topic_id)
        replica.leader_id = fields["leader"]
        replica.leader_epoch = fields["leader_epoch"]
        replica.partition_epoch = fields["partition_epoch"]
        replica.replicas = tuple(fields["replicas"])
        replica.isr = tuple(fields["isr"])
        if replica.leader_id != core.node:
            replica.leader = None

    def _of_replica(self, server: TracedServer, replica: TracedReplica, line: Line) -> list[Effect]:
        fields, tp = line.fields, replica.tp
        match line.kind:
            case "append":
                return self._append(server, replica, line)
            case "truncate":
                return self._truncate(server, replica, fields)
            case "hwm":
                replica.high_watermark = fields["new"]
            case "min_isr":
                replica.min_isr = fields["new"]
            case "log_start":
                replica.log.log_start = fields["new"]
                server.disk.logs[tp].start_at(fields["new"])
            case "flush":
                replica.log.flushed = server.disk.logs[tp].synced = fields["upto"]
            case "role" if fields["role"] == "leader":
                replica.leads()
            case "isr" if replica.leader is not None:
                replica.partition_epoch = fields["partition_epoch"]
                replica.leader.isr = frozenset(fields["committed"])
                replica.leader.maximal = frozenset(fields["maximal"])
                # Nobody looks into a proposal, only at whether there is one.
                replica.leader.proposal = fields["pending"]
            case "follower" if replica.leader is not None:
                state = replica.follower(fields["id"])
                state.leo, state.broker_epoch = fields["leo"], fields["broker_epoch"]
                state.fetched_in_epoch = fields["leader_epoch"]
        return []

    def _append(self, server: TracedServer, replica: TracedReplica, line: Line) -> list[Effect]:
        log = server.disk.logs[replica.tp]
        assert isinstance(log, TracedLog)
        for base, last, epoch, crc in line.fields["batches"]:
            if base != log.leo:
                self._lose_sight(
                    replica.tp, f"line {line.number}: a batch at {base}, the log ended at {log.leo}"
                )
            log.wrote(base, last, epoch, crc)
            self._batches[replica.topic_id, replica.tp, base].add((last, epoch, crc))
        replica.log.leo = log.leo
        return [Append(replica.tp, (), line.fields["base"], log.leo)]

    def _truncate(
        self, server: TracedServer, replica: TracedReplica, fields: Mapping[str, Any]
    ) -> list[Effect]:
        log, to = server.disk.logs[replica.tp], fields["to"]
        if to > log.leo:
            server.disk.logs[replica.tp] = TracedLog(replica.topic_id, to, to)
            replica.log = Offsets(to, to, to)
            return [ResetLog(replica.tp, to)]
        log.cut(to)
        replica.log.leo = to
        replica.log.flushed = min(replica.log.flushed, to)
        return [Truncate(replica.tp, to)]


def _starts(streams: Mapping[NodeId, Sequence[Step]]) -> dict[tuple[NodeId, str], Mapping[str, Any]]:
    """(node, incarnation) -> the logs that its next life found."""
    result: dict[tuple[NodeId, str], Mapping[str, Any]] = {}
    for node, steps in streams.items():
        former: str | None = None
        for step in steps:
            for line in step.lines:
                if line.kind == START:
                    if former is not None:
                        result[node, former] = line.fields["logs"]
                    former = step.incarnation
    return result

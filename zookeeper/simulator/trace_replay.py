"""Traces of profile zk08, and the log of its ZooKeeper, as ``ZookeeperChecker`` is shown a simulated cluster.

As in ``nodes``, what stands in for ``Local``, ``Ensemble`` and ``World`` has their names and meanings. Whose
session there is, and what the nodes hold, is in ZooKeeper's own transactions (``zookeeper/systems/servers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from wrackline.broker.core.replication.replica import Follower, LeaderState
from wrackline.broker.model.coordination import Create, Delete, Set
from wrackline.broker.model.effects import CreateLog, Effect, Trace
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import NO_LEADER, FlushMode, NodeId, TopicPartition
from wrackline.simulator.trace_check.coverage import FETCHERS
from wrackline.simulator.trace_check.lines import Line, Step
from wrackline.simulator.trace_check.nodes import (
    Offsets,
    TracedBroker,
    TracedLog,
    TracedReplica,
    TracedServer,
    TracedWorld,
)
from wrackline.simulator.trace_check.replay import ACKS_ALL, Replay
from wrackline.simulator.trace_check.transactions import WRITE
from wrackline.simulator.trace_check.verdicts import Asked, Streams
from wrackline.simulator.world.nodes import WorldOptions
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.replicas.local import Local, Phase
from wrackline.zookeeper.simulator.checker import BROKEN, NAMES, ZookeeperChecker
from wrackline.zookeeper.simulator.image import TreeImage
from wrackline.zookeeper.simulator.tree import ROOT, Tree

UNDECIDED: Mapping[str, str] = {
    "I16": FETCHERS,
    **{name: f"not of this profile: {why}" for name, why in BROKEN.items() if name not in NAMES},
}
"""Which invariants are not asked of profile zk08."""
_ROLES = {"leader": Phase.OPENING, "follower": Phase.FOLLOWING, "none": Phase.IDLE}


@dataclass
class TracedLocal:
    """The part of ``Local`` that a trace shows."""

    replica: TracedReplica
    phase: Phase = Phase.IDLE
    followed: int = -1
    has_epoch: bool = False
    assigned: tuple[NodeId, ...] = ()

    @property
    def leads(self) -> bool:
        return self.phase in (Phase.OPENING, Phase.LEADING)


@dataclass
class TracedEnsemble:
    """The part of ``Ensemble`` that a trace shows: the tree as its transactions make it."""

    tree: Tree = field(default_factory=Tree)

    def wrote(self, fields: Mapping[str, Any]) -> None:
        path, tree = fields["path"], self.tree
        session, data = fields["session"], fields["data"]
        tree.zxid = fields["zxid"] - 1
        if data is None:
            tree.apply(session, Delete(path))
        elif path in tree.nodes:
            tree.apply(session, Set(path, data.encode()))
        else:
            self._make(path.rpartition("/")[0])
            tree.zxid = fields["zxid"] - 1
            tree.apply(session, Create(path, data.encode(), ephemeral=fields["ephemeral"]))
        tree.zxid = fields["zxid"]

    def _make(self, path: str) -> None:
        """A log that lacks its beginning tells nothing of the nodes above."""
        if path not in ("", ROOT) and path not in self.tree.nodes:
            self._make(path.rpartition("/")[0])
            self.tree.apply(0, Create(path))


class ZookeeperWorld(TracedWorld):
    """The part of ``World`` that traces show, in profile zk08. ``locals`` are those of each broker's
    present life."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.zookeeper = TracedEnsemble()
        self.locals: dict[NodeId, dict[TopicPartition, TracedLocal]] = {}
        self._image = TreeImage(self.zookeeper.tree)

    @property
    def image(self) -> ClusterImage:
        return self._image.image


class TracedChecker(ZookeeperChecker):
    """A ``ZookeeperChecker`` of a world that is made of traces."""

    def __init__(self, traced: ZookeeperWorld) -> None:
        super().__init__(cast(World, traced))
        self._traced = traced

    def _local(self, node: NodeId, tp: TopicPartition) -> Local | None:
        return cast("Local | None", self._traced.locals.get(node, {}).get(tp))

    def _fetched(self, node: NodeId, tp: TopicPartition) -> tuple[NodeId, ...]:  # noqa: ARG002
        return ()  # no line tells: I16 is not asked

    def _with_session(self) -> set[NodeId]:
        return {int(name) for name in self._traced.zookeeper.tree.children(znodes.IDS)}

    def _answers(self) -> Iterator[tuple[TopicPartition, int]]:
        for effect in self._step.effects:
            if isinstance(effect, Trace) and effect.kind == "ack":
                fields = effect.fields
                if fields["acks"] == ACKS_ALL and fields["error"] == "none":
                    topic, _, number = fields["tp"].rpartition("-")
                    yield TopicPartition(topic, int(number)), fields["offset"]

    def at_the_end(self) -> None:
        """I21 of what ZooKeeper says, where everybody is led and so nothing is under way."""
        leaders = [[*self._open(image.tp)] for image in self._world.image.partitions()]
        if all(leaders) and all(local.replica.leading.proposal is None for [(_, local), *_] in leaders):
            self.at_rest()


class ZookeeperReplay(Replay):
    """Makes a world of the steps of brokers and of the transactions of their ZooKeeper."""

    def __init__(
        self, world: ZookeeperWorld, streams: Mapping[NodeId, Sequence[Step]], flush: FlushMode
    ) -> None:
        super().__init__(world, streams, flush)
        self._traced = world
        self._ensemble = {
            node for node, steps in streams.items() if any(WRITE in step.kinds for step in steps)
        }
        for node in self._ensemble:
            del world.brokers[node]

    def records(self, step: Step) -> Iterator[StepRecord]:
        if step.node in self._ensemble:
            for line in step.lines:
                self._traced.zookeeper.wrote(line.fields)
            yield self._record(step, "fault", None, ())
            return
        for record in super().records(step):
            if record.kind == "down":
                self._traced.locals.pop(step.node, None)
            yield record

    def _line(self, server: TracedServer, core: TracedBroker, line: Line) -> list[Effect]:
        own, fields = self._traced.locals.setdefault(core.node, {}), line.fields
        match line.kind:
            case "start":
                own.clear()
                own.update({tp: TracedLocal(replica) for tp, replica in core.replicas.items()})
            case "create":
                topic_id = UUID(fields["topic_id"])
                replica = TracedReplica(core.ctx, line.tp, topic_id, Offsets())
                core.replicas[line.tp], own[line.tp] = replica, TracedLocal(replica)
                server.disk.logs[line.tp] = TracedLog(topic_id)
                return [CreateLog(line.tp, topic_id)]
            case "delete":
                own.pop(line.tp, None)
            case "role" if line.tp in own:
                self._role(core.node, own[line.tp], fields)
                return []
            case "open" if line.tp in own:
                own[line.tp].phase = Phase.LEADING
            case "assigned" if line.tp in own:
                own[line.tp].assigned = tuple(fields["replicas"])
            case _:
                pass
        return super()._line(server, core, line)

    def _role(self, node: NodeId, local: TracedLocal, fields: Mapping[str, Any]) -> None:
        replica = local.replica
        local.phase, local.followed = _ROLES[fields["role"]], fields.get("created", -1)
        local.has_epoch = fields.get("has_epoch", False)
        replica.leader_id = fields.get("leader", NO_LEADER)
        replica.leader_epoch = fields.get("leader_epoch", replica.leader_epoch)
        replica.leader = None
        if local.leads:
            image = self._traced.image.partition(replica.tp)
            others = [] if image is None else [other for other in image.replicas if other != node]
            followers = {other: Follower() for other in others}
            replica.leader = LeaderState(frozenset(), frozenset(), replica.log.leo, followers=followers)


def without_controller(streams: Streams, profile: str, flush: FlushMode) -> Asked:
    """Returns the checker, the world and the replay for a run of profile zk08, and the invariants that are
    asked."""
    world = ZookeeperWorld(options=WorldOptions(profile=profile, boot=False))
    names = tuple(name for name in NAMES if name not in UNDECIDED)
    checker = TracedChecker(world)
    return Asked(
        world, checker, ZookeeperReplay(world, streams, flush), names, UNDECIDED, {}, checker.at_the_end
    )

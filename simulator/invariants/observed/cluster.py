"""The observed state of the cluster, for the invariants to look things up in: no node knows all of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from uuid import UUID

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.events import Boot
from wrackline.broker.model.metadata.features import WITH_ELR
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage
from wrackline.broker.model.types import METADATA, NO_EPOCH, NodeId, TopicPartition
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.invariants.observed.partition import ObservedPartition
from wrackline.simulator.invariants.observed.step import Before, ObservedStep
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.world import World


@mypyc_attr(allow_interpreted_subclasses=True)
class ObservedCluster:
    """``image`` is the committed metadata nobody can deny any more. ``Observer`` keeps all of this up to
    date."""

    def __init__(self, world: World, profile: str = "kip966") -> None:
        self.world = world
        self._profile = profile
        self.image = ClusterImage()
        """This is the controller's own object, which changes: never compare it with itself."""
        self.metadata = ObservedPartition(METADATA, UUID(int=1))
        self.partitions: dict[TopicPartition, ObservedPartition] = {}
        self.before: dict[tuple[NodeId, TopicPartition], Before] = {}
        self.boots: dict[NodeId, Boot] = {}
        self.boot_of: dict[UUID, Boot] = {}
        """By incarnation: a registration may be committed when the life that asked for it is over."""
        self.began_without_epochs = False
        """ZooKeeper was in charge first: a record with epoch 0 is of any leader of that time."""
        self.coming: set[NodeId] = set()
        """Members that a controller took over from ZooKeeper, and that have yet to be unfenced by it."""
        self.replaced: set[NodeId] = set()
        """Nodes whose disk was wiped or set back: no quorum can promise anything about such a voter."""
        self.noted: dict[tuple[Hashable, ...], Any] = {}
        """What invariants remember of earlier steps, by their id and keys of their own."""

    @property
    def profile(self) -> str:
        """Returns the profile whose promises hold: while a cluster is upgraded the former one's, until the
        metadata has the level of the later one."""
        return "kip966" if self.image.level == WITH_ELR else self._profile

    def of(self, image: PartitionImage) -> ObservedPartition:
        """Returns what is observed of the partition; a new object when the topic was created anew."""
        known = self.partitions.get(image.tp)
        if known is None or known.topic_id != image.topic_id:
            known = self.partitions[image.tp] = ObservedPartition(image.tp, image.topic_id)
        return known

    def log(self, node: NodeId, tp: TopicPartition) -> SimLog | None:
        server = self.world.brokers.get(node) or self.world.controllers.get(node)
        return None if server is None else server.disk.logs.get(tp)

    def broker(self, node: NodeId) -> Broker | None:
        """The node's core. None: it is down, or no broker."""
        server = self.world.brokers.get(node)
        core = None if server is None else server.acting
        return core if isinstance(core, Broker) else None

    def controller(self, node: NodeId) -> Controller | None:
        server = self.world.controllers.get(node)
        return None if server is None else server.core

    def running(self, node: NodeId, tp: TopicPartition) -> Replica | None:
        """The replica, if its process is up and registered and its role is assigned; else None."""
        server, known = self.world.brokers.get(node), self.image.brokers.get(node)
        core = None if server is None else server.core
        if core is None or known is None or core.broker_epoch != known.epoch:
            return None
        replica = core.replica(tp)
        return replica if replica is not None and replica.leader_epoch != NO_EPOCH else None

    def current(self, replica: Replica) -> PartitionImage | None:
        """The committed registration, if ``replica`` is its leader and not a stale one, or one of an earlier
        topic of that name."""
        image = self.image.partition(replica.tp)
        leads = replica.leader is not None and image is not None and image.topic_id == replica.topic_id
        leads = leads and image.leader_epoch == replica.leader_epoch  # type: ignore[union-attr]
        return image if leads else None

    def lossy_limit(self, tp: TopicPartition) -> int:
        """Returns how many replicas, impaired at once, may cost records. Only kip966 promises more than
        one."""
        return self.image.min_isr(tp) if self.profile == "kip966" else 1

    def excused(self, image: PartitionImage) -> bool:
        """More replicas of the partition are impaired at once than the profile promises to survive."""
        known = self.partitions.get(image.tp)
        if known is None or not known.impaired:
            return False
        return len(known.impaired.keys() & image.replicas) >= self.lossy_limit(image.tp)

    def concerned(self, seen: ObservedStep) -> list[tuple[PartitionImage, ObservedPartition]]:
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

"""The replicas on this broker, kept as the committed metadata says
(docs/protocol.md K16-K20, K46, K48-K54)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from wrackline.broker.core.replication import leader, roles
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.fetcher import Fetchers
from wrackline.broker.core.replication.replica import Changes, Replica
from wrackline.broker.model.effects import CreateLog, DeleteLog
from wrackline.broker.model.metadata.image import ImageDelta, PartitionImage
from wrackline.broker.model.types import METADATA, NO_EPOCH, NO_LEADER, RecoveredLog, TopicPartition
from wrackline.broker.model.values import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Partitions:
    def __init__(self, ctx: Context, fetchers: Fetchers) -> None:
        self._ctx = ctx
        self._fetchers = fetchers
        self.changes = Changes()
        self._replicas: dict[TopicPartition, Replica] = {}
        self._offline: set[TopicPartition] = set()
        """Their records are on disk and cannot be used: nobody knows of which topic they are."""
        self.get: Callable[[TopicPartition], Replica | None] = self._replicas.get

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    # --- start ---------------------------------------------------------------------------------------------

    def recovered(
        self, logs: Mapping[TopicPartition, RecoveredLog], offline: Iterable[TopicPartition]
    ) -> None:
        """The logs found on disk, without a role yet; and those that cannot be opened, unless another core of
        this process has begun them anew meanwhile."""
        self._offline = set(offline).difference(logs)
        for tp in sorted(logs):
            if tp != METADATA:
                self._replicas[tp] = Replica(self._ctx, self.changes, tp, logs[tp])

    def take_roles(self) -> None:
        """Takes all roles at once, once the metadata is known up to our own registration: the final image
        only (K20).

        Logs of topics that are gone meanwhile, or whose replica was moved away, are deleted.
        """
        for tp in sorted(self._replicas):
            self._sync(tp)
        for partition in list(self._ctx.image.partitions()):
            if partition.tp not in self._replicas:
                self._sync(partition.tp)
        for tp in sorted(self._offline):
            self._sync(tp)

    # --- changes -------------------------------------------------------------------------------------------

    def apply(self, delta: ImageDelta) -> None:
        """Act on what a run of metadata records came to, partition by partition."""
        for tp, before in delta.before.items():
            self._sync(tp, before)
        if not (delta.topics or delta.brokers):
            return
        for replica in self._replicas.values():
            if replica.tp.topic in delta.topics:
                roles.settings_changed(replica)
            elif delta.brokers and replica.leader is not None:
                leader.advance(replica)  # who was about to join may be fenced now

    def _sync(self, tp: TopicPartition, before: PartitionImage | None = None) -> None:
        ctx, image = self._ctx, self._ctx.image.partition(tp)
        mine = image is not None and ctx.config.node_id in image.replicas
        replica = self._replicas.get(tp)
        if replica is not None and (
            image is None or not mine or ctx.rules.metadata.is_another(replica.topic_id, image.topic_id)
        ):
            self.remove(replica)
            replica = None
        if image is None or not mine:
            if tp in self._offline:
                self._offline.discard(tp)
                ctx.out.append(DeleteLog(tp))
            return
        if replica is not None:
            replica.topic_id = image.topic_id
        if replica is not None and tp in self._offline and self._may_begin_anew(image):
            replica = None
        if replica is None:
            replica = self.create(image)
        if replica.failed or not ctx.rules.metadata.applies(replica.partition_epoch, image.partition_epoch):
            return
        if replica.leader_epoch == NO_EPOCH and not self._begins(image, before):
            return
        self._trace_image(image)
        if image.leader == ctx.config.node_id:
            self._fetchers.remove(tp)
            roles.become_leader(replica, image)
        elif roles.become_follower(replica, image):
            self._fetchers.remove(tp)
            self._fetchers.add(replica)

    def _begins(self, image: PartitionImage, before: PartitionImage | None) -> bool:
        """A replica without a role yet: the image may be one in which it was only just added."""
        known = NO_EPOCH if before is None or before.topic_id != image.topic_id else before.leader_epoch
        return self._ctx.rules.switches.added_replica_follows_at_once or image.leader_epoch > known

    def _may_begin_anew(self, image: PartitionImage) -> bool:
        """Another leads, and has what is committed: the registration, as after an unclean stop, has taken
        this broker out of ISR and ELR, so it may come back empty, as with a wiped disk (I08, R11). Where
        nobody leads, or this broker by an unclean election, the records here may be the last ones, and stay
        until a person has looked at them."""
        me = self._ctx.config.node_id
        return image.leader not in (NO_LEADER, me) and me not in image.isr + image.elr

    def create(self, image: PartitionImage) -> Replica:
        """K54: also for a replica added without a new leader epoch. Records that cannot be used are put aside
        where the log is created."""
        if image.tp in self._offline and self._may_begin_anew(image):
            self._offline.discard(image.tp)
        replica = Replica(self._ctx, self.changes, image.tp, RecoveredLog(image.topic_id, 0, 0, 0, 0))
        replica.failed = image.tp in self._offline
        if not replica.failed:
            self._ctx.out.append(CreateLog(image.tp, image.topic_id))
        self._replicas[image.tp] = replica
        return replica

    def remove(self, replica: Replica) -> None:
        """Deleted, re-created under another id, or reassigned away
        (docs/protocol.md 2.10): learnt, so the log goes."""
        self._fetchers.remove(replica.tp)
        roles.step_down(replica)
        offset = self._ctx.image.metadata_offset
        self._ctx.trace("delete", offset=offset, tp=str(replica.tp), topic_id=str(replica.topic_id))
        self._ctx.out.append(DeleteLog(replica.tp))
        del self._replicas[replica.tp]

    def failed(self, replica: Replica) -> None:
        """Notes that the replica's disk refused: it neither leads nor follows any more."""
        self._fetchers.remove(replica.tp)
        replica.failed = True
        roles.step_down(replica)

    def _trace_image(self, image: PartitionImage) -> None:
        self._ctx.trace(
            "md_apply",
            offset=self._ctx.image.metadata_offset,
            tp=str(image.tp),
            topic_id=str(image.topic_id),
            leader=image.leader,
            leader_epoch=image.leader_epoch,
            partition_epoch=image.partition_epoch,
            isr=list(image.isr),
            elr=list(image.elr),
            replicas=list(image.replicas),
        )

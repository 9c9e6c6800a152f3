"""The replicas on this broker: created and deleted as leaders ask it to (docs/protocol.md Z43 to Z46)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.fetcher import Fetchers
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import RecoveredLog, TopicPartition
from wrackline.zookeeper.core.replicas.local import Local


class Assigned(Partitions):
    """The assigned partitions of profile zk08, in which nothing follows from metadata by itself."""

    def __init__(self, ctx: Context, fetchers: Fetchers) -> None:
        super().__init__(ctx, fetchers)
        self.locals: dict[TopicPartition, Local] = {}

    def recovered(
        self, logs: Mapping[TopicPartition, RecoveredLog], offline: Iterable[TopicPartition]
    ) -> None:
        super().recovered(logs, offline)
        for replica in self:
            self.locals[replica.tp] = Local(replica)

    def opened(self, image: PartitionImage) -> Local:
        """The local recovery of a log is over when the process starts; here a replica is made where there is
        none, or only one of a former topic of this name."""
        local = self.locals.get(image.tp)
        if local is not None and local.replica.topic_id != image.topic_id:
            self.deleted(local)
            local = None
        if local is None:
            self._ctx.trace("create", tp=str(image.tp), topic_id=str(image.topic_id))
            local = self.locals[image.tp] = Local(self.create(image))
        return local

    def deleted(self, local: Local) -> None:
        del self.locals[local.replica.tp]
        self.remove(local.replica)

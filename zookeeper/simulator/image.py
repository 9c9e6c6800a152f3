"""The cluster as ZooKeeper has it: what a controller's committed image is in the other profiles."""

from __future__ import annotations

from uuid import UUID

from wrackline.broker.model.metadata.features import BROKER_PROTOCOL
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage, TopicImage
from wrackline.broker.model.types import NO_LEADER, TopicPartition
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.znodes import NO_LEADER_EPOCH
from wrackline.zookeeper.simulator.tree import Tree


def adds_up(tree: Tree, part: PartitionImage) -> bool:
    """ISR and CUR make the assigned replicas. While one comes back or falls behind they do not: it is written
    into one of them before it is taken out of the other."""
    cur = znodes.to_ids(tree.data(znodes.cur(part.tp)) or b"")
    return not set(cur) & set(part.isr) and {*cur, *part.isr} == set(part.replicas)


class TreeImage:
    """``image`` is made anew when the tree has changed; its metadata offset is the last transaction."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._image = ClusterImage()
        self._at = -1

    @property
    def image(self) -> ClusterImage:
        if self._at != self._tree.zxid:
            self._at, self._image = self._tree.zxid, self._made()
        return self._image

    def _made(self) -> ClusterImage:
        tree = self._tree
        image = ClusterImage(metadata_offset=tree.zxid)
        if (level := tree.data(znodes.FEATURE)) is not None:
            image.features[BROKER_PROTOCOL] = znodes.to_level(level)
        for name in tree.children(znodes.IDS):
            node = tree.nodes[f"{znodes.IDS}/{name}"]
            image.brokers[int(name)] = znodes.broker_image(int(name), node.created, node.data)
        for name in tree.children(znodes.TOPICS):
            node = tree.nodes[znodes.topic(name)]
            topic_id = znodes.topic_id_of(node.created)
            if settings := znodes.to_settings(node.data):
                image.configs["topic", name] = settings
            numbers = sorted(int(child) for child in node.children)
            result = [self._partition(TopicPartition(name, number), topic_id) for number in numbers]
            partitions = {one.tp.partition: one for one in result if one is not None}
            topic = TopicImage(name, topic_id, partitions)
            image.topics_by_name[name] = image.topics_by_id[topic_id] = topic
        return image

    def _partition(self, tp: TopicPartition, topic_id: UUID) -> PartitionImage | None:
        replicas = self._tree.data(znodes.replicas(tp))
        if replicas is None:
            return None
        leader = self._tree.nodes.get(znodes.leader(tp))
        isr = self._tree.nodes.get(znodes.isr(tp))
        epoch = self._tree.data(znodes.epoch(tp))
        return PartitionImage(
            tp=tp,
            topic_id=topic_id,
            replicas=znodes.to_ids(replicas),
            isr=znodes.to_ids(b"" if isr is None else isr.data),
            leader=NO_LEADER if leader is None else int(leader.data),
            leader_epoch=(NO_LEADER_EPOCH if epoch is None else znodes.to_epoch(epoch)).number,
            partition_epoch=max(0 if node is None else node.modified for node in (leader, isr)),
        )

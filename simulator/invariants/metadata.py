"""Invariants of metadata and its epochs: I06, I11, I12 of docs/invariants.md."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.effects import Append
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
)
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.types import METADATA, NodeId
from wrackline.simulator.invariants.invariant import Invariant, Violation
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import (
    ANSWERS,
    BROKERS,
    CHANGES,
    LOGS,
    REPLICAS,
    ObservedStep,
)


class MetadataLogMatching(Invariant):
    id = "I06"
    name = "metadata log matching"
    reference = "K02, MetadataLogMatchingProperty"
    looks_at = LOGS

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        if cluster.broker(seen.node) is None:
            return None
        if not any(isinstance(effect, Append) and effect.tp == METADATA for effect in seen.step.effects):
            return None
        log, known = cluster.log(seen.node, METADATA), cluster.metadata
        if log is None:
            return None
        match = known.extend(seen.node, log)
        if match < log.leo:
            return self.violated(
                seen, None, f"its metadata log is {log.leo} long and the committed one's up to {match} only"
            )
        return None


class BrokerEpochs(Invariant):
    id = "I11"
    name = "broker epochs"
    reference = "K05, KIP-631"
    looks_at = BROKERS | ANSWERS

    def __init__(self) -> None:
        self._used: dict[int, NodeId] = {}

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        for before, broker in seen.registered:
            if broker.from_zookeeper:
                continue  # numbered by ZooKeeper
            if before is not None and not before.from_zookeeper and broker.epoch <= before.epoch:
                return self.violated(
                    seen, None, f"broker {broker.id} went from epoch {before.epoch} to {broker.epoch}"
                )
            owner = self._used.setdefault(broker.epoch, broker.id)
            if owner != broker.id:
                return self.violated(
                    seen, None, f"brokers {owner} and {broker.id} both got epoch {broker.epoch}"
                )
        return self._accepted(cluster, seen)

    def _accepted(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        """A reply without an error to a request of an earlier registration. A controller that was replaced
        and has not learned of the newer registration may still accept a heartbeat, which commits nothing; it
        cannot accept what needs a commit."""
        controller = cluster.controller(seen.node)
        if controller is None:
            return None
        for request, response, received in seen.answers:
            sender = _sender(request)
            known = None if sender is None else cluster.image.brokers.get(sender[0])
            if sender is None or known is None or sender[1] >= known.epoch or received < known.epoch:
                continue
            unknown = controller.committed.metadata_offset < known.epoch
            if unknown and isinstance(request, BrokerHeartbeatRequest):
                continue
            if getattr(response, "error", None) is ErrorCode.none:
                kind = type(request).__name__
                return self.violated(
                    seen, None, f"{kind} of broker {sender[0]} in epoch {sender[1]} was accepted"
                )
        return None


def _sender(request: Request | None) -> tuple[NodeId, int] | None:
    match request:
        case AlterPartitionRequest() | BrokerHeartbeatRequest() | AllocateProducerIdsRequest():
            return request.broker_id, request.broker_epoch
        case _:
            return None


class Epochs(Invariant):
    id = "I12"
    name = "leader and partition epochs"
    reference = "docs/protocol.md 2.8.5, K21"
    looks_at = CHANGES | REPLICAS

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:  # noqa: ARG002
        for before, after, records in seen.changes:
            if before is None:
                continue
            steps = after.partition_epoch - before.partition_epoch
            if after.leader_epoch < before.leader_epoch or steps < 1:
                return self.violated(
                    seen,
                    after.tp,
                    f"leader epoch {before.leader_epoch} to {after.leader_epoch}, "
                    f"partition epoch {before.partition_epoch} to {after.partition_epoch}",
                )
            if records and steps != records:
                return self.violated(
                    seen, after.tp, f"{records} changes raised the partition epoch by {steps}"
                )
        for replica, was in seen.replicas:
            if was is None or was.life != replica.ctx.incarnation or was.topic_id != replica.topic_id:
                continue
            if replica.leader_epoch < was.leader_epoch or replica.partition_epoch < was.partition_epoch:
                return self.violated(
                    seen,
                    replica.tp,
                    f"went back from leader epoch {was.leader_epoch}, partition epoch {was.partition_epoch} "
                    f"to {replica.leader_epoch}, {replica.partition_epoch}",
                )
        return None

"""Invariants of metadata and its epochs: I06, I11, I12 of docs/invariants.md."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
)
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.types import METADATA, NO_LEADER, NodeId
from wrackline.simulator.invariants.invariant import Wrong, invariant
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import (
    ANSWERS,
    BROKERS,
    CHANGES,
    METADATA_APPENDS,
    REPLICAS,
    ObservedStep,
)


@invariant("I06", "metadata log matching", "K02, MetadataLogMatchingProperty", METADATA_APPENDS)
def metadata_log_matching(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    if cluster.broker(seen.node) is None:
        return
    log, known = cluster.log(seen.node, METADATA), cluster.metadata
    if log is not None and (match := known.extend(seen.node, log)) < log.leo:
        yield None, f"its metadata log is {log.leo} long and the committed one's up to {match} only"


@invariant("I11", "broker epochs", "K05, KIP-631", BROKERS | ANSWERS)
def broker_epochs(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for before, broker in seen.registered:
        if broker.from_zookeeper:
            continue  # numbered by ZooKeeper
        if before is not None and not before.from_zookeeper and broker.epoch <= before.epoch:
            yield None, f"broker {broker.id} went from epoch {before.epoch} to {broker.epoch}"
        owner = cluster.noted.setdefault(("I11", broker.epoch), broker.id)
        if owner != broker.id:
            yield None, f"brokers {owner} and {broker.id} both got epoch {broker.epoch}"
    yield from _accepted(cluster, seen)


def _accepted(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    """A reply without an error to a request of an earlier registration. A controller that was replaced
    and has not learned of the newer registration may still accept a heartbeat, which commits nothing; it
    cannot accept what needs a commit."""
    controller = cluster.controller(seen.node)
    if controller is None:
        return
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
            yield None, f"{kind} of broker {sender[0]} in epoch {sender[1]} was accepted"


def _sender(request: Request | None) -> tuple[NodeId, int] | None:
    match request:
        case AlterPartitionRequest() | BrokerHeartbeatRequest() | AllocateProducerIdsRequest():
            return request.broker_id, request.broker_epoch
        case _:
            return None


@invariant("I12", "leader and partition epochs", "docs/protocol.md 2.8.5, K21", CHANGES | REPLICAS)
def leader_and_partition_epochs(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:  # noqa: ARG001
    for before, after, records in seen.changes:
        if before is None:
            continue
        steps = after.partition_epoch - before.partition_epoch
        if after.leader_epoch < before.leader_epoch or steps < 1:
            leaders = f"leader epoch {before.leader_epoch} to {after.leader_epoch}"
            yield after.tp, f"{leaders}, partition epoch {before.partition_epoch} to {after.partition_epoch}"
        removed = set(before.replicas) - set(after.replicas)
        moved = (before.adding or before.removing) and not (after.adding or after.removing)
        if (removed or moved) and after.leader_epoch == before.leader_epoch and after.leader != NO_LEADER:
            reason = f"replicas {sorted(removed)} have left" if removed else "its reassignment is over"
            yield after.tp, f"{reason}, and the leader epoch is {after.leader_epoch} as before"
        if records and steps != records:
            yield after.tp, f"{records} changes raised the partition epoch by {steps}"
    for replica, was in seen.replicas:
        if was is None or was.life != replica.ctx.incarnation or was.topic_id != replica.topic_id:
            continue
        if replica.leader_epoch < was.leader_epoch or replica.partition_epoch < was.partition_epoch:
            former = f"leader epoch {was.leader_epoch}, partition epoch {was.partition_epoch}"
            yield (
                replica.tp,
                f"went back from {former} to {replica.leader_epoch}, {replica.partition_epoch}",
            )

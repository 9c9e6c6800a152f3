"""Invariants of ISR, ELR and fetchers: I05, I08, I09, I14, I16, I18, I20 of docs/invariants.md."""

from __future__ import annotations

from typing import Final

from wrackline.broker.core.lifecycle import State
from wrackline.broker.model.effects import Append, DeleteLog
from wrackline.broker.model.events import RequestReceived
from wrackline.broker.model.messages.requests import ProduceRequest
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import METADATA, NO_EPOCH, NO_LEADER
from wrackline.simulator.invariants.invariant import KIP966, Wrong, invariant
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import (
    BROKERS,
    CHANGES,
    DELETES,
    PARTITIONS,
    REPLICAS,
    ObservedStep,
)

_CLOSED: Final = State.CLOSED
_KIP966 = frozenset({KIP966})


@invariant("I05", "replication quorum superset", "ReplicationQuorumSupersetProperty", PARTITIONS)
def replication_quorum_superset(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for image, _ in cluster.concerned(seen):
        replica = None if image.leader == NO_LEADER else cluster.running(image.leader, image.tp)
        if replica is None or replica.leader is None or cluster.current(replica) is None:
            continue
        leader = replica.leader
        maximal = sorted(leader.maximal)
        if leader.proposal is None and leader.maximal != leader.isr:
            isr = sorted(leader.isr)
            yield image.tp, f"nothing is proposed, yet the maximal ISR is {maximal} and the ISR {isr}"
        members = frozenset((*image.isr, *image.elr))
        if len(leader.isr) >= replica.min_isr and not members <= leader.maximal:
            yield image.tp, f"ISR and ELR are {sorted(members)}, leader {image.leader} counts {maximal}"


@invariant("I08", "unclean exclusion", "KIP-966, R15", PARTITIONS, _KIP966)
def unclean_exclusion(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for image, known in cluster.concerned(seen):
        if not known.unproved:
            continue
        for node in (*image.isr, *image.elr, image.leader):
            if node in known.unproved:
                yield image.tp, f"node {node} came back uncleanly and has not shown that it is complete"


@invariant("I09", "MinISR recovery quorum", "MinIsrRecoveryQuorum, C7", CHANGES, _KIP966)
def recovery_quorum(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for change in seen.changes:
        image = change.after
        known, min_isr = cluster.of(image), cluster.image.min_isr(image.tp)
        if image.isr or image.elr or known.below_min:
            continue
        if len(image.last_known_elr) < min_isr:
            yield image.tp, f"neither ISR nor ELR, LastKnownELR {image.last_known_elr} of {min_isr}"


@invariant("I14", "ISR sanity", "ValidControllerState, ValidControllerIsrAndElr", BROKERS | CHANGES)
def isr_sanity(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    if seen.brokers_changed:
        images = list(cluster.image.partitions())
    else:
        images = [change.after for change in seen.changes]
    for image in images:
        if error := _insane(cluster, image):
            yield image.tp, error


def _insane(cluster: ObservedCluster, image: PartitionImage) -> str:
    isr, elr = set(image.isr), set(image.elr)
    if len(isr) != len(image.isr) or not isr | elr <= set(image.replicas):
        return f"ISR {image.isr} and ELR {image.elr} of replicas {image.replicas}"
    if isr & elr:
        return f"{sorted(isr & elr)} in both ISR and ELR"
    if elr and len(isr) >= cluster.image.min_isr(image.tp):
        return f"ISR {image.isr} is large enough, yet ELR is {image.elr}"
    if image.leader != NO_LEADER and image.leader not in isr:
        return f"leader {image.leader} is not in ISR {image.isr}"
    if not isr and cluster.profile != KIP966:
        return "the ISR is empty"
    frozen = cluster.profile != KIP966 and len(isr) == 1 and image.leader == NO_LEADER
    for node in () if frozen else image.isr:
        broker = cluster.image.brokers.get(node)
        if node in cluster.coming:
            continue
        if broker is None or not broker.active:
            return f"node {node} is fenced or shutting down, and in ISR {image.isr}"
    return ""


@invariant("I16", "fetchers", "ValidFetcherState", REPLICAS)
def one_fetcher(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    broker = cluster.broker(seen.node)
    if broker is None or broker.state is _CLOSED:
        return
    for replica, _ in seen.replicas:
        if replica.leader_epoch == NO_EPOCH or replica.failed or broker.replica(replica.tp) is not replica:
            continue
        fetchers = broker.fetching(replica.tp)
        follows = replica.leader is None and replica.leader_id != NO_LEADER
        expected = (replica.leader_id,) if follows else ()
        if fetchers != expected:
            yield replica.tp, f"fetched from {fetchers or 'nobody'}, it should be {expected or 'nobody'}"


@invariant("I18", "MinISR rule", "docs/protocol.md 2.1.2, 2.4.1, C1", REPLICAS)
def min_isr_rule(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    event = seen.step.event
    produced = event.request if isinstance(event, RequestReceived) else None
    wants_all = isinstance(produced, ProduceRequest) and produced.acks == -1
    for replica, was in seen.replicas:
        leader = replica.leader
        if leader is None or len(leader.isr) >= replica.min_isr:
            continue
        isr = sorted(leader.isr)
        if wants_all and any(isinstance(e, Append) and e.tp == replica.tp for e in seen.step.effects):
            yield replica.tp, f"acks=all appended with ISR {isr}"
        moved = (
            cluster.profile == KIP966
            and was is not None
            and was.leads
            and was.leader_epoch == replica.leader_epoch
            and was.high_watermark < replica.high_watermark
            and len(was.isr) < replica.min_isr
        )
        if moved:
            yield replica.tp, f"the high watermark moved to {replica.high_watermark} with ISR {isr}"


@invariant("I20", "reassignment", "docs/protocol.md 2.10", CHANGES | DELETES)
def reassignment_rules(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for before, after, _ in seen.changes:
        replicas, adding, removing = set(after.replicas), set(after.adding), set(after.removing)
        if not set(after.isr) <= replicas or not (adding | removing) <= replicas:
            yield after.tp, f"replicas {after.replicas} lack some of ISR {after.isr}, adding or removing"
        if adding & removing:
            yield after.tp, f"{sorted(adding & removing)} both added and removed"
        completed = (
            before is not None
            and (before.adding or before.removing)
            and not (adding or removing)
            and replicas == set(before.replicas) - set(before.removing)
            # Of several changes that are committed at once the last is seen; a later one may fence brokers.
            and after.partition_epoch == before.partition_epoch + 1
        )
        if completed and len(after.isr) < cluster.image.min_isr(after.tp):
            yield after.tp, f"completed with ISR {after.isr}"
    broker = cluster.broker(seen.node)
    for effect in seen.step.effects:
        if not isinstance(effect, DeleteLog) or effect.tp == METADATA or broker is None:
            continue
        image, replica = broker.image.partition(effect.tp), broker.replica(effect.tp)
        if image is not None and seen.node in image.replicas and replica is None:
            yield effect.tp, "its log is deleted, and it knows of no set without itself"

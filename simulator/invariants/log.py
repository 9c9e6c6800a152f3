"""Invariants of the logs: I01 to I04, I07, I10, I13, I15, I17, I19, I23 of docs/invariants.md."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from operator import attrgetter

from wrackline.broker.model.effects import Append, ResetLog, Truncate
from wrackline.broker.model.events import LogStartMoved
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import METADATA, NO_LEADER, FlushMode, NodeId
from wrackline.simulator.invariants.invariant import Wrong, invariant
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.partition import Mark, ObservedPartition
from wrackline.simulator.invariants.observed.step import (
    ACKS,
    APPENDS,
    CUTS,
    GROWN,
    PARTITIONS,
    REPLICAS,
    ObservedStep,
)
from wrackline.simulator.world.disk_log import SimLog

_end = attrgetter("end")


@invariant("I01", "leader completeness", "LeaderCompletenessProperty", PARTITIONS)
def leader_completeness(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for image, known in cluster.concerned(seen):
        leader = image.leader
        if leader == NO_LEADER or cluster.excused(image) or cluster.running(leader, image.tp) is None:
            continue
        log = cluster.log(leader, image.tp)
        if log is None or log.leo < known.true_hwm:
            end = None if log is None else log.leo
            behind = f"log end offset {end:,}, below the committed {known.true_hwm:,}"
            yield image.tp, f"leader {leader} has {behind}"
            return
        missing = _missing(known, leader, log)
        if missing is not None:
            yield image.tp, f"leader {leader} lacks the acknowledged records at {missing.base:,}"


def _missing(known: ObservedPartition, node: NodeId, log: SimLog) -> Mark | None:
    """The first acknowledged batch that is not in the log."""
    match = known.match.get(node, 0)
    if match >= known.acked_end:
        return None
    return next((mark for mark in known.acked if mark.end > match and not mark.is_in(log)), None)


@invariant("I02", "leader candidate completeness", "LeaderCandidateCompletenessProperty", PARTITIONS)
def candidate_completeness(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for image, known in cluster.concerned(seen):
        if cluster.excused(image):
            continue
        for node in (*image.isr, *image.elr):
            if node == image.leader or cluster.running(node, image.tp) is None:
                continue
            log = cluster.log(node, image.tp)
            end = 0 if log is None else log.leo
            if end < known.true_hwm:
                group = "ISR" if node in image.isr else "ELR"
                behind = f"log end offset {end:,}, below the committed {known.true_hwm:,}"
                yield image.tp, f"node {node}, in the {group}, has {behind}"


@invariant("I03", "log matching", "LogMatchingProperty", GROWN | REPLICAS)
def log_matching(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    """Against what was committed, which comes to the same as pair by pair."""
    for known in seen.grown:
        image = cluster.image.partition(known.tp)
        for node in () if image is None else image.replicas:
            yield from _differs(cluster, known, node)
    for replica, _ in seen.replicas:
        result = cluster.partitions.get(replica.tp)
        if result is not None and result not in seen.grown and result.topic_id == replica.topic_id:
            yield from _differs(cluster, result, seen.node)


def _differs(cluster: ObservedCluster, known: ObservedPartition, node: NodeId) -> Wrong:
    replica = cluster.running(node, known.tp)
    if replica is None or node in known.suspects or replica.leader_epoch < known.lost_epoch:
        return
    bound = min(replica.high_watermark, replica.log.leo, known.committed_end)
    match = known.match.get(node, 0)
    # Batches are compared whole: the last one below the bound must match, not the one across it.
    if match < bound and any(match < end <= bound for end in known.ends[-64:]):
        where = f"{match:,}, below its high watermark {bound:,}"
        yield known.tp, f"node {node} differs from the committed log at {where}"


@invariant("I04", "consistent read", "ConsistentReadProperty", PARTITIONS)
def consistent_read(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for image, known in cluster.concerned(seen):
        if image.leader == NO_LEADER or cluster.excused(image):
            continue
        replica = cluster.running(image.leader, image.tp)
        if replica is None or cluster.current(replica) is None:
            continue
        match = known.match.get(image.leader, 0)
        if match < known.committed_end:
            readable = f"the log that clients could read up to {known.committed_end:,}"
            yield image.tp, f"leader {image.leader} differs from {match:,} on from {readable}"


@invariant("I07", "no committed record lost globally", "NoCommittedRecordLostGlobally", PARTITIONS)
def nothing_lost_globally(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for image, known in cluster.concerned(seen):
        if not known.acked or cluster.excused(image):
            continue
        end = known.acked_end
        if any(known.match.get(n, 0) >= end and cluster.log(n, image.tp) is not None for n in image.replicas):
            continue
        logs = [(node, cluster.log(node, image.tp)) for node in image.replicas]
        held = max((known.match.get(node, 0) for node, log in logs if log is not None), default=0)
        # Whoever holds most misses nothing below that. A run that has lost records asks at each step.
        for mark in known.acked[bisect_right(known.acked, held, key=_end) :]:
            if not any(log is not None and mark.is_in(log) for _, log in logs):
                yield image.tp, f"no replica has the acknowledged records at {mark.base:,} any more"


@invariant("I10", "high watermark bounds", "docs/protocol.md 2.4, H03, H05", REPLICAS)
def watermark_bounds(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:  # noqa: ARG001
    for replica, was in seen.replicas:
        start, at, end = replica.log.log_start, replica.high_watermark, replica.log.leo
        if not start <= at <= end:
            yield replica.tp, f"high watermark {at:,} outside the log, {start:,} to {end:,}"
        same_term = (
            was is not None
            and was.leads
            and replica.leader is not None
            and was.leader_epoch == replica.leader_epoch
            and was.topic_id == replica.topic_id
        )
        if was is not None and same_term and at < was.high_watermark:
            yield replica.tp, f"the leader's high watermark went from {was.high_watermark:,} to {at:,}"


@invariant("I13", "one leader per epoch", "K22, KIP-101", REPLICAS | APPENDS)
def one_leader_per_epoch(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for replica, _ in seen.replicas:
        known = cluster.partitions.get(replica.tp)
        if known is None or replica.leader is None or known.topic_id != replica.topic_id:
            continue
        first = known.leaders.setdefault(replica.leader_epoch, seen.node)
        if first != seen.node:
            yield replica.tp, f"nodes {first} and {seen.node} both lead in epoch {replica.leader_epoch}"
    for effect in seen.step.effects:
        if isinstance(effect, Append) and effect.tp != METADATA:
            yield from _appended(cluster, seen, effect)


def _appended(cluster: ObservedCluster, seen: ObservedStep, effect: Append) -> Wrong:
    known, log = cluster.partitions.get(effect.tp), cluster.log(seen.node, effect.tp)
    if known is None or log is None:
        return
    for at in range(log.index_of(effect.base_offset), len(log.batches)):
        mark = Mark.of(log.batches[at])
        if mark.epoch == 0 and cluster.began_without_epochs:
            continue  # written in ZooKeeper's time, before leaders had epochs
        first = known.records.setdefault((mark.epoch, mark.base), (mark.crc, mark.end))
        if first != (mark.crc, mark.end):
            yield effect.tp, f"two different records of epoch {mark.epoch} at offset {mark.base:,}"


@invariant("I15", "epoch cache", "docs/protocol.md 2.3, H13", REPLICAS)
def epoch_cache_matches_log(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for replica, _ in seen.replicas:
        log = cluster.log(seen.node, replica.tp)
        if log is None or log.topic_id != replica.topic_id:
            continue
        if log.leo != replica.log.leo:
            continue  # the disk has refused a write, and the process ends
        if log.start > replica.log.log_start:
            inbox = cluster.world.brokers[seen.node].inbox
            if not any(type(event) is LogStartMoved and event.tp == replica.tp for event, _ in inbox):
                yield replica.tp, f"begins at {log.start} on the disk, its node says {replica.log.log_start}"
            continue  # it is about to hear what retention has removed
        entries = [(entry.epoch, entry.start_offset) for entry in replica.log.epochs.entries]
        if any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairwise(entries)):
            yield replica.tp, f"epochs do not increase: {entries}"
        trailing = bool(entries) and entries[-1][1] == replica.log.leo
        of_log = entries[:-1] if trailing else entries
        if trailing and replica.leader_epoch >= 0 and entries[-1][0] > replica.leader_epoch:
            yield replica.tp, f"epoch {entries[-1][0]} is cached, the newest is {replica.leader_epoch}"
        if not _fits(of_log, log):
            yield replica.tp, f"epochs {entries} are not those of the log's records"


def _fits(entries: list[tuple[int, int]], log: SimLog) -> bool:
    """Each entry is where its epoch begins, the last one reaches to the end: so no epoch is left out when
    epochs never go down, which the entries being increasing and the last batch's epoch show."""
    if not log.batches:
        return not entries
    first_base = log.batches[0].header.base_offset  # DeleteRecords may begin a log inside of this batch
    if not entries or not first_base <= entries[0][1] <= max(log.start, first_base):
        return False
    ends = [start for _, start in entries[1:]] + [log.leo]
    for (epoch, start), end in zip(entries, ends, strict=True):
        first, last = log.index_of(start), log.index_of(end - 1)
        if last >= len(log.batches) or (first and log.batches[first].header.base_offset != start):
            return False
        if log.batches[first].header.leader_epoch != epoch or log.batches[last].header.leader_epoch != epoch:
            return False
    return True


@invariant("I17", "ack rule", "docs/protocol.md 2.1.8, K25", ACKS)
def ack_rule(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    """A member that lost the record in a crash cannot have it, and the leader cannot know: it counts what the
    life that is over had fetched. Nor can the controller when that life joins the ISR only now, by a proposal
    that was late, while its registration still stands. Its next registration takes it out of ISR and ELR (I08
    sees to that); until then it is one of the fewer than MinISR lossy shutdowns that the promise allows for
    (K25), and not asked."""
    for tp, acks, mark, base in seen.acks:
        if mark is None:
            own = cluster.log(seen.node, tp)
            if own is not None and 0 <= base < own.start:
                continue  # sent again, and gone since: retention has removed it
            yield tp, f"acknowledged at {base:,}, and the leader has no such batch"
            return
        image, known = cluster.image.partition(tp), cluster.partitions.get(tp)
        if acks != -1 or image is None or known is None or cluster.excused(image):
            continue
        if mark.epoch >= known.lost_epoch:
            yield from _members(cluster, seen, image, known, mark)


def _members(
    cluster: ObservedCluster, seen: ObservedStep, image: PartitionImage, known: ObservedPartition, mark: Mark
) -> Wrong:
    for node in (*image.isr, *image.elr):
        if node not in cluster.world.brokers:
            continue  # a drill plays it, and there is no disk to look at
        log = cluster.log(node, image.tp)
        if node not in known.impaired and (log is None or not mark.is_in(log)):
            yield image.tp, f"acks=all at {mark.base:,}, and node {node}, in ISR or ELR, does not have it"
    broker = cluster.broker(seen.node)
    replica = None if broker is None else broker.replica(image.tp)
    leader = None if replica is None else replica.leader
    if replica is not None and leader is not None and len(leader.maximal) < replica.min_isr:
        yield image.tp, f"acks=all at {mark.base:,} with {len(leader.maximal)} in-sync replicas"


@invariant("I19", "append-only", "K35, LeaderAppendOnly", CUTS)
def append_only(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:  # noqa: ARG001
    befores = {replica.tp: was for replica, was in seen.replicas if replica.leader is not None}
    for effect in seen.step.effects:
        if not isinstance(effect, Truncate | ResetLog):
            continue
        was = befores.get(effect.tp)
        to = effect.to_offset if isinstance(effect, Truncate) else effect.start_offset
        if was is not None and was.leads and to < was.high_watermark:
            below = f"below its high watermark {was.high_watermark:,}"
            yield effect.tp, f"the leader cut its log to {to:,}, {below}"


@invariant("I23", "committed means flushed", "R01", GROWN)
def flushed_when_committed(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    for known in seen.grown:
        image = cluster.image.partition(known.tp)
        if image is None or cluster.excused(image):
            continue
        for node in image.isr:
            replica = cluster.running(node, known.tp)
            if replica is None or replica.ctx.config.flush_mode is not FlushMode.EVERY_WRITE:
                continue
            log = cluster.log(node, known.tp)
            if log is not None and log.synced < known.committed_end:
                end = known.committed_end
                yield known.tp, f"{end:,} is committed, and node {node} has flushed {log.synced:,}"

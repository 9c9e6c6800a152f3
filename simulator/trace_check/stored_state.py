"""The stored state of brokers that write no trace, judged by the invariants that it decides: each state of
a partition that the cluster's own log has, and each replica's files at the end of the run.

The states are shown to the same invariants that look at a simulated controller. Of the replicas there is one
moment only, when nothing is under way any more: what logs and checkpoints say then is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast
from uuid import UUID

from wrackline.broker.model.metadata.image import BrokerImage, ClusterImage, PartitionImage
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.simulator.invariants.invariant import Invariant
from wrackline.simulator.invariants.isr import isr_sanity
from wrackline.simulator.invariants.log import (
    candidate_completeness,
    epoch_cache_matches_log,
    log_matching,
    one_leader_per_epoch,
    watermark_bounds,
)
from wrackline.simulator.invariants.metadata import leader_and_partition_epochs
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import Change, ObservedStep
from wrackline.simulator.trace_check.coverage import QUORUM_PARTLY, WRITTEN_PARTLY, WRITTEN_UNDECIDED
from wrackline.simulator.trace_check.quorum_logs import OF_QUORUM, QuorumLog, judge_quorum
from wrackline.simulator.trace_check.verdicts import Broken, Judged
from wrackline.simulator.world.world import StepRecord, World

_ASKED = (
    candidate_completeness,
    log_matching,
    watermark_bounds,
    leader_and_partition_epochs,
    one_leader_per_epoch,
    isr_sanity,
    epoch_cache_matches_log,
)
_MIN_ISR = "min.insync.replicas"
_NEVER_LARGE_ENOUGH = 1_000_000
"""An ISR, where nobody knows MinISR: then no ELR must be empty."""


@dataclass(frozen=True, slots=True)
class State:
    """A partition, as the cluster has written it down from ``at_ns`` on."""

    at_ns: int
    place: str
    node: NodeId
    """On whose disk that is."""
    tp: TopicPartition
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of a log: ``what`` is the same for the same record."""

    offset: int
    epoch: int
    what: int


@dataclass(frozen=True, slots=True)
class Log:
    """One replica's own files, at the end."""

    at_ns: int
    node: NodeId
    tp: TopicPartition
    in_isr: bool
    start: int
    leo: int
    high_watermark: int
    """In the checkpoint file; -1: there is none."""
    entries: tuple[Entry, ...]
    epochs: tuple[tuple[int, int], ...] | None
    """(epoch, the offset where it begins) of the file of leader epochs; None: there is none."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The facts of the cluster that the rules rest on."""

    nodes: tuple[NodeId, ...]
    elr: bool
    """The cluster keeps an ELR."""
    min_isr: Mapping[str, int]
    """By topic; a topic whose setting has changed meanwhile is not here."""


def judge_written(
    states: Sequence[State],
    logs: Sequence[Log],
    cluster: Cluster,
    *,
    quorum: Sequence[QuorumLog] = (),
    source: str,
    missing: Sequence[str],
) -> Judged:
    """``states`` in their order. ``missing``: what may have happened and is not among them, a line each: then
    nothing is said of how many steps an epoch has made."""
    result = [*_of_states(states, cluster, whole=not missing), *_of_logs(logs), *judge_quorum(quorum)]
    first: dict[tuple[str, str], Broken] = {}
    for one in result:
        first.setdefault((one.id, one.tp), one)
    return Judged(
        checked=(*(kind.id for kind in _ASKED), *(OF_QUORUM if quorum else ())),
        undecided={id_: why for id_, why in WRITTEN_UNDECIDED.items() if not quorum or id_ not in OF_QUORUM},
        partly={**WRITTEN_PARTLY, **(QUORUM_PARTLY if quorum else {})},
        steps=len(states) + len(logs) + len(quorum),
        lines=len(states) + sum(len(log.entries) for log in logs) + sum(len(log.changes) for log in quorum),
        broken=tuple(first.values()),
        unordered=0,
        until_ns=None,
        unread=0,
        blind=tuple(f"what is not in {source}: {line}" for line in missing),
        source=source,
    )


# --- the states of partitions ------------------------------------------------------------------------------


def _of_states(states: Sequence[State], cluster: Cluster, *, whole: bool) -> Iterator[Broken]:
    # The invariants of states ask nothing of a world: what they look at is set here.
    observed = ObservedCluster(cast(World, None), "kip966" if cluster.elr else "kraft35")
    observed.image = _image(cluster, frozenset(state.tp.topic for state in states))
    before: dict[TopicPartition, PartitionImage] = {}
    leaders: dict[tuple[TopicPartition, int], NodeId] = {}
    for number, state in enumerate(states, 1):
        after = _partition(state)
        seen = ObservedStep(StepRecord(number, state.at_ns / 1e6, "handle", state.node))
        seen.changes.append(Change(before.get(state.tp), after, int(whole)))
        before[state.tp] = after
        for kind in (leader_and_partition_epochs, isr_sanity):
            if violation := kind(observed, seen):
                yield _broken(kind, state, violation.message)
        if state.leader != NO_LEADER:
            first = leaders.setdefault((state.tp, state.leader_epoch), state.leader)
            if first != state.leader:
                text = f"{first} and {state.leader} both lead in epoch {state.leader_epoch}"
                yield _broken(one_leader_per_epoch, state, text)


def _image(cluster: Cluster, topics: frozenset[str]) -> ClusterImage:
    """Returns an image with every broker in it: who is fenced is in no state of a partition."""
    image = ClusterImage()
    for node in cluster.nodes:
        image.brokers[node] = BrokerImage(node, 0, UUID(int=node), "", 0, None, False, False, 0)
    for topic in topics:
        image.configs["topic", topic] = {_MIN_ISR: str(cluster.min_isr.get(topic, _NEVER_LARGE_ENOUGH))}
    return image


def _partition(state: State) -> PartitionImage:
    return PartitionImage(
        tp=state.tp,
        topic_id=UUID(int=0),
        replicas=state.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        elr=state.elr,
    )


# --- the replicas' files -----------------------------------------------------------------------------------


def _of_logs(logs: Sequence[Log]) -> Iterator[Broken]:
    by_partition: dict[TopicPartition, list[Log]] = {}
    for log in logs:
        by_partition.setdefault(log.tp, []).append(log)
        bounds = f"{log.start} <= {log.high_watermark} <= {log.leo}"
        if log.high_watermark >= 0 and not log.start <= log.high_watermark <= log.leo:
            yield _broken(
                watermark_bounds, log, f"{bounds} does not hold of log start, high watermark and end"
            )
        if log.epochs is not None and (error := _epochs(log, log.epochs)):
            yield _broken(epoch_cache_matches_log, log, error)
    for own in by_partition.values():
        committed = max(log.high_watermark for log in own)
        for log in own:
            if log.in_isr and log.leo < committed:
                text = (
                    f"{log.node}, in the ISR, has log end offset {log.leo}, below the committed {committed}"
                )
                yield _broken(candidate_completeness, log, text)
        yield from _alike(own)


def _epochs(log: Log, epochs: tuple[tuple[int, int], ...]) -> str:
    """Returns what is wrong with a log's epochs; empty: nothing is. The last entry may be of a leader that
    has written nothing."""
    if any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairwise(epochs)):
        return f"epochs do not increase: {list(epochs)}"
    at = -1
    for entry in log.entries:
        while at + 1 < len(epochs) and epochs[at + 1][1] <= entry.offset:
            at += 1
        if entry.epoch >= 0 and (at < 0 or epochs[at][0] != entry.epoch):
            return f"the record at {entry.offset} is of epoch {entry.epoch}, the epochs are {list(epochs)}"
    return ""


def _alike(logs: Sequence[Log]) -> Iterator[Broken]:
    """I03 below the high watermarks of two replicas; I13 everywhere: one record of each epoch and offset."""
    known: dict[tuple[int, int], tuple[int, NodeId]] = {}
    below: dict[int, tuple[int, int, NodeId]] = {}
    for log in logs:
        for one in log.entries:
            what, node = known.setdefault((one.epoch, one.offset), (one.what, log.node))
            if what != one.what and one.epoch >= 0:
                text = f"{node} and {log.node} have different records of epoch {one.epoch} at {one.offset}"
                yield _broken(one_leader_per_epoch, log, text)
                break
    for log in logs:
        for one in log.entries:
            if one.offset >= log.high_watermark:
                break
            epoch, what, node = below.setdefault(one.offset, (one.epoch, one.what, log.node))
            if (epoch, what) != (one.epoch, one.what):
                text = f"{log.node} and {node} differ at {one.offset}, below their high watermarks"
                yield _broken(log_matching, log, text)
                break


def _broken(kind: Invariant, where: State | Log, message: str) -> Broken:
    place = where.place if isinstance(where, State) else f"the files of {where.tp} on {where.node}"
    return Broken(kind.id, kind.name, where.at_ns, where.node, str(where.tp), message, place)

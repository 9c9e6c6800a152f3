"""The context that every task of an analysis is given: numbers for partitions and kinds of operations, how
far each final read came, which replicas count, and when faults struck. It is built on the driver from runs
alone and broadcast; its size depends on the number of partitions and faults, not on that of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wrackline.checkers.engine.candidates import SentBelow
from wrackline.checkers.engine.marks import Marks, Unfilled
from wrackline.checkers.engine.object_facts import EarliestDequeue, LifeSummary, Unconsumed, ZoneSummary
from wrackline.checkers.engine.proofs import KnownAbove
from wrackline.checkers.inputs.final_reads import ReplicaRead, ReportedEnd
from wrackline.checkers.inputs.phases import (
    RECOVERY_NS,
    boundaries,
    clients_at_work,
    faulty_segments,
    healthy_segments,
    trouble,
)
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.inputs.table import NEVER, NONE, Ints

PARTITION_BITS = 20
TOPIC_BITS = 12
RANGE_OFFSETS = 131_072
"""Offsets of one partition that are judged together: about 50 MiB with three replicas."""
SPAN_EVENTS = 1 << 20
"""Events of a run whose objects are judged together, and events that make a part of its values: about 100
MiB."""
OBJECTS = ("register", "queue")
"""Workloads whose partitions are objects."""


@dataclass(frozen=True, slots=True)
class LogInfo:
    """The extent of a partition's final read. ``every``: a bit for each replica that must hold what was
    committed (in the ISR, and read to its end), from offset ``held_from``; the first of them was read at
    index ``looked_at``."""

    start: int = 0
    """What is below was deleted (wrackline.checkers.inputs.final_reads.FinalRead.deleted_below)."""
    end: int = NONE
    complete: bool = False
    every: int = 0
    idempotent: bool = False
    contiguous: bool = True
    """Every offset holds a record: what is not there was lost."""
    asked: int = NONE
    """Index of the invocation of the drain that was first shown ``end``."""
    looked_at: int = NEVER
    held_from: int = 0
    derived: bool = False
    """The final read is what polls together gave: from ``end`` on nothing is known."""
    reported_ends: Sequence[ReportedEnd] = ()
    """What the final read was told of the end."""


@dataclass(frozen=True, slots=True)
class Replica:
    number: int
    hw: int
    bit: int


@dataclass(frozen=True, slots=True)
class OutsideInterval:
    """The knowledge that an interval of one object's time needs of the others
    (wrackline.checkers.engine.objects.times). Rows are in order of ``part``, the number of the interval."""

    zones: ZoneSummary
    """Of the zones that start in or before an interval the one that lasts longest."""
    lives: LifeSummary
    """Of the lives that start in or before an interval the one that was in longest."""
    earliest: EarliestDequeue
    """Of the lives that start in or after an interval the one that comes out first."""
    left: Unconsumed
    """``count``: values that went in in or before an interval, and that nobody got; and the last of them."""
    unsure: Ints
    """Invocations of dequeues of unknown outcome, ascending."""


@dataclass(frozen=True)
class Context:
    marks: Marks
    """Those of all checks."""
    kinds: Sequence[str]
    """Kinds of operations (f) of all runs; their numbers are their places."""
    topics: Mapping[tuple[int, str], int]
    """(run, topic) -> number of its partition 0's log."""
    logs: Mapping[int, LogInfo]
    logs_of: Mapping[int, Sequence[int]]
    """Run -> its logs."""
    replicas: Mapping[tuple[int, str], Replica]
    """(log, host)."""
    edges: Mapping[int, Ints]
    """Run -> where its segments of time begin (wrackline.checkers.inputs.phases.boundaries)."""
    spans: Mapping[int, Ints]
    """Run -> [struck, until) of each fault, in which a gap in acks is reported with it."""
    bounds: Mapping[int, tuple[int, int]]
    """Run -> the time in which clients were at work."""
    trouble: Mapping[int, tuple[int, int]]
    """Run -> the segments after which its first fault began and its last one ended."""
    healthy: Mapping[int, Ints] = field(default_factory=dict)
    """Run -> the segments of its main phase's healthy periods."""
    faulty: Mapping[int, Ints] = field(default_factory=dict)
    """Run -> the segments in which a fault was in force."""
    width: int = RANGE_OFFSETS
    span: int = SPAN_EVENTS
    outputs: frozenset[int] = frozenset()
    """The logs of partition 0 of topics that an application makes: nobody is asked for what is sent there."""
    objects: Mapping[int, str] = field(default_factory=dict)
    """Run -> its workload, where that is ``register`` or ``queue``."""
    parts: Mapping[int, int] = field(default_factory=dict)
    """Run -> into how many parts the values of its objects are divided."""
    outside: Mapping[int, OutsideInterval] = field(default_factory=dict)
    """Log -> what intervals of its time must know of each other."""
    buckets: int = 1
    """Into how many parts what is looked at by value is divided."""
    above: Mapping[tuple[int, int], KnownAbove] = field(default_factory=dict)
    """(log, number of a range) -> what the ranges above it know; empty in the first round."""
    below: Mapping[tuple[int, int], SentBelow[int]] = field(default_factory=dict)
    """(log, number of a range) -> what the ranges below it know."""
    again: frozenset[tuple[int, int]] = frozenset()
    """(log, number) of the ranges that are judged a second time, with what those above them know."""
    unfilled: Unfilled = field(default_factory=frozenset)


def log_of(run: int, topic: int, partition: int) -> int:
    return ((run << TOPIC_BITS | topic) << PARTITION_BITS) + partition


def owner_of_run(run: int) -> int:
    """A number apart from those of logs."""
    return -1 - run


def run_of(log: Ints) -> Ints:
    result: Ints = log >> (PARTITION_BITS + TOPIC_BITS)
    return result


def whole_replicas(replicas: Mapping[str, ReplicaRead]) -> list[str]:
    """Hosts of the replicas that must hold what was committed: at most 62, one bit each."""
    return sorted(host for host, replica in replicas.items() if replica.in_isr and replica.complete)[:62]


def topics_of(runs: Sequence[Run]) -> dict[tuple[int, str], int]:
    numbers = {}
    for number, run in enumerate(runs):
        named = (topic for topic, _ in (*run.places, *run.final, *run.replicas))
        for at, name in enumerate(dict.fromkeys([*named, *run.topics])):
            numbers[number, name] = log_of(number, at, 0)
    return numbers


def places_of(run: Run) -> list[Place]:
    return sorted({*run.places, *run.final, *run.replicas})


def context_of(
    runs: Sequence[Run],
    marks: Marks,
    *,
    width: int = RANGE_OFFSETS,
    span: int = SPAN_EVENTS,
    buckets: int = 1,
) -> Context:
    topics = topics_of(runs)
    logs: dict[int, LogInfo] = {}
    logs_of: dict[int, list[int]] = {}
    replicas: dict[tuple[int, str], Replica] = {}
    for number, run in enumerate(runs):
        contiguous = {topic.name: topic.contiguous for topic in run.info.topics}
        for place in places_of(run):
            log = topics[number, place[0]] + place[1]
            logs_of.setdefault(number, []).append(log)
            final, there = run.final.get(place), run.replicas.get(place, {})
            whole = whole_replicas(there)
            logs[log] = LogInfo(
                final.deleted_below if final else 0,
                final.end if final else NONE,
                final is not None and final.is_evidence,
                (1 << len(whole)) - 1,
                run.info.idempotence,
                contiguous.get(place[0], True),
                final.asked if final else NONE,
                min((there[host].index for host in whole), default=NEVER),
                max((there[host].log_start for host in whole), default=0),
                final is not None and final.derived,
                final.reported_ends if final else (),
            )
            for at, (host, read) in enumerate(sorted(there.items())):
                bit = 1 << whole.index(host) if host in whole else 0
                replicas[log, host] = Replica(at, read.hw, bit)
    return Context(
        marks=marks,
        kinds=sorted(set().union(*(run.kinds for run in runs))),
        topics=topics,
        logs=logs,
        logs_of=logs_of,
        replicas=replicas,
        edges={number: np.array(boundaries(run), dtype=np.int64) for number, run in enumerate(runs)},
        spans={
            number: np.array(
                [(f.struck_ns, (f.ended_ns or run.end_ns) + RECOVERY_NS) for f in run.faults], dtype=np.int64
            ).reshape(-1, 2)
            for number, run in enumerate(runs)
        },
        bounds={number: clients_at_work(run) for number, run in enumerate(runs)},
        trouble={number: found for number, run in enumerate(runs) if (found := _trouble(run)) is not None},
        healthy={number: _numbers(healthy_segments(run)) for number, run in enumerate(runs)},
        faulty={number: _numbers(faulty_segments(run)) for number, run in enumerate(runs)},
        width=width,
        span=span,
        outputs=frozenset(
            topics[number, topic.name]
            for number, run in enumerate(runs)
            for topic in run.info.topics
            if topic.source
        ),
        objects={
            number: run.info.workload for number, run in enumerate(runs) if run.info.workload in OBJECTS
        },
        parts={
            number: max(1, run.rows // span)
            for number, run in enumerate(runs)
            if run.info.workload in OBJECTS
        },
        buckets=buckets,
    )


def _numbers(segments: set[int]) -> Ints:
    return np.array(sorted(segments), dtype=np.int64)


def _trouble(run: Run) -> tuple[int, int] | None:
    first, last = trouble(run)
    if first is None or last is None:
        return None
    edges = boundaries(run)
    return edges.index(first), edges.index(last)

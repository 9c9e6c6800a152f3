"""Facts of a run that a check is given besides the rows that it looks at: how things are called, how far
final reads came, who led, and which faults were in force. Small, and the same on the driver and in every
task."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wrackline.checkers.engine.context import places_of, whole_replicas
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.leadership import Leadership
from wrackline.history import labels
from wrackline.history.model import RunInfo, TopicInfo

MAX_FAULTS = 4
OFFSETS = "__consumer_offsets"
MARGIN_NS = 1_000_000_000
"""A fault that ended within a second before a finding is named with it."""


@dataclass(frozen=True, slots=True)
class AboutFault:
    begin_ns: int
    ended_ns: int | None
    """None: it was still in force at the end."""
    text: str
    """``power cut of n2 at 12.3 s``"""


@dataclass(frozen=True, slots=True)
class AboutLog:
    """A partition of a run."""

    number: int
    """The same in all tasks (wrackline.checkers.engine.context.log_of)."""
    topic: str
    partition: int
    start: int = 0
    """What is below was deleted."""
    end: int | None = None
    """None: nobody made a final read."""
    complete: bool = False
    """Whether the final read reached the end: what is not in it is gone."""
    unread_from: int | None = None
    """From which offset on nothing is known, where the final read is derived from polls."""
    contiguous: bool = True
    """Every offset holds a record."""
    compacted: bool = False
    """Records that a later one of the same key follows may be gone."""
    replicas: Sequence[str] = ()
    """The hosts of those in the ISR that were read whole, in the order of their bits."""
    hosts: Sequence[str] = ()
    """The hosts of all that were read, by the number of the replica."""
    leaders: Sequence[tuple[int, str, int]] = ()
    """(ns, host, leader epoch) whenever metadata named another leader."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def led_by(self, at_ns: int | None) -> str:
        """ " while n2 led (leader epoch 4)", as far as metadata named a leader of that time; else empty."""
        if at_ns is None:
            return ""
        at = bisect_right(self.leaders, at_ns, key=lambda change: change[0])
        if not at:
            return ""
        _, host, epoch = self.leaders[at - 1]
        return f" while {host} led (leader epoch {epoch})"


@dataclass(frozen=True, slots=True)
class Tenure:
    """The time in which one node leads a partition of ``__consumer_offsets``, and so coordinates the groups
    of that."""

    node: int
    host: str
    leader_epoch: int
    since_ns: int
    """It was elected then at the earliest ..."""
    latest_ns: int
    """... and at the latest then."""


@dataclass(frozen=True)
class AboutRun:
    """A run as checks know it. ``number``: its place in the analysis."""

    number: int
    info: RunInfo
    logs: Mapping[Place, AboutLog]
    faults: Sequence[AboutFault] = ()
    """In the order in which they struck."""
    of_number: Mapping[int, AboutLog] = field(default_factory=dict)
    """The same logs by their numbers."""
    coordinators: Mapping[int, Sequence[Tenure]] = field(default_factory=dict)
    """Partition of ``__consumer_offsets`` -> who led it, in the order of time; empty where nobody wrote that
    down."""

    @property
    def imported(self) -> bool:
        return self.info.system == labels.IMPORTED

    def value(self, value: int | None) -> str:
        """Names a value in sentences: ``p3·607``."""
        return "null" if value is None else labels.value_label(value, imported=self.imported)

    def process(self, process: int | None) -> str:
        """Names a process in sentences, after the word "process"."""
        return "null" if process is None else labels.process_label(process, imported=self.imported)

    def host(self, node: int) -> str:
        return self.info.nodes.get(str(node), f"node {node}")

    def in_force(self, since_ns: int | None, until_ns: int | None) -> list[str]:
        """Lists the faults in force between these; until None: from then on."""
        return [
            fault.text
            for fault in self.faults
            if (until_ns is None or fault.begin_ns <= until_ns)
            and (fault.ended_ns is None or (since_ns is not None and fault.ended_ns + MARGIN_NS >= since_ns))
        ]


def about(number: int, run: Run, topics: Mapping[tuple[int, str], int]) -> AboutRun:
    """Says what checks know of a run. ``topics``: (run, topic) -> number of its partition 0's log."""
    known: dict[str, TopicInfo] = {topic.name: topic for topic in run.info.topics}
    logs: dict[Place, AboutLog] = {}
    for place in places_of(run):
        topic, partition = place
        final, there, of_topic = run.final.get(place), run.replicas.get(place, {}), known.get(topic)
        logs[place] = AboutLog(
            number=topics[number, topic] + partition,
            topic=topic,
            partition=partition,
            start=final.deleted_below if final else 0,
            end=final.end if final else None,
            complete=final is not None and final.is_evidence,
            unread_from=final.end if final is not None and final.derived else None,
            contiguous=of_topic.contiguous if of_topic else True,
            compacted=of_topic.compacted if of_topic else False,
            replicas=whole_replicas(there),
            hosts=sorted(there),
            leaders=_leaders(run, place),
        )
    faults = [
        AboutFault(
            fault.begin_ns if fault.begin_ns is not None else fault.struck_ns,
            fault.ended_ns,
            f"{fault.title} at {fault.struck_ns / 1e9:,.1f} s",
        )
        for fault in sorted(run.faults, key=lambda fault: fault.struck_ns)
    ]
    by_number = {log.number: log for log in logs.values()}
    return AboutRun(number, run.info, logs, faults, by_number, _coordinators(run))


def _coordinators(run: Run) -> dict[int, list[Tenure]]:
    leadership, result = Leadership(run), {}
    changed = ((event.topic, event.partition or 0) for event in run.changes)
    for partition in sorted({place[1] for place in (*run.cluster, *changed) if place[0] == OFFSETS}):
        leaders = leadership.of((OFFSETS, partition))
        first = leaders.first
        result[partition] = [] if first is None else [_tenure(run, first, first.begin_ns, first.begin_ns)]
        result[partition] += [_tenure(run, one.after, one.since_ns, one.until_ns) for one in leaders.changes]
    return result


def _tenure(run: Run, span: LeaderSpan, since_ns: int, latest_ns: int) -> Tenure:
    host, node = span.leader or "", run.node_id(span.leader or "")
    return Tenure(-1 if node is None else node, host, span.leader_epoch or 0, since_ns, latest_ns)


def _leaders(run: Run, place: Place) -> list[tuple[int, str, int]]:
    changes: list[tuple[int, str, int]] = []
    for sample in run.cluster.get(place, ()):
        known = (run.host(sample.leader), sample.leader_epoch)
        if sample.leader >= 0 and (not changes or changes[-1][1:] != known):
            changes.append((sample.time_ns, *known))
    return changes

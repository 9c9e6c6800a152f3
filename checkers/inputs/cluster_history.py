"""The leader, ISR and ELR of each partition over time: from what the system wrote down of every change, or
else from what brokers answered when they were asked. The judge and the report read it here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wrackline.history.json_values import mapping, rows, texts, whole
from wrackline.history.model import CHRONICLE, CONTROL, PARTITION, UNCLEAN_RECOVERY, Event

_SILENT_NS: Final = 5_000_000_000


@dataclass(frozen=True, slots=True)
class LeaderSpan:
    """An interval in which the metadata of a partition did not change."""

    topic: str
    partition: int
    begin_ns: int
    end_ns: int
    leader: str | None
    leader_epoch: int | None
    isr: tuple[str, ...]
    elr: tuple[str, ...]
    replicas: tuple[str, ...]
    partition_epoch: int | None = None
    """None: polled metadata do not show it."""
    recovering: bool = False
    """The leader was elected uncleanly and has not taken over yet."""
    last_known_elr: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.topic}-{self.partition}"

    def same(self, other: LeaderSpan) -> bool:
        return replace(self, begin_ns=0, end_ns=0) == replace(other, begin_ns=0, end_ns=0)


@dataclass(frozen=True, slots=True)
class Recovery:
    """A step of an unclean recovery."""

    at_ns: int
    label: str
    """Of the partition."""
    winner: str | None
    strategy: str
    why: str
    logs: str
    """How far the candidates' logs reached, where that is known."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster's own history, as the report shows it."""

    spans: Mapping[str, Sequence[LeaderSpan]]
    """By partition."""
    recoveries: tuple[Recovery, ...]
    source: str
    """What every change was read from; empty: brokers were asked now and then."""
    missing: tuple[str, ...]
    """What may have happened and is not here."""


def cluster_of(control: Sequence[Event], nodes: Mapping[str, str], end_ns: int) -> Cluster:
    """Returns the cluster's own history: what was written down, where anything was."""
    own = [event for event in control if event.process == CONTROL]
    chronicles = [event.extra or {} for event in own if event.f == CHRONICLE]  # one of each topic
    exact = exact_spans(own, nodes, end_ns)
    return Cluster(
        exact or polled_spans(own, nodes, end_ns),
        tuple(_recovery(event, nodes) for event in own if event.f == UNCLEAN_RECOVERY),
        str(chronicles[-1].get("source") or "") if exact and chronicles else "",
        tuple(dict.fromkeys(line for extra in chronicles for line in texts(extra, "missing"))),
    )


def _recovery(event: Event, nodes: Mapping[str, str]) -> Recovery:
    extra = dict(event.extra or {})
    winner = whole(extra, "winner")
    logs = (
        f"{nodes.get(node, node)}: {end[1]} (epoch {end[0]})"
        for node, end in sorted(mapping(extra, "logs").items())
        if isinstance(end, list) and len(end) == 2
    )
    return Recovery(
        at_ns=whole(extra, "at_ns") or 0,
        label=f"{event.topic}-{event.partition}",
        winner=None if winner is None or winner < 0 else nodes.get(str(winner), str(winner)),
        strategy=str(extra.get("strategy") or ""),
        why=str(extra.get("why") or ""),
        logs=", ".join(logs),
    )


def exact_spans(
    control: Iterable[Event], nodes: Mapping[str, str], end_ns: int
) -> dict[str, list[LeaderSpan]]:
    """Partition label -> its metadata over time, as the system itself has written every change down."""
    result: dict[str, list[LeaderSpan]] = {}
    for event in control:
        if event.f != PARTITION or event.topic is None or event.partition is None:
            continue
        row = {
            "topic": event.topic,
            "partition": event.partition,
            "leader_epoch": event.leader_epoch,
            **(event.extra or {}),
        }
        fresh = _span(row, whole(row, "at_ns") or 0, end_ns, nodes)
        known = result.setdefault(fresh.label, [])
        if known:
            known[-1] = replace(known[-1], end_ns=fresh.begin_ns)
        known.append(fresh)
    return dict(sorted(result.items(), key=lambda item: (item[1][0].topic, item[1][0].partition)))


def polled_spans(
    control: Iterable[Event], nodes: Mapping[str, str], end_ns: int
) -> dict[str, list[LeaderSpan]]:
    """Partition label -> its metadata over time, as brokers answered; merged where it did not change.

    The runner writes a row a second while the cluster answers. Where there was no answer for longer than
    ``_SILENT_NS`` nothing is known, and there is no span."""
    spans: dict[str, list[LeaderSpan]] = {}
    for event in control:
        if event.process != CONTROL or event.f != "cluster":
            continue
        for row in rows(event.extra, "partitions"):
            fresh = _span(row, event.time_ns, min(end_ns, event.time_ns + _SILENT_NS), nodes)
            known = spans.setdefault(fresh.label, [])
            if known and event.time_ns <= known[-1].end_ns:
                same = known[-1].same(fresh)
                known[-1] = replace(known[-1], end_ns=fresh.end_ns if same else event.time_ns)
                if same:
                    continue
            known.append(fresh)
    return dict(sorted(spans.items(), key=lambda item: (item[1][0].topic, item[1][0].partition)))


def _span(row: Mapping[str, Any], begin_ns: int, end_ns: int, nodes: Mapping[str, str]) -> LeaderSpan:
    leader, epoch = whole(row, "leader"), whole(row, "partition_epoch")

    def names(key: str) -> tuple[str, ...]:
        return tuple(nodes.get(node, node) for node in texts(row, key))

    return LeaderSpan(
        topic=str(row.get("topic", "?")),
        partition=whole(row, "partition") or 0,
        begin_ns=begin_ns,
        end_ns=end_ns,
        leader=None if leader is None or leader < 0 else nodes.get(str(leader), str(leader)),
        leader_epoch=whole(row, "leader_epoch"),
        isr=names("isr"),
        elr=names("elr"),
        replicas=names("replicas"),
        partition_epoch=epoch if epoch is not None and epoch >= 0 else None,
        recovering=row.get("recovering") is True,
        last_known_elr=names("last_known_elr"),
    )

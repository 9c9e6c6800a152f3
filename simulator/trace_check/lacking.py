"""The traces that lack lines at their end, or are not there at all, by what other nodes tell.

A node whose trace is over is silent, and says nothing of what it had: what rests on its state cannot be
decided from there on. A node that is down, or idle, is silent too; so one counts only where another node's
trace shows something of it which its own does not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from wrackline.broker.model.metadata.records import LEADER_UNCHANGED
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.trace_check.causality import Shown
from wrackline.simulator.trace_check.lines import (
    COMMIT,
    Line,
    Step,
    appended_by_leaders,
    batches_of,
    commits_of,
    lines_of,
    partition_of,
    proposal_of,
)
from wrackline.simulator.trace_check.transactions import WRITE

_ANY = 1 << 62


class Lacking:
    """The part of the run that no trace tells. ``why``: node -> what its trace lacks."""

    def __init__(self, streams: Mapping[NodeId, Sequence[Step]], known: Mapping[NodeId, str]) -> None:
        """``known``: what the collector knows to be missing."""
        self._streams = streams
        self._shown = Shown(forgets=False)
        for steps in streams.values():
            for step in steps:
                self._shown.take(step)
        lines = lines_of(streams)
        self._appended = appended_by_leaders(streams)
        self._proposed = {
            proposal_of(line) for line in lines if line.kind == "isr" and line.fields["pending"]
        }
        self._zxid = max((line.fields["zxid"] for line in lines if line.kind == WRITE), default=-1)
        self._highest: dict[str, int] = defaultdict(lambda: -1)
        """Partition -> the highest partition epoch that was committed."""
        self._epochs: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        """Partition -> (offset of a change, the partition epoch that it makes), in order."""
        self._leaders: dict[tuple[NodeId, str], NodeId] = {}
        self._left = Counter({node: len(steps) for node, steps in streams.items()})
        self._replicas: dict[TopicPartition, set[NodeId]] = {}
        self.why: dict[NodeId, str] = dict(known)
        every = (
            (node, step, line) for node, steps in streams.items() for step in steps for line in step.lines
        )
        for node, step, line in every:
            for other, what in self._misses(node, line):
                if other >= 0 and other != node:
                    self.why.setdefault(other, f"its trace lacks {what} ({step.place})")
        for other, what in self._changed(sorted(commits_of(streams).items())):
            self.why.setdefault(other, f"its trace lacks {what}")

    def took(self, step: Step) -> None:
        """A step is over."""
        self._left[step.node] -= 1

    def untold(self, step: Step) -> str:
        """Returns why nothing can be said of the metadata from this step on; empty: no reason."""
        for line in step.lines:
            fields = line.fields
            match line.kind:
                case "md_apply" if self._epochs and fields["partition_epoch"] > self._epoch_at(fields):
                    what = f"all that was committed up to {fields['offset']}"
                case "isr" if self._epochs and fields["partition_epoch"] > self._highest[fields["tp"]]:
                    what = f"which change made partition epoch {fields['partition_epoch']}"
                case "zk" if 0 <= self._zxid < fields["zxid"]:
                    what = f"transaction {fields['zxid']} of ZooKeeper"
                case _:
                    continue
            return f"{step.place}: no trace tells {what}"
        return ""

    def _epoch_at(self, fields: Mapping[str, Any]) -> int:
        """The partition epoch that is known to have been committed by then."""
        made = self._epochs[fields["topic_id"], partition_of(fields["tp"]).partition]
        at = bisect_right(made, (fields["offset"], _ANY))
        return made[at - 1][1] if at else -1

    def silent(self, tp: TopicPartition | None) -> str:
        """A node whose trace is over, and without whose state nothing can be said of a partition (None: of
        what is of no partition); empty: there is none."""
        for node, why in self.why.items():
            if self._left[node] <= 0 and (tp is None or node in self._replicas.get(tp, {node})):
                return f"node {node}: {why}"
        return ""

    def _misses(self, node: NodeId, line: Line) -> Iterator[tuple[NodeId, str]]:
        fields = line.fields
        match line.kind:
            case "follower":
                stay = fields["id"], fields["tp"], fields["broker_epoch"], fields["leader_epoch"]
                if fields["leo"] >= 0 and fields["leo"] not in self._shown.ends[stay]:
                    yield fields["id"], f"that its log of {fields['tp']} ended at {fields['leo']}"
            case "md_apply" | "role":
                self._leaders[node, fields["tp"]] = fields.get("leader", -1)
                yield from self._assigned(line, fields.get("replicas", ()))
            case "assigned":
                yield from self._assigned(line, fields["replicas"])
            case "append" if not fields["leader"] and not batches_of(line) <= self._appended:
                yield self._leaders.get((node, fields["tp"]), -1), f"records of {fields['tp']} that it led"
            case "hwm" if fields["new"] > max(fields["old"], self._shown.highest[fields["tp"]]):
                yield self._leaders.get((node, fields["tp"]), -1), f"a high watermark of {fields['tp']}"
            case _ if line.kind == COMMIT and fields["record"]["type"] == "RegisterBrokerRecord":
                if fields["record"]["incarnation_id"] not in self._shown.lives:
                    yield fields["record"]["broker_id"], "that it began another life"

    def _assigned(self, line: Line, nodes: Collection[NodeId]) -> Iterator[tuple[NodeId, str]]:
        self._replicas.setdefault(partition_of(line.fields["tp"]), set()).update(nodes)
        return ((node, "everything") for node in nodes if node not in self._streams)

    def _changed(self, commits: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[NodeId, str]]:
        """Leaders whose proposals to take somebody into the ISR were committed, and are in no trace."""
        names: dict[str, str] = {}
        now: dict[str, tuple[NodeId, int, set[NodeId]]] = {}
        for offset, record in commits:
            if record["type"] == "TopicRecord":
                names[record["topic_id"]] = record["name"]
            if record["type"] not in ("PartitionRecord", "PartitionChangeRecord"):
                continue
            tp = f"{names.get(record['topic_id'], '')}-{record['partition_id']}"
            leader, epoch, isr = now.get(tp, (-1, -1, set()))
            fresh = record["isr"]
            led_by = leader if record["leader"] in (None, LEADER_UNCHANGED) else record["leader"]
            grown = sorted(fresh) if fresh is not None and not set(fresh) <= isr and led_by == leader else []
            is_first = record["type"] == "PartitionRecord"
            if grown and not is_first and (tp, epoch, tuple(grown)) not in self._proposed:
                yield leader, f"that it proposed {grown} as the ISR of {tp}"
            epoch = record["partition_epoch"] if is_first else epoch + 1
            now[tp] = led_by, epoch, isr if fresh is None else set(fresh)
            self._epochs[record["topic_id"], record["partition_id"]].append((offset, epoch))
            self._highest[tp] = max(self._highest[tp], epoch)

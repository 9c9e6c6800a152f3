"""One order of what all nodes did: by time, and never against cause and effect.

Clocks of different hosts differ by some milliseconds. A step that rests on another node's, as a follower's
append does on its leader's, therefore waits for it here, whatever the clocks say. Any order that respects
this is a course of events that the nodes could not tell from the real one, and an invariant must hold in
each of its states.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wrackline.broker.model.types import NodeId
from wrackline.simulator.trace_check.causality import Causality
from wrackline.simulator.trace_check.lines import (
    COMMIT,
    Batch,
    Line,
    Proposal,
    Step,
    appended_by_leaders,
    batches_of,
    commits_of,
    lines_of,
    proposal_of,
)
from wrackline.simulator.trace_check.transactions import Transactions

Streams = dict[NodeId, list[Step]]


class Order:
    """``unordered`` counts the steps whose cause is in no trace, or in one that waits for them."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        commits = sorted(commits_of(streams).items())
        self._offsets = [offset for offset, _ in commits]
        self._batches = appended_by_leaders(streams)
        proposals = {
            proposal_of(line)
            for line in lines_of(streams)
            if line.kind == "isr" and line.fields["pending"] is not None
        }
        changes = list(_changes(commits))
        self._wanted = {one.offset: one.proposal for one in changes if one.proposal in proposals}
        """Offset of the metadata log -> the proposal that this change takes; the controller's own are not
        here."""
        self._made: dict[tuple[str, int], int] = {}
        """(partition, partition epoch) -> the offset of the change that made it; of topics of one name the
        first."""
        for change in changes:
            self._made.setdefault((change.tp, change.epoch), change.offset)
        self._committed = -1
        self._appended: set[Batch] = set()
        self._proposed: set[Proposal] = set()
        self._causality = Causality(streams)
        self._zookeeper = Transactions(streams)
        self.unordered = 0

    def __iter__(self) -> Iterator[Step]:
        at = dict.fromkeys(self._streams, 0)
        while True:
            heads = [
                (steps[at[node]].at_ns, node)
                for node, steps in self._streams.items()
                if at[node] < len(steps)
            ]
            if not heads:
                return
            heads.sort()
            ready = next((node for _, node in heads if self._ready(self._streams[node][at[node]])), None)
            if ready is None:
                self.unordered += 1
                ready = heads[0][1]
            step = self._streams[ready][at[ready]]
            at[ready] += 1
            self._took(step)
            yield step

    def _ready(self, step: Step) -> bool:
        causality, zookeeper = self._causality, self._zookeeper
        return all(
            self._caused(step.node, line) and causality.caused(step, line) and zookeeper.caused(line)
            for line in step.lines
        )

    def _caused(self, node: NodeId, line: Line) -> bool:
        """Tells whether all that the line rests on has been taken."""
        fields = line.fields
        match line.kind:
            case "append" if not fields["leader"]:
                return batches_of(line) & self._batches <= self._appended
            case "isr":
                made = self._made.get((fields["tp"], fields["partition_epoch"]))
                return made is None or self._is_committed(made)
            case "md_apply" | "delete":
                return self._is_committed(fields.get("offset", -1))  # older brokers delete without saying why
            case "register" if fields["broker"] == node:
                return self._is_committed(fields["epoch"])
            case _ if line.kind == COMMIT:
                expected = self._wanted.get(fields["offset"])
                return expected is None or expected in self._proposed
            case _:
                return True

    def _is_committed(self, offset: int) -> bool:
        """All of the metadata log up to there that is in any trace."""
        at = bisect_right(self._offsets, offset)
        return at == 0 or self._committed >= self._offsets[at - 1]

    def _took(self, step: Step) -> None:
        self._causality.took(step)
        for line in step.lines:
            fields = line.fields
            match line.kind:
                case "append" if fields["leader"]:
                    self._appended |= batches_of(line)
                case "isr" if fields["pending"] is not None:
                    self._proposed.add(proposal_of(line))
                case _ if line.kind == COMMIT:
                    self._committed = max(self._committed, fields["offset"])
                case _:
                    self._zookeeper.took(line)


class _Change(NamedTuple):
    """A change of a partition, in the metadata log."""

    offset: int
    tp: str
    epoch: int
    """The partition epoch that it makes."""
    proposal: Proposal | None
    """What a leader would have proposed for it; None where it leaves the ISR as it was."""


def _changes(commits: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[_Change]:
    names: dict[str, str] = {}
    epochs: dict[str, int] = {}
    for offset, record in commits:
        match record["type"]:
            case "TopicRecord":
                names[record["topic_id"]] = record["name"]
            case "PartitionRecord":
                tp = _tp(names, record)
                epochs[tp] = record["partition_epoch"]
                yield _Change(offset, tp, epochs[tp], None)
            case "PartitionChangeRecord":
                tp = _tp(names, record)
                before = epochs.get(tp, 0)
                epochs[tp] = before + 1
                isr = record["isr"]
                yield _Change(
                    offset, tp, before + 1, None if isr is None else (tp, before, tuple(sorted(isr)))
                )


def _tp(names: Mapping[str, str], record: Mapping[str, Any]) -> str:
    return f"{names.get(record['topic_id'], '')}-{record['partition_id']}"

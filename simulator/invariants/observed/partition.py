"""The observed state of one partition: what was committed and acknowledged, and who still has it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.model.types import NO_EPOCH, NodeId, TopicPartition
from wrackline.simulator.world.disk_log import SimLog, Stored


class Mark(NamedTuple):
    """One committed or acknowledged batch: [base, end) of ``epoch``, identified by its CRC."""

    base: int
    end: int
    epoch: int
    crc: int

    @classmethod
    def of(cls, stored: Stored) -> Mark:
        header = stored.header
        return cls(header.base_offset, header.last_offset + 1, header.leader_epoch, header.crc)

    def is_in(self, log: SimLog) -> bool:
        """Tells whether a log has the batch, or had it until its start moved past it."""
        if self.base < log.start:
            return True
        at = log.index_of(self.base)
        return at < len(log.batches) and Mark.of(log.batches[at]) == self


@dataclass(slots=True)
class ObservedPartition:
    tp: TopicPartition
    topic_id: UUID
    true_hwm: int = 0
    committed: list[Mark] = field(default_factory=list)
    """What had been below the high watermark when a leader's first passed it, in order, gapless."""
    ends: list[int] = field(default_factory=list)
    acked: list[Mark] = field(default_factory=list)
    """Acknowledged with acks=all, by offset."""
    match: dict[NodeId, int] = field(default_factory=dict)
    records: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(epoch, base) -> (crc, end) of every batch ever appended anywhere."""
    leaders: dict[int, NodeId] = field(default_factory=dict)
    """Leader epoch -> who took the role in it."""
    impaired: dict[NodeId, int] = field(default_factory=dict)
    """Lost records in a crash, and no later life has joined the ISR since; which life lost them last."""
    suspects: set[NodeId] = field(default_factory=set)
    """Still hold what an unclean election has given up, and have not been cut yet."""
    unproved: set[NodeId] = field(default_factory=set)
    """Came back uncleanly and have not shown a leader that they are complete (I08)."""
    below_min: bool = False
    """Created, or elected uncleanly, with fewer members than MinISR, or MinISR was raised above their number;
    and never as large since (I09)."""
    min_isr: int = 0
    """When the partition last changed."""
    lost_epoch: int = NO_EPOCH
    """Leader epoch of the last election that was allowed to lose records; earlier leaders count no more."""

    @property
    def committed_end(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def acked_end(self) -> int:
        return self.acked[-1].end if self.acked else 0

    def extend(self, node: NodeId, log: SimLog) -> int:
        """Compare on from where the comparison stands; the new ``match``."""
        at = min(self.match.get(node, 0), log.leo)
        if at < log.start:
            at = min(log.start, self.committed_end)
        here, there = bisect_right(log.ends, at), bisect_right(self.ends, at)
        while here < len(log.batches) and there < len(self.committed):
            if Mark.of(log.batches[here]) != self.committed[there]:
                break
            at = log.ends[here]
            here, there = here + 1, there + 1
        self.match[node] = at
        return at

    def commit(self, log: SimLog, high_watermark: int) -> bool:
        """A leader's high watermark stands here. True when more is committed than before."""
        if high_watermark <= self.true_hwm:
            return False
        self.true_hwm = high_watermark
        for at in range(bisect_right(log.ends, self.committed_end), len(log.batches)):
            if log.ends[at] > high_watermark:
                break
            self.committed.append(Mark.of(log.batches[at]))
            self.ends.append(log.ends[at])
        return True

    def give_up(self, to_offset: int, leader_epoch: int, ends: Mapping[NodeId, int]) -> None:
        """Gives up what was committed past ``to_offset``: it is lost, and may be. ``ends``: every replica's
        log end."""
        kept = bisect_right(self.ends, to_offset)
        del self.committed[kept:], self.ends[kept:]
        self.true_hwm = self.committed_end
        self.acked = [mark for mark in self.acked if mark.end <= self.true_hwm]
        self.match = {node: min(at, self.true_hwm) for node, at in self.match.items()}
        self.suspects |= {node for node, end in ends.items() if end > self.true_hwm}
        self.lost_epoch = leader_epoch

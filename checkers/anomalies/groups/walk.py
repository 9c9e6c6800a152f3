"""The walk: from events to findings, with records in columns and the events of groups one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.finding import Finding
from wrackline.checkers.anomalies.groups.coordinator import Coordinator, Moves
from wrackline.checkers.anomalies.groups.deliveries import Deliveries
from wrackline.checkers.anomalies.groups.events import (
    COMMIT,
    COMMITTED,
    OF_GROUPS,
    SUBSCRIBE,
    GroupEvents,
    Operation,
)
from wrackline.checkers.anomalies.groups.final_read import FinalRead
from wrackline.checkers.anomalies.groups.ownership import double_owners
from wrackline.checkers.anomalies.groups.sentences import Sentences
from wrackline.checkers.anomalies.keys import KINDS_WITH_OFFSETS
from wrackline.checkers.anomalies.walks import Figure, Walked
from wrackline.checkers.inputs.arrays import Bools, Ints
from wrackline.checkers.inputs.operations import ROWS_OF_MEMBERS

KINDS = frozenset({COMMIT, COMMITTED, SUBSCRIBE, *ROWS_OF_MEMBERS})
"""Where none of these is, there is no group."""
READ = OF_GROUPS | KINDS_WITH_OFFSETS


def parts(batch: pa.RecordBatch, about: AboutRun) -> Ints:
    """A run is one part: whose member a process is may be told after its polls. Events that are looked at for
    their keys alone are in none where no topic is compacted."""
    if any(log.compacted for log in about.logs.values()):
        return np.zeros(len(batch), np.int64)
    for_keys = pc.is_in(batch.column("f"), value_set=pa.array(["send", "replica"]))
    found: Ints = np.where(for_keys.to_numpy(zero_copy_only=False), -1, 0)
    return found


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Walked:
    """Findings of groups, and the figure of each: (deliveries to its members, of how many different
    records)."""
    run = _Run(about)
    for batch in batches:
        run.take(batch)
    run.finish()
    moves = Moves(about, run.events.placements)
    for group in sorted({*run.events.commits, *run.events.answers, *run.events.rebalanced}):
        yield from Coordinator(group, run.events, moves, about).find()
    yield from double_owners(run.events.placements, about)
    yield from run.skips()
    yield from run.passed()
    yield from run.figures()


class _Run:
    """What is gathered of one run."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self.events, self._given = GroupEvents(about), Deliveries(about)
        self._final = FinalRead(about)

    def take(self, batch: pa.RecordBatch) -> None:
        self._given.take(batch, self.events.take(batch))
        for log, records in self._final.take(batch):
            self._final.keep(log, records.take(self._lacking(log, records.offset)))

    def _lacking(self, log: int, offsets: Ints) -> Bools:
        """Which offsets somebody may lack: most of the final read is not kept."""
        found = np.zeros(len(offsets), np.bool_)
        for group in self.events.committing[log]:
            found |= ~self._given.of_group(self.events.members_of(group), log).has(offsets)
        for one in self._given.passed_by(log):
            found |= (offsets >= one.since) & (offsets < one.until)
        return found

    def finish(self) -> None:
        self.events.finish()
        self._given.finish()

    def skips(self) -> Iterator[Finding]:
        """Records from where each group began, the lowest offset that a member was put at or given, or that
        was committed, to the largest that was committed."""
        say = Sentences(self._about)
        for group, commits in self.events.commits.items():
            by_log: dict[int, list[Operation]] = defaultdict(list)
            for one in commits:
                if one.succeeded:
                    by_log[one.log.number].append(one)
            members = self.events.members_of(group)
            for log, some in by_log.items():
                last = max(some, key=lambda one: (one.offset, one.complete_index))
                given = self._given.of_group(members, log)
                put = [self._given.lowest[who, log] for who in members if (who, log) in self._given.lowest]
                low = min([*put, *(one.offset for one in some), *given.lowest])
                kept = self._final.of(log)
                of_group = (kept.offset >= low) & (kept.offset < last.offset) & ~given.has(kept.offset)
                for index, offset, value in kept.take(of_group).rows():
                    yield say.skip(last, offset, value, index)

    def passed(self) -> Iterator[Finding]:
        say = Sentences(self._about)
        for one in self._given.passed:
            if self.events.members.get(one.process):
                kept = self._final.of(one.log)
                lacking = (kept.offset >= one.since) & (kept.offset < one.until)
                for index, offset, value in kept.take(lacking).rows():
                    yield say.passed(one, self._about.of_number[one.log], offset, value, index)

    def figures(self) -> Iterator[Figure]:
        by_log: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for process, log in self._given.given:
            for group in self.events.members.get(process, ()):
                by_log[group][log].append(process)
        for group, logs in sorted(by_log.items()):
            some = [self._given.of_group(members, log) for log, members in logs.items()]
            yield Figure("group", group, (sum(one.count for one in some), sum(map(len, some))))

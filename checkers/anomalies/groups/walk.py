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
from wrackline.checkers.anomalies.groups.findings import Findings
from wrackline.checkers.anomalies.groups.ownership import double_owners
from wrackline.checkers.anomalies.groups.records import Records, apart, records_of
from wrackline.checkers.anomalies.keys import KINDS_WITH_OFFSETS, LastOfKeys
from wrackline.checkers.anomalies.walks import Figure, Walked
from wrackline.checkers.inputs.arrays import Bools, Ints
from wrackline.checkers.inputs.operations import ROWS_OF_MEMBERS
from wrackline.checkers.inputs.row_groups import ints

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
    run.events.finish()
    moves = Moves(run.events.moves, about)
    for group in sorted({*run.events.members, *run.events.answers}):
        yield from Coordinator(group, run.events, moves, about).find()
    yield from double_owners(run.events.moves, about)
    yield from run.skips()
    yield from run.figures()


class _Run:
    """What is gathered of one run."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self.events, self._given = GroupEvents(about), Deliveries(about)
        self._final: dict[int, list[Records]] = defaultdict(list)
        compacted = [one for one in about.logs.values() if one.compacted]
        self._keys = {one.number: LastOfKeys(one.topic, one.partition) for one in compacted}

    def take(self, batch: pa.RecordBatch) -> None:
        self._given.take(batch, self.events.take(batch))
        for keys in self._keys.values():
            keys.take(batch)
        is_drain = pc.and_(pc.equal(batch.column("f"), "drain"), pc.equal(batch.column("type"), "ok"))
        drains = batch.filter(is_drain)
        records, index = records_of(drains, self._about), ints(drains.column("index"))
        for (log,), rows in apart(records.log):
            some = records.take(rows)._replace(row=index[records.row[rows]])
            self._final[log].append(some.take((some.value >= 0) & self._lacking(log, some.offset)))

    def _lacking(self, log: int, offsets: Ints) -> Bools:
        """Which records of the final read somebody may lack: most are not kept."""
        found = np.zeros(len(offsets), np.bool_)
        for group in self.events.committing[log]:
            found |= ~self._given.to(self.events.members[group], log).has(offsets)
        for one in self._given.passed():
            found |= (offsets >= one.since) & (offsets < one.until) & (one.log == log)
        return found

    def _kept(self, log: int) -> Records:
        """Of these the ones that must be there for every reader: a later one of the key follows none."""
        found = Records.joined(self._final[log])
        if log not in self._keys or not len(found.row):
            return found
        last = self._keys[log].of_values(found.value.tolist())
        pairs = zip(found.value.tolist(), found.offset.tolist(), strict=True)
        return found.take(np.array([offset >= last.get(value, offset) for value, offset in pairs], np.bool_))

    def skips(self) -> Iterator[Finding]:
        """Records from where each group began, the lowest offset that a member was put at or given, or that
        was committed, to the largest that was committed; and those that members went past."""
        say = Findings(self._about)
        for group, members in self.events.members.items():
            by_log: dict[int, list[Operation]] = defaultdict(list)
            for one in self.events.commits.get(group, ()):
                if one.succeeded:
                    by_log[one.log.number].append(one)
            for log, some in by_log.items():
                last = max(some, key=lambda one: (one.offset, one.until))
                given = self._given.to(members, log)
                put = [self._given.lowest[who, log] for who in members if (who, log) in self._given.lowest]
                low = min([*put, *(one.offset for one in some), *given.begin[:1].tolist()])
                kept = self._kept(log)
                lacking = (kept.offset >= low) & (kept.offset < last.offset) & ~given.has(kept.offset)
                for index, _, offset, value in zip(*kept.take(lacking), strict=True):
                    yield say.skip(last, int(index), int(offset), int(value))
        of_groups = set().union(*self.events.members.values())
        for passed in self._given.passed():
            kept = self._kept(passed.log)
            lacking = (kept.offset >= passed.since) & (kept.offset < passed.until)
            for index, _, offset, value in zip(*kept.take(lacking), strict=True):
                if passed.process in of_groups:
                    yield say.passed(passed, int(index), int(offset), int(value))

    def figures(self) -> Iterator[Figure]:
        logs = {log for _, log in self._given.given}
        for group, members in sorted(self.events.members.items()):
            some = [self._given.to(members, log) for log in logs]
            if count := sum(one.number for one in some):
                yield Figure("group", group, (count, sum(one.size for one in some)))

"""The walk: from events to findings, with records in columns and the events of groups one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.groups.coordinator import Coordinator, Moves
from wrackline.checkers.anomalies.groups.deliveries import Deliveries
from wrackline.checkers.anomalies.groups.events import GroupEvents, Operation
from wrackline.checkers.anomalies.groups.findings import Findings
from wrackline.checkers.anomalies.groups.ownership import double_owners
from wrackline.checkers.anomalies.groups.spans import apart
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import COMMIT, COMMITTED, OF_GROUPS, SUBSCRIBE, EventBatch, Records
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.keys import KINDS_WITH_OFFSETS, LastOfKeys
from wrackline.checkers.checks.walks import Figure, Walked
from wrackline.checkers.inputs.row_groups import ROWS_OF_MEMBERS
from wrackline.checkers.inputs.table import Bools, Ints, bools, concatenated, rows_of
from wrackline.history.model import TOMBSTONE

KINDS = frozenset({COMMIT, COMMITTED, SUBSCRIBE, *ROWS_OF_MEMBERS})
"""Where none of these is, there is no group."""
READ = OF_GROUPS | KINDS_WITH_OFFSETS


def parts(batch: pa.RecordBatch, about: AboutRun) -> Ints:
    """A run is one part: whose member a process is may be told after its polls. Events that are looked at for
    their keys alone are in none where no topic is compacted."""
    if any(log.compacted for log in about.logs.values()):
        return np.zeros(len(batch), np.int64)
    for_keys = pc.is_in(batch.column("f"), value_set=pa.array(["send", "replica"]))
    result: Ints = np.where(for_keys.to_numpy(zero_copy_only=False), -1, 0)
    return result


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Walked:
    """Findings of groups, and the figure of each: (deliveries to its members, of how many different
    records)."""
    run = _Run(about)
    for batch in batches:
        run.take(EventBatch(batch, about))
    events = run.events
    commits, answers = (events.operations(f) for f in (COMMIT, COMMITTED))
    moves = Moves(events.moves)
    for group in sorted({*events.members, *answers}):
        of_group = commits.get(group, []), answers.get(group, [])
        yield from Coordinator(group, events, *of_group, moves, about).find()
    yield from double_owners(events.moves, about)
    yield from run.skips(commits)
    yield from run.figures()


class _Run:
    """The facts gathered of one run."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self.events, self._given = GroupEvents(about), Deliveries(about)
        self._final: list[Records] = []
        self._keys = LastOfKeys(about)

    def take(self, events: EventBatch) -> None:
        self._given.take(events, self.events.moves_in(events))
        self._keys.take(events)
        drains = events.records.take(events.are("ok", "drain")[events.records.of])
        drains = replace(drains, of=events.index[drains.of])
        self._final.append(drains.take((drains.value >= 0) & self._lacking(drains)))

    def _lacking(self, final: Records) -> Bools:
        """Marks the records of the final read that somebody may lack: most are not kept."""
        result = np.zeros(len(final), np.bool_)
        for (log,), rows in apart(final.log):
            for group in self.events.committing[log]:
                result[rows] |= ~self._given.to(self.events.members[group], log).has(final.offset[rows])
        for one in self._given.passed():
            result |= (final.offset >= one.since) & (final.offset < one.until) & (final.log == one.log)
        return result

    def _kept(self) -> dict[int, Records]:
        """Returns by log the kept records that must be there for every reader: no later record of the key
        follows them."""
        final = concatenated(Records, self._final)
        of_logs = {log: final.take(rows) for (log,), rows in apart(final.log)}
        return {log: of.take(self._must_stay(log, of)) for log, of in of_logs.items()}

    def _must_stay(self, log: int, of: Records) -> Bools:
        last = of.offset >= self._keys.of_values(log, of.value)
        if not self._about.of_number[log].compacted:
            return bools(last)
        return bools(last & (of.value & 0xF != TOMBSTONE))

    def skips(self, commits: Mapping[str, Sequence[Operation]]) -> Iterator[Finding]:
        """Records from where each group began, the lowest offset that a member was put at or given, or that
        was committed, to the largest that was committed; and those that members went past."""
        say, every = Findings(self._about), self._kept()
        for group, members in self.events.members.items():
            by_log: dict[int, list[Operation]] = defaultdict(list)
            for one in commits.get(group, ()):
                if one.succeeded and one.log.number in every:
                    by_log[one.log.number].append(one)
            for log, some in by_log.items():
                last, kept = max(some, key=lambda one: (one.offset, one.until)), every[log]
                given = self._given.to(members, log)
                put = [self._given.lowest[who, log] for who in members if (who, log) in self._given.lowest]
                low = min([*put, *(one.offset for one in some), *given.begin[:1].tolist()])
                if self._goes_past(log, low):
                    continue
                lacking = (kept.offset >= low) & (kept.offset < last.offset) & ~given.has(kept.offset)
                for record in rows_of(kept.take(lacking)):
                    yield say.skip(last, record)
        of_groups = set().union(*self.events.members.values())
        for passed in self._given.passed():
            if passed.process in of_groups and (there := every.get(passed.log)):
                if self._goes_past(passed.log, passed.since):
                    continue
                lacking = (there.offset >= passed.since) & (there.offset < passed.until)
                for record in rows_of(there.take(lacking)):
                    yield say.passed(passed, record)

    def _goes_past(self, log: int, position: int) -> bool:
        """Tells whether ``auto.offset.reset`` may take a member past records: what was at its position was
        deleted, and it goes on elsewhere than at the log start."""
        other_reset = self._about.info.reset not in ("", "earliest")
        return other_reset and position < self._about.of_number[log].start

    def figures(self) -> Iterator[Figure]:
        logs = {log for _, log in self._given.given}
        for group, members in sorted(self.events.members.items()):
            some = [self._given.to(members, log) for log in logs]
            if count := sum(one.number for one in some):
                yield Figure("group", group, (count, sum(one.size for one in some)))

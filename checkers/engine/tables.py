"""What several checks read: the runs of one analysis as small tables, and their events.

Every table has ``run``, the number of the run in this analysis, and what concerns a partition has ``log``, a
number for (run, topic, partition). Nothing here collects.

The clock is ``index``: the recorder gives it under one lock, an invocation's before the request leaves and a
completion's after the reply came, so that "completed before invoked" is one comparison without ties. ``ns``
columns are nanoseconds from the start of the run, for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession

from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.context import places_of, topics_of, whole_replicas
from wrackline.checkers.engine.frames import (
    Frame,
    Int,
    Long,
    Text,
    Texts,
    Truth,
    frame,
    schema,
    small,
    struct_type,
)
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.inputs.table import Table

T = TypeVar("T", bound=Table[Column])
LOCAL_EVENTS = 500_000
"""With fewer events and records than this, what can be done without Spark's shuffles is done without."""
MANY, MANY_FACTS = 16, 2_000_000
"""From so many files on, up to so many events and records, the history is kept in memory."""


def few(runs: Sequence[Run]) -> bool:
    return sum(run.facts for run in runs) < LOCAL_EVENTS


@dataclass(frozen=True, slots=True)
class RecordOf(Table[Column]):
    """A record in ``records`` of an event (wrackline.history.model.Record)."""

    partition: Int
    offset: Long
    value: Long
    leader_epoch: Int
    timestamp: Long


Records = Annotated[Column, f"array<{struct_type(RecordOf)}>"]


@dataclass(frozen=True, slots=True)
class Written(Table[Column]):
    """What was written down of an event (wrackline.history.model.Event)."""

    index: Long
    time_ns: Long
    process: Int
    type: Text
    f: Text
    topic: Text
    partition: Int
    offset: Long
    value: Long
    key: Text
    leader_epoch: Int
    high_watermark: Long
    records: Records
    error: Text
    node: Text
    latency_ns: Long
    extra: Text
    """JSON."""


@dataclass(frozen=True, slots=True)
class EventRow(Written):
    """An event of one of the runs."""

    run: Int


@dataclass(frozen=True, slots=True)
class Partition(Table[Column]):
    run: Int
    log: Long
    topic: Text
    partition: Int


@dataclass(frozen=True, slots=True)
class ValueOf(Table[Column]):
    """A value of a partition: what says that two rows speak of the same record."""

    run: Column
    topic: Column
    partition: Column
    value: Column


@dataclass(frozen=True, slots=True)
class Log(Table[Column]):
    """A partition of a run."""

    log: Long
    topic: Text
    partition: Int
    log_start: Long
    replicas: Texts
    """The hosts of those in the ISR that were read whole, in the order of their bits."""


@dataclass(frozen=True, slots=True)
class LogOfRun(Table[Column]):
    """A partition of a run, and how far its final read came."""

    run: Int
    topic: Text
    partition: Int
    log: Long
    log_start: Long
    log_end: Long
    """Null without a final read."""
    complete: Truth
    """Whether the final read reached the end."""
    unread_from: Long
    """From which offset on nothing is known, where the final read is derived from polls; else null."""


@dataclass(frozen=True, slots=True)
class Replica(Table[Column]):
    log: Long
    process: Long
    """The number of the replica (wrackline.checkers.engine.context)."""
    host: Text


@dataclass(frozen=True, slots=True)
class Fault(Table[Column]):
    begin_ns: Long
    ended_ns: Long
    """Null where it was still in force at the end."""
    text: Text


@dataclass(frozen=True, slots=True)
class FaultsOfRun(Table[Column]):
    run: Int
    faults: Annotated[Column, f"array<{struct_type(Fault)}>"]
    """In the order in which they struck."""


@dataclass(frozen=True, slots=True)
class Leader(Table[Column]):
    time_ns: Long
    node: Text
    epoch: Int


@dataclass(frozen=True, slots=True)
class LeadersOfLog(Table[Column]):
    """When metadata named another leader."""

    log: Long
    leaders: Annotated[Column, f"array<{struct_type(Leader)}>"]


@dataclass(frozen=True, slots=True)
class Named(Table[Column]):
    """How a run is called in its files."""

    run: Int
    test_id: Text
    system: Text


@dataclass(frozen=True, slots=True)
class CandidateOfRun(Candidate[Column]):
    """A candidate in Spark, where NONE is null, with its run and what is known of its log. Here ``acked`` is
    a truth."""

    run: Int
    topic: Text
    partition: Int
    log_start: Long
    replicas: Texts


@dataclass
class Tables:
    """The shared tables of one analysis."""

    spark: SparkSession
    runs: Sequence[Run]
    transactional: set[int] = field(default_factory=set)
    """Runs with transactions, as those find them who look at every event."""
    _parts: dict[tuple[frozenset[int], frozenset[str]], Frame[EventRow]] = field(default_factory=dict)

    @cached_property
    def topics(self) -> dict[tuple[int, str], int]:
        """(run, topic) -> number of its partition 0's log."""
        return topics_of(self.runs)

    def log(self, run: int, place: Place) -> int:
        return self.topics[run, place[0]] + place[1]

    @cached_property
    def history(self) -> Frame[EventRow]:
        """The events of all runs as they were written down. For what few events are wanted of: what all
        events are wanted for is read by wrackline.checkers.inputs.row_groups, ten times as fast.

        Many small files are read once and kept: forty queries ask, and to open a file takes longer than to
        read a thousand events from it."""
        paths = [file for run in self.runs for file in run.files]
        events = self.spark.read.schema(f"test_id string, {schema(Written)}").parquet(*paths)
        history = frame(events.join(self.named.small().rows, "test_id"), EventRow)
        if not self._many:
            return history
        return history.made(lambda rows: keep(rows.coalesce(self.spark.sparkContext.defaultParallelism)))

    @cached_property
    def _many(self) -> bool:
        files = sum(len(run.files) for run in self.runs)
        return files >= MANY and sum(run.facts for run in self.runs) <= MANY_FACTS

    def events(self, runs: Iterable[int], kinds: frozenset[str] = frozenset()) -> Frame[EventRow]:
        """``history`` of these runs, and of these kinds (none: of all). Of many small runs it is kept too:
        what is looked for in few of them, by many queries, need not pass all events each time."""
        part = frozenset(runs), kinds
        if part not in self._parts:
            some, c = self.history, self.history.c
            if len(part[0]) < len(self.runs):
                some = some.filter(c.run.isin(sorted(part[0])))
            if kinds:
                some = some.filter(c.f.isin(sorted(kinds)))
            self._parts[part] = some.made(keep) if self._many and some is not self.history else some
        return self._parts[part]

    @cached_property
    def named(self) -> Frame[Named]:
        return self.small(
            Named, [(number, run.info.test_id, run.info.system) for number, run in enumerate(self.runs)]
        )

    @cached_property
    def logs(self) -> Frame[Log]:
        """One row per partition."""
        rows: list[tuple[object, ...]] = []
        for number, run in enumerate(self.runs):
            for place in places_of(run):
                final = run.final.get(place)
                whole = whole_replicas(run.replicas.get(place, {}))
                rows.append((self.log(number, place), *place, final.deleted_below if final else 0, whole))
        return self.small(Log, rows)

    @cached_property
    def logs_of_runs(self) -> Frame[LogOfRun]:
        """One row per partition."""
        rows: list[tuple[object, ...]] = []
        for number, run in enumerate(self.runs):
            for place in places_of(run):
                final = run.final.get(place)
                ends = (final.deleted_below, final.end, final.is_evidence) if final else (0, None, False)
                unread_from = final.end if final is not None and final.derived else None
                rows.append((number, *place, self.log(number, place), *ends, unread_from))
        return self.small(LogOfRun, rows)

    @cached_property
    def replicas(self) -> Frame[Replica]:
        """One row per replica of a partition that was read."""
        return self.small(
            Replica,
            [
                (self.log(number, place), at, host)
                for number, run in enumerate(self.runs)
                for place, replicas in run.replicas.items()
                for at, host in enumerate(sorted(replicas))
            ],
        )

    @cached_property
    def faults(self) -> Frame[FaultsOfRun]:
        """One row per run."""
        return self.small(
            FaultsOfRun,
            [
                (
                    number,
                    [
                        (
                            fault.begin_ns if fault.begin_ns is not None else fault.struck_ns,
                            fault.ended_ns,
                            f"{fault.title} at {fault.struck_ns / 1e9:,.1f} s",
                        )
                        for fault in sorted(run.faults, key=lambda fault: fault.struck_ns)
                    ],
                )
                for number, run in enumerate(self.runs)
            ],
        )

    @cached_property
    def leaders(self) -> Frame[LeadersOfLog]:
        """One row per partition that metadata was asked of."""
        rows: list[tuple[object, ...]] = []
        for number, run in enumerate(self.runs):
            for place, samples in run.cluster.items():
                if (number, place[0]) not in self.topics:
                    continue
                changes: list[tuple[int, str, int]] = []
                for sample in samples:
                    known = (run.host(sample.leader), sample.leader_epoch)
                    if sample.leader >= 0 and (not changes or changes[-1][1:] != known):
                        changes.append((sample.time_ns, *known))
                rows.append((self.log(number, place), changes))
        return self.small(LeadersOfLog, rows)

    def small(self, kind: type[T], rows: Sequence[tuple[object, ...]]) -> Frame[T]:
        """A table of rows the driver has, with the values in the order of its columns."""
        return small(self.spark, kind, list(rows))


def keep(table: DataFrame) -> DataFrame:
    """Compute a table now and keep its rows. What is built on it starts from the rows: a plan of twenty
    queries over one deep plan would take longer to make than to run.

    On this machine they are kept in memory, or on disk where that is short. On a cluster they go to the
    storage (wrackline.checkers.analysis): rows that an executor keeps are gone with it, and the analysis with
    them."""
    on_storage = table.sparkSession.sparkContext.getCheckpointDir() is not None
    return table.checkpoint(eager=True) if on_storage else table.localCheckpoint(eager=True)

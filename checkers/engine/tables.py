"""What several checks read: the runs of one analysis as small tables, and their events.

Every table carries ``run``, the number of the run in this analysis, and what concerns a partition carries
``log``, a number for (run, topic, partition). Nothing here collects.

The clock is ``index``: the recorder gives it under one lock, an invocation's before the request leaves and a
completion's after the reply came, so that "completed before invoked" is one comparison without ties. ``ns``
columns are nanoseconds from the start of the run, for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wrackline.checkers.engine.context import places_of, topics_of, whole_replicas
from wrackline.checkers.inputs.runs import Place, Run

RECORD = "struct<partition:int,offset:bigint,value:bigint,leader_epoch:int,timestamp:bigint>"
HISTORY = (
    "test_id string, index bigint, time_ns bigint, process int, type string, f string, topic string, "
    "partition int, offset bigint, value bigint, key string, leader_epoch int, high_watermark bigint, "
    f"records array<{RECORD}>, error string, node string, latency_ns bigint, extra string"
)
LOCAL_EVENTS = 500_000
"""With fewer events and records than this, what can be done without Spark's shuffles is done without."""
MANY, MANY_FACTS = 16, 2_000_000
"""From so many files on, up to so many events and records, the history is kept in memory."""


def few(runs: Sequence[Run]) -> bool:
    return sum(run.facts for run in runs) < LOCAL_EVENTS


@dataclass
class Tables:
    """The shared tables of one analysis."""

    spark: SparkSession
    runs: Sequence[Run]
    transactional: set[int] = field(default_factory=set)
    """Runs with transactions, as those find them who look at every event."""
    _parts: dict[tuple[frozenset[int], frozenset[str]], DataFrame] = field(default_factory=dict)

    @cached_property
    def topics(self) -> dict[tuple[int, str], int]:
        """(run, topic) -> number of its partition 0's log."""
        return topics_of(self.runs)

    def log(self, run: int, place: Place) -> int:
        return self.topics[run, place[0]] + place[1]

    @cached_property
    def history(self) -> DataFrame:
        """The events of all runs as they were written down, with ``run`` and without ``test_id``. For what
        few events are wanted of: what all events are wanted for is read by
        wrackline.checkers.inputs.row_groups, ten times as fast.

        Many small files are read once and kept: forty queries ask, and to open a file takes longer than to
        read a thousand events from it."""
        paths = [file for run in self.runs for file in run.files]
        numbers = self.small(
            [(n, run.info.test_id) for n, run in enumerate(self.runs)], "run int, test_id string"
        )
        events = self.spark.read.schema(HISTORY).parquet(*paths)
        history = events.join(F.broadcast(numbers), "test_id").drop("test_id")
        if not self._many:
            return history
        return keep(history.coalesce(self.spark.sparkContext.defaultParallelism))

    @cached_property
    def _many(self) -> bool:
        files = sum(len(run.files) for run in self.runs)
        return files >= MANY and sum(run.facts for run in self.runs) <= MANY_FACTS

    def events(self, runs: Iterable[int], kinds: frozenset[str] = frozenset()) -> DataFrame:
        """``history`` of these runs, and of these kinds (none: of all). Of many small runs it is kept too:
        what is looked for in few of them, by many queries, need not pass all events each time."""
        part = frozenset(runs), kinds
        if part not in self._parts:
            some = self.history
            if len(part[0]) < len(self.runs):
                some = some.filter(F.col("run").isin(sorted(part[0])))
            if kinds:
                some = some.filter(F.col("f").isin(sorted(kinds)))
            self._parts[part] = keep(some) if self._many and some is not self.history else some
        return self._parts[part]

    @cached_property
    def logs(self) -> DataFrame:
        """One row per partition: log, topic, partition, log_start, replicas (hosts of those in the ISR that
        were read whole, in the order of their bits)."""
        rows = []
        for number, run in enumerate(self.runs):
            for place in places_of(run):
                final = run.final.get(place)
                whole = whole_replicas(run.replicas.get(place, {}))
                rows.append((self.log(number, place), *place, final.log_start if final else 0, whole))
        return self.small(
            rows, "log bigint, topic string, partition int, log_start bigint, replicas array<string>"
        )

    @cached_property
    def logs_of_runs(self) -> DataFrame:
        """One row per partition: run, topic, partition, log, log_start, log_end (null without a final read),
        complete (whether the final read reached it), unread_from (where nothing is known from, if it is
        derived)."""
        rows = []
        for number, run in enumerate(self.runs):
            for place in places_of(run):
                final = run.final.get(place)
                ends = (final.log_start, final.end, final.is_evidence) if final else (0, None, False)
                unread_from = final.end if final is not None and final.derived else None
                rows.append((number, *place, self.log(number, place), *ends, unread_from))
        return self.small(
            rows,
            "run int, topic string, partition int, log bigint, log_start bigint, log_end bigint, "
            "complete boolean, unread_from bigint",
        )

    @cached_property
    def hosts(self) -> DataFrame:
        """log, process (number of a replica, as in wrackline.checkers.engine.context), host."""
        rows = [
            (self.log(number, place), at, host)
            for number, run in enumerate(self.runs)
            for place, replicas in run.replicas.items()
            for at, host in enumerate(sorted(replicas))
        ]
        return self.small(rows, "log bigint, process bigint, host string")

    @cached_property
    def faults(self) -> DataFrame:
        """run, faults array<struct<begin_ns, ended_ns, text>> sorted by time."""
        rows = [
            (
                number,
                [
                    (
                        fault.begin_ns if fault.begin_ns is not None else fault.struck_ns,
                        fault.ended_ns,
                        f"{fault.title} at {fault.struck_ns / 1e9:.1f} s",
                    )
                    for fault in sorted(run.faults, key=lambda fault: fault.struck_ns)
                ],
            )
            for number, run in enumerate(self.runs)
        ]
        return self.small(rows, "run int, faults array<struct<begin_ns:bigint,ended_ns:bigint,text:string>>")

    @cached_property
    def cluster(self) -> DataFrame:
        """log, leaders array<struct<time_ns, node, epoch>>: when metadata named another leader."""
        rows = []
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
        return self.small(rows, "log bigint, leaders array<struct<time_ns:bigint,node:string,epoch:int>>")

    def small(self, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
        """A table of rows the driver has."""
        return self.spark.createDataFrame(list(rows), schema)


def keep(table: DataFrame) -> DataFrame:
    """Compute a table now and keep its rows. What is built on it starts from the rows: a plan of twenty
    queries over one deep plan would take longer to make than to run.

    On this machine they are kept in memory, or on disk where that is short. On a cluster they go to the
    storage (wrackline.checkers.analysis): rows that an executor keeps are gone with it, and the analysis with
    them."""
    on_storage = table.sparkSession.sparkContext.getCheckpointDir() is not None
    return table.checkpoint(eager=True) if on_storage else table.localCheckpoint(eager=True)

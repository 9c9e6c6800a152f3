"""Histories as tables (DESIGN.md section 8), for one run or thousands: every table carries ``run``, the number of
the run in this analysis, and what concerns a partition carries ``log``, a number for (run, topic, partition) that
``Tables.logs`` explains. Numbers, because the big tables are sorted and joined by them.

The clock is ``index``: the recorder gives it under one lock, an invocation's before the request leaves and a
completion's after the reply came, so that "completed before invoked" is one comparison without ties. ``ns`` columns
are nanoseconds from the start of the run, for people. Nothing here collects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from checkers.runs import Place, ReplicaRead, Run
from harness.history.model import ACKED_WITHOUT_OFFSET, FAILED

RECORD = "struct<partition:int,offset:bigint,value:bigint,leader_epoch:int,timestamp:bigint>"
HISTORY = (
    "test_id string, index bigint, time_ns bigint, process int, type string, f string, topic string, "
    "partition int, offset bigint, value bigint, key string, leader_epoch int, high_watermark bigint, "
    f"records array<{RECORD}>, error string, node string, latency_ns bigint, extra string"
)
ACKED, REFUSED, UNSURE = "acked", "failed", "unknown"
"""What ``outcome`` of a record sent can be."""
_TYPES = ("invoke", "ok", "fail", "info")
_PARTITION_BITS = 20
_TOPIC_BITS = 12


@dataclass
class Tables:
    """The shared tables of one analysis; what several checks read is computed once."""

    spark: SparkSession
    runs: Sequence[Run]

    @cached_property
    def topics(self) -> dict[tuple[int, str], int]:
        """(run, topic) -> number of its partition 0's log."""
        numbers = {}
        for number, run in enumerate(self.runs):
            names = dict.fromkeys(topic for topic, _ in (*run.places, *run.final, *run.replicas))
            for at, name in enumerate(names):
                numbers[number, name] = (number << _TOPIC_BITS | at) << _PARTITION_BITS
        return numbers

    def log(self, run: int, place: Place) -> int:
        return self.topics[run, place[0]] + place[1]

    @cached_property
    def history(self) -> DataFrame:
        """The events, with ``run`` for ``test_id`` and ``base``, the log of partition 0 of their topic."""
        paths = [str(file) for run in self.runs for file in run.files]
        numbers = self.small(
            [(n, run.info.test_id) for n, run in enumerate(self.runs)], "run int, test_id string"
        )
        topics = self.small(
            [(*key, base) for key, base in self.topics.items()], "run int, topic string, base bigint"
        )
        events = self.spark.read.schema(HISTORY).parquet(*paths)
        return (
            events.join(F.broadcast(numbers), "test_id")
            .join(F.broadcast(topics), ["run", "topic"], "left")
            .drop("test_id", "key", "value", "topic")
        )

    @cached_property
    def operations(self) -> DataFrame:
        return keep(operations(self.history))

    @cached_property
    def sends(self) -> DataFrame:
        return sends(self.operations)

    @cached_property
    def ends(self) -> DataFrame:
        return ends(self.operations)

    @cached_property
    def seen(self) -> DataFrame:
        return seen(self.history, self.replicas)

    @cached_property
    def reads(self) -> DataFrame:
        return reads(self.history)

    @cached_property
    def replica_logs(self) -> DataFrame:
        return replica_logs(self.seen)

    @cached_property
    def assignments(self) -> DataFrame:
        return assignments(self.history)

    @cached_property
    def logs(self) -> DataFrame:
        """One row per partition: what ``log`` stands for, how far its final read came, and which replicas in the
        ISR were read whole.

        log, topic, partition, log_start, log_end, complete, replicas array<string>, every (a bit for each of
        them), idempotent."""
        rows = []
        for number, run in enumerate(self.runs):
            for place in sorted({*run.places, *run.final, *run.replicas}):
                final = run.final.get(place)
                whole = _whole_replicas(run.replicas.get(place, {}))
                start, end = (final.log_start, final.end) if final else (0, None)
                complete = final is not None and final.complete
                bits = (1 << len(whole)) - 1
                log = self.log(number, place)
                rows.append((log, *place, start, end, complete, whole, bits, run.info.idempotence))
        return self.small(
            rows,
            "log bigint, topic string, partition int, log_start bigint, log_end bigint, complete boolean, "
            "replicas array<string>, every bigint, idempotent boolean",
        )

    @cached_property
    def replicas(self) -> DataFrame:
        """One row per replica whose own log was read: base, partition, node, hw (what lies below it is
        committed), bit (its place in ``logs.replicas``, null unless in the ISR and read to its end)."""
        rows = []
        for number, run in enumerate(self.runs):
            for (topic, partition), replicas in run.replicas.items():
                whole = _whole_replicas(replicas)
                rows += [
                    (
                        self.topics[number, topic],
                        partition,
                        node,
                        r.hw,
                        1 << whole.index(node) if node in whole else None,
                    )
                    for node, r in replicas.items()
                ]
        return self.small(rows, "base bigint, partition int, node string, hw bigint, bit bigint")

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


def run_of(log: Column | str) -> Column:
    """The run that a log is of."""
    return F.shiftright(log, _PARTITION_BITS + _TOPIC_BITS).cast("int")


def partition_of(log: Column | str) -> Column:
    column = F.col(log) if isinstance(log, str) else log
    return column.bitwiseAND((1 << _PARTITION_BITS) - 1).cast("int")


def _whole_replicas(replicas: Mapping[str, ReplicaRead]) -> list[str]:
    """Hosts of the replicas that must hold what was committed: at most 62, one bit each."""
    return sorted(host for host, replica in replicas.items() if replica.in_isr and replica.complete)[:62]


def keep(table: DataFrame) -> DataFrame:
    """Compute a table now and keep its rows (in memory, on disk where that is short). What is built on it starts
    from the rows: a plan of twenty queries over one deep plan would take longer to make than to run."""
    return table.localCheckpoint(eager=True)


def operations(history: DataFrame) -> DataFrame:
    """One row per operation of a client: an invocation with the completion that follows it in its process.

    run, process, f, base, partition, invoke_index, invoke_ns, complete_index, complete_ns (null when it never
    completed; ``type`` is then ``info``), type, error, node, told (the end offset, of ``end``), given (how many
    records, of polls), records (of sends: as completed, or as invoked where the completion does not tell)."""
    by_process = Window.partitionBy("run", "process").orderBy("index")
    size = F.coalesce(F.size("records"), F.lit(0))
    is_send, invoked = F.col("f") == "send", F.col("kind") == 0
    kind = F.lit(0)
    for number, name in enumerate(_TYPES):
        kind = F.when(F.col("type") == name, number).otherwise(kind)
    events = history.filter("process >= 0").select(
        *("run", "process", "f", "base", "partition", "error", "node", "index", "time_ns"),
        kind.alias("kind"),
        F.when(F.col("f") == "end", F.col("high_watermark")).alias("told"),
        F.when(F.col("f") == "poll", size).alias("given"),
        F.when(is_send, F.col("records")).alias("records"),
        (is_send & (F.col("type") != "invoke") & (size == 0)).alias("silent"),
    )
    names = ("kind", "index", "time_ns")
    before = [F.lag(name).over(by_process).alias(f"before_{name}") for name in names]
    following = [F.lead(name).over(by_process).alias(f"next_{name}") for name in (*names, "silent")]
    answered = F.coalesce(F.col("next_kind") > 0, F.lit(False))
    completes = ~invoked & (F.col("before_kind") == 0)
    row = (completes & ~F.col("silent")) | (invoked & (~answered | F.coalesce("next_silent", F.lit(False))))

    def completion(here: str) -> Column:
        return F.when(~invoked, F.col(here)).when(answered, F.col(f"next_{here}"))

    outcome = F.element_at(F.array(*map(F.lit, _TYPES)), completion("kind") + 1)
    return (
        events.select("*", *before, *following)
        .filter(row)
        .select(
            *("run", "process", "f", "base", "partition", "told", "given", "records", "error", "node"),
            F.when(invoked, F.col("index")).otherwise(F.col("before_index")).alias("invoke_index"),
            F.when(invoked, F.col("time_ns")).otherwise(F.col("before_time_ns")).alias("invoke_ns"),
            completion("index").alias("complete_index"),
            completion("time_ns").alias("complete_ns"),
            F.coalesce(outcome, F.lit("info")).alias("type"),
        )
    )


def sends(of: DataFrame) -> DataFrame:
    """One row per record sent: run, log, process, value, invoke_index, invoke_ns, complete_index, complete_ns,
    outcome (acked, failed or unknown), offset (null unless told), error, node."""
    told, completed = F.col("record.offset"), F.col("complete_index").isNotNull()
    times = ("invoke_index", "invoke_ns", "complete_index", "complete_ns")
    return (
        of.filter("f = 'send'")
        .select(
            "run", "process", "base", *times, "type", "error", "node", F.explode("records").alias("record")
        )
        .select(
            *("run", "process"),
            (F.col("base") + F.col("record.partition")).alias("log"),
            "record.value",
            *times,
            _outcome(told, F.col("type"), completed).alias("outcome"),
            F.when((told >= 0) & completed, told).alias("offset"),
            *("error", "node"),
        )
    )


def _outcome(told: Column, kind: Column, completed: Column) -> Column:
    """What became of one record, from the offset its completion tells and the operation's type."""
    return (
        F.when(completed & ((told >= 0) | (told == ACKED_WITHOUT_OFFSET)), ACKED)
        .when(completed & ((told == FAILED) | (kind == "fail")), REFUSED)
        .otherwise(UNSURE)
    )


def placed(sent: DataFrame) -> DataFrame:
    """The sends that were told an offset, with the one before them in their process and log: earlier_offset,
    earlier_value, earlier_index (of its completion); null where that is of the same operation."""
    # The table of operations is partitioned by process already: this window sorts, it does not shuffle.
    by_process = Window.partitionBy("run", "process", "log").orderBy("invoke_index", "offset")
    before = {
        name: F.lag(name).over(by_process) for name in ("offset", "value", "complete_index", "invoke_index")
    }
    other = before["invoke_index"] < F.col("invoke_index")
    return sent.filter("offset is not null").select(
        "*",
        F.when(other, before["offset"]).alias("earlier_offset"),
        F.when(other, before["value"]).alias("earlier_value"),
        F.when(other, before["complete_index"]).alias("earlier_index"),
    )


def ends(of: DataFrame) -> DataFrame:
    """One row per end offset told: log, told, process, and the operation's indexes and times."""
    return of.filter("f = 'end' and type = 'ok' and told is not null").select(
        (F.col("base") + F.col("partition")).alias("log"),
        *("told", "process", "invoke_index", "invoke_ns", "complete_index", "complete_ns"),
    )


def seen(history: DataFrame, replicas: DataFrame) -> DataFrame:
    """One row per record that a poll or the final read gave, or that is in a replica's own log.

    log, f (poll, drain, replica), offset, value, leader_epoch, index, time_ns (of the completion); of replicas
    also node, hw, bit. Payloads that are no records of a run have negative values."""
    told = history.filter("type = 'ok' and f in ('poll', 'drain', 'replica')").join(
        F.broadcast(replicas), ["base", "partition", "node"], "left"
    )
    kept = ("f", "index", "time_ns", "node", "hw", "bit")
    return (
        told.select(*kept, "base", F.explode("records").alias("record"))
        .select(
            (F.col("base") + F.col("record.partition")).alias("log"),
            *("record.offset", "record.value", "record.leader_epoch"),
            *kept,
        )
        .filter("offset >= 0")
    )


def reads(history: DataFrame) -> DataFrame:
    """One row per record a consumer was given: run, process, log, offset, value, index, time_ns, position
    (within the poll)."""
    polls = history.filter("f = 'poll' and type = 'ok'").select(
        "run", "process", "base", "index", "time_ns", F.posexplode("records").alias("position", "record")
    )
    return polls.select(
        *("run", "process", "index", "time_ns", "position"),
        (F.col("base") + F.col("record.partition")).alias("log"),
        *("record.offset", "record.value"),
    )


def replica_logs(of: DataFrame) -> DataFrame:
    """One row per record in a replica's own log: log, node, offset, value, leader_epoch, index, hw, bit."""
    return of.filter("f = 'replica'").drop("f", "time_ns")


def assignments(history: DataFrame) -> DataFrame:
    """One row per partition a consumer takes or moves in: run, process, log, start, index, time_ns."""
    positions = F.from_json(
        F.get_json_object("extra", "$.positions"), T.MapType(T.StringType(), T.LongType())
    )
    taken = history.filter("f = 'assign' and type = 'ok'").select(
        "run", "process", "base", "index", "time_ns", F.explode(positions).alias("taken", "start")
    )
    return taken.select(
        *("run", "process", "start", "index", "time_ns"),
        (F.col("base") + F.expr("try_cast(taken as int)")).alias("log"),
    )

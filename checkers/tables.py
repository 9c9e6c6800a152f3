"""Histories as tables (DESIGN.md section 8). Every table carries ``run``, the number of the run in this analysis;
``Tables.runs`` maps it to test ids. One history or thousands: the plan is the same.

Times are nanoseconds from the start of a run, indexes are those of the history's events. Nothing here collects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from checkers.runs import ReplicaRead, Run
from harness.history.model import ACKED_WITHOUT_OFFSET, FAILED

RECORD = "struct<partition:int,offset:bigint,value:bigint,leader_epoch:int,timestamp:bigint>"
HISTORY = (
    "test_id string, index bigint, time_ns bigint, process int, type string, f string, topic string, "
    "partition int, offset bigint, value bigint, key string, leader_epoch int, high_watermark bigint, "
    f"records array<{RECORD}>, error string, node string, latency_ns bigint, extra string"
)
ACKED, REFUSED, UNSURE = "acked", "failed", "unknown"
"""What ``outcome`` of a record sent can be."""


@dataclass
class Tables:
    """The shared tables of one analysis; what several checks read is computed once."""

    spark: SparkSession
    runs: Sequence[Run]

    @cached_property
    def history(self) -> DataFrame:
        """The events, with ``run`` for ``test_id``."""
        paths = [str(file) for run in self.runs for file in run.files]
        numbers = self.small(
            [(number, run.info.test_id) for number, run in enumerate(self.runs)], "run int, test_id string"
        )
        events = self.spark.read.schema(HISTORY).parquet(*paths)
        return events.join(F.broadcast(numbers), "test_id").drop("test_id", "key", "value")

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
        """One row per partition: how far its final read came, and which replicas in the ISR were read whole.

        run, topic, partition, log_start, log_end, complete, replicas array<string>, idempotent."""
        rows = []
        for number, run in enumerate(self.runs):
            for topic, partition in sorted({*run.places, *run.final, *run.replicas}):
                final = run.final.get((topic, partition))
                replicas = run.replicas.get((topic, partition), {})
                whole = _whole_replicas(replicas)
                start, end = (final.log_start, final.end) if final else (0, None)
                complete = final is not None and final.complete
                rows.append((number, topic, partition, start, end, complete, whole, run.info.idempotence))
        return self.small(
            rows,
            "run int, topic string, partition int, log_start bigint, log_end bigint, complete boolean, "
            "replicas array<string>, idempotent boolean",
        )

    @cached_property
    def replicas(self) -> DataFrame:
        """One row per replica whose own log was read: run, topic, partition, node, hw (what lies below it is
        committed), bit (its place in ``logs.replicas``, null unless in the ISR and read to its end)."""
        rows = []
        for number, run in enumerate(self.runs):
            for (topic, partition), replicas in run.replicas.items():
                whole = _whole_replicas(replicas)
                rows += [
                    (number, topic, partition, node, r.hw, whole.index(node) if node in whole else None)
                    for node, r in replicas.items()
                ]
        return self.small(rows, "run int, topic string, partition int, node string, hw bigint, bit int")

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
        """run, topic, partition, leaders array<struct<time_ns, node, epoch>>: when metadata named another leader."""
        rows = []
        for number, run in enumerate(self.runs):
            for (topic, partition), samples in run.cluster.items():
                changes: list[tuple[int, str, int]] = []
                for sample in samples:
                    known = (run.host(sample.leader), sample.leader_epoch)
                    if sample.leader >= 0 and (not changes or changes[-1][1:] != known):
                        changes.append((sample.time_ns, *known))
                rows.append((number, topic, partition, changes))
        return self.small(
            rows,
            "run int, topic string, partition int, leaders array<struct<time_ns:bigint,node:string,epoch:int>>",
        )

    def small(self, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
        """A table of rows the driver has."""
        return self.spark.createDataFrame(list(rows), schema)

    def release(self) -> None:
        """Give back what was kept in memory."""
        self.spark.catalog.clearCache()


def _whole_replicas(replicas: Mapping[str, ReplicaRead]) -> list[str]:
    """Hosts of the replicas that must hold what was committed: at most 62, one bit each."""
    return sorted(host for host, replica in replicas.items() if replica.in_isr and replica.complete)[:62]


def keep(table: DataFrame) -> DataFrame:
    """Compute a table now and keep its rows (in memory, on disk where that is short). What is built on it starts
    from the rows: a plan of twenty queries over one deep plan would take longer to make than to run."""
    return table.localCheckpoint(eager=True)


def operations(history: DataFrame) -> DataFrame:
    """One row per operation of a client: an invocation with the completion that follows it in its process.

    run, process, f, topic, partition, invoke_index, invoke_ns, complete_index, complete_ns (null when it never
    completed; ``type`` is then ``info``), type, error, node, leader_epoch, high_watermark, records (of sends)."""
    by_process = Window.partitionBy("run", "process").orderBy("index")
    kept = ("run", "process", "f", "topic", "partition", "error", "node", "leader_epoch", "high_watermark")
    events = history.filter("process >= 0").select(
        *kept, "index", "time_ns", "type", F.when(F.col("f") == "send", F.col("records")).alias("records")
    )
    before = {name: F.lag(name).over(by_process) for name in ("type", "index", "time_ns", "records", "f")}
    paired = events.select(
        "*",
        *(column.alias(f"before_{name}") for name, column in before.items()),
        F.lead("type").over(by_process).alias("next_type"),
    )
    invoked = F.col("type") == "invoke"
    completes = ~invoked & (F.col("before_type") == "invoke") & (F.col("before_f") == F.col("f"))
    pending = invoked & (F.col("next_type").isNull() | (F.col("next_type") == "invoke"))
    said_what = F.coalesce(F.size("records"), F.lit(0)) > 0
    return paired.filter(completes | pending).select(
        *kept,
        F.when(pending, F.col("index")).otherwise(F.col("before_index")).alias("invoke_index"),
        F.when(pending, F.col("time_ns")).otherwise(F.col("before_time_ns")).alias("invoke_ns"),
        F.when(~pending, F.col("index")).alias("complete_index"),
        F.when(~pending, F.col("time_ns")).alias("complete_ns"),
        F.when(pending, F.lit("info")).otherwise(F.col("type")).alias("type"),
        F.when(pending | said_what, F.col("records")).otherwise(F.col("before_records")).alias("records"),
    )


def sends(of: DataFrame) -> DataFrame:
    """One row per record sent: run, process, topic, partition, value, invoke_index, invoke_ns, complete_index,
    complete_ns, outcome (acked, failed or unknown), offset (null unless told), error, node, leader_epoch,
    earlier struct<offset, complete_index, value>: the largest offset acked to an earlier operation of the same
    process in the same partition."""
    sent = of.filter("f = 'send'").select("*", F.explode("records").alias("record"))
    told = F.col("record.offset")
    rows = sent.select(
        "run",
        "process",
        "topic",
        F.col("record.partition").alias("partition"),
        F.col("record.value").alias("value"),
        "invoke_index",
        "invoke_ns",
        "complete_index",
        "complete_ns",
        outcome_of(told, F.col("type"), F.col("complete_index").isNotNull()).alias("outcome"),
        F.when((told >= 0) & F.col("complete_index").isNotNull(), told).alias("offset"),
        "error",
        "node",
        "leader_epoch",
    )
    # The table of operations is already partitioned by process: this window sorts, it does not shuffle.
    earlier = (
        Window.partitionBy("run", "process", "topic", "partition")
        .orderBy("invoke_index")
        .rangeBetween(Window.unboundedPreceding, -1)
    )
    acked = F.when(F.col("offset").isNotNull(), F.struct("offset", "complete_index", "value"))
    return rows.withColumn("earlier", F.max(acked).over(earlier))


def outcome_of(told: Column, kind: Column, completed: Column) -> Column:
    """What became of one record, from the offset its completion tells and the operation's type."""
    return (
        F.when(completed & ((told >= 0) | (told == ACKED_WITHOUT_OFFSET)), ACKED)
        .when(completed & ((told == FAILED) | (kind == "fail")), REFUSED)
        .otherwise(UNSURE)
    )


def ends(of: DataFrame) -> DataFrame:
    """One row per end offset told: run, topic, partition, told, process, node and the operation's times."""
    return of.filter("f = 'end' and type = 'ok' and high_watermark is not null").select(
        "run",
        "topic",
        "partition",
        F.col("high_watermark").alias("told"),
        "process",
        "node",
        "invoke_index",
        "invoke_ns",
        "complete_index",
        "complete_ns",
    )


def seen(history: DataFrame, replicas: DataFrame) -> DataFrame:
    """One row per record somebody was told of: by an ack, a poll, the final read or a replica's own log.

    run, f (send, poll, drain, replica), topic, partition, offset, value, leader_epoch, index, time_ns (of the
    completion); of replicas also node, hw, bit. Payloads that are no records of a run have negative values."""
    told = history.filter("type != 'invoke' and f in ('send', 'poll', 'drain', 'replica')").join(
        F.broadcast(replicas), ["run", "topic", "partition", "node"], "left"
    )
    kept = ("run", "f", "topic", "index", "time_ns", "node", "hw", "bit")
    return (
        told.select(*kept, F.explode("records").alias("record"))
        .select(*kept, "record.partition", "record.offset", "record.value", "record.leader_epoch")
        .filter("offset >= 0")
    )


def reads(history: DataFrame) -> DataFrame:
    """One row per record a consumer was given: run, process, topic, partition, offset, value, index, time_ns,
    position (within the poll)."""
    kept = ("run", "process", "topic", "index", "time_ns", "position")
    polls = history.filter("f = 'poll' and type = 'ok'").select(
        "run", "process", "topic", "index", "time_ns", F.posexplode("records").alias("position", "record")
    )
    return polls.select(*kept, "record.partition", "record.offset", "record.value")


def replica_logs(of: DataFrame) -> DataFrame:
    """One row per record in a replica's own log: run, topic, partition, node, offset, value, leader_epoch, index,
    hw, bit."""
    return of.filter("f = 'replica'").drop("f", "time_ns")


def assignments(history: DataFrame) -> DataFrame:
    """One row per partition a consumer takes or moves in: run, process, topic, partition, start, index, time_ns."""
    positions = F.from_json(
        F.get_json_object("extra", "$.positions"), T.MapType(T.StringType(), T.LongType())
    )
    taken = history.filter("f = 'assign' and type = 'ok'").select(
        "run", "process", "topic", "index", "time_ns", F.explode(positions).alias("taken", "start")
    )
    return taken.select(
        "run",
        "process",
        "topic",
        F.expr("try_cast(taken as int)").alias("partition"),
        "start",
        "index",
        "time_ns",
    )

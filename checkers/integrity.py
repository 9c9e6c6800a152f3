"""Integrity (anomalies.md section 2): one value per offset, one offset per value, and nothing that nobody sent."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.evidence import Window, findings, named, place, say, seconds
from checkers.places import IN_FINAL, IN_REPLICAS, TOLD
from checkers.registry import Evidence, Family, check
from checkers.tables import REFUSED, Tables, run_of
from harness.history.model import CORRUPT

_DETAIL = "array<struct<partition:int,offset:bigint,detail:string>>"


def _told() -> Column:
    """Clients were told of this place."""
    return F.col("step").between(IN_FINAL, TOLD)


def _held() -> Column:
    """Clients or replicas have this place."""
    return F.col("step").between(IN_FINAL, IN_REPLICAS)


def _read() -> Column:
    return _told() & (F.col("poll_index").isNotNull() | F.col("final_index").isNotNull())


def _seen_ns() -> Column:
    return F.least("poll_ns", F.when(F.col("acked"), F.col("complete_ns")))


def _seen_by() -> Column:
    """``the final read`` and so on: the strongest witness of a place."""
    return (
        F.when(F.col("final_index").isNotNull(), F.lit("the final read"))
        .when(F.col("poll_index").isNotNull(), say("a consumer at %s", seconds("poll_ns")))
        .when(F.col("acked"), say("the ack of its send at %s", seconds("complete_ns")))
        .otherwise(F.lit("a replica's own log"))
    )


def inconsistent() -> Column:
    return _told() & (F.col("value") >= 0) & (F.col("told_offset") == F.col("offset"))


@check(
    "inconsistent-offset",
    Family.INTEGRITY,
    "inconsistent-offsets",
    "two values were told for one offset, by acks, polls or the final read",
    inconsistent,
)
def inconsistent_offset(evidence: Evidence) -> DataFrame:
    return findings(
        evidence.suspects.filter(inconsistent()),
        "inconsistent-offset",
        operations=["index", "told_index"],
        sentence=say(
            "offset %d of %s was told to hold value %d (by %s) and value %d as well",
            *("offset", place(), "value", _seen_by(), "told_value"),
        ),
        around=Window(F.lit(0), _seen_ns()),
    )


def _diverging() -> Column:
    twice = F.col("hw_offset") == F.col("offset")
    return _held() & F.col("hw_index").isNotNull() & (twice | (F.col("epoch_low") != F.col("epoch_high")))


@check(
    "replica-divergence",
    Family.INTEGRITY,
    "–",
    "two replicas hold different records at one offset below both high watermarks",
    _diverging,
)
def replica_divergence(evidence: Evidence) -> DataFrame:
    twice = F.col("hw_offset") == F.col("offset")
    values = say(
        "below their high watermarks one replica holds value %d (leader epoch %d) at offset %d of %s and another "
        "value %d (leader epoch %d)",
        *("value", "epoch_high", "offset", place(), "hw_value", "hw_epoch"),
    )
    epochs = say(
        "below their high watermarks replicas hold value %d at offset %d of %s, one under leader epoch %d, another "
        "under %d",
        *("value", "offset", place(), "epoch_low", "epoch_high"),
    )
    return findings(
        evidence.suspects.filter(_diverging()),
        "replica-divergence",
        operations=["hw_index", "hw_at"],
        where=F.when(twice, "value").otherwise("leader epoch"),
        sentence=F.when(twice, values).otherwise(epochs),
        around=Window(F.lit(0)),
    )


def _second_copy() -> Column:
    return _told() & ~F.col("acked") & F.col("stands") & F.col("home") & (_original() != F.col("offset"))


def _original() -> Column:
    """The offset that counts as the value's own: what its ack told, else the lowest."""
    return F.coalesce("sent_offset", "original.offset")


@check("duplicate", Family.INTEGRITY, "duplicate", "one value is at two offsets")
def duplicate(evidence: Evidence) -> DataFrame:
    """One finding for each copy besides the original. A copy in another partition is misrouted, not counted here."""
    return findings(
        evidence.suspects.filter(_second_copy()),
        "duplicate",
        operations=["invoke_index", "complete_index", "index", "original.index"],
        sentence=say(
            "value %d, sent once at %s, is at offset %d of %s and again at offset %d (seen by %s)",
            *("value", seconds("invoke_ns"), _original(), place(), "offset", _seen_by()),
        ),
        around=Window(F.col("invoke_ns"), _seen_ns()),
    )


def _aborted() -> Column:
    return _read() & (F.col("outcome") == REFUSED)


@check("aborted-read", Family.INTEGRITY, "G1a", "a value was read whose send had certainly failed")
def aborted_read(evidence: Evidence) -> DataFrame:
    return findings(
        evidence.suspects.filter(_aborted()),
        "aborted-read",
        operations=["invoke_index", "complete_index", "poll_index", "final_index"],
        sentence=say(
            "value %d was refused at %s (%s), yet %s has it at offset %d of %s",
            *("value", seconds("complete_ns"), F.coalesce("error", F.lit("failed"))),
            *(_seen_by(), "offset", place()),
        ),
        around=Window(F.col("invoke_ns"), _seen_ns()),
    )


def _nobodys() -> Column:
    return _held() & F.col("outcome").isNull() & (F.col("value") != CORRUPT)


@check("phantom", Family.INTEGRITY, "(throws)", "a value was read that nobody sent in this run")
def phantom(evidence: Evidence) -> DataFrame:
    ours = say(
        "value %d, which nobody sent, is at offset %d of %s (seen by %s)",
        "value",
        "offset",
        place(),
        _seen_by(),
    )
    foreign = say("offset %d of %s holds a record of another run (seen by %s)", "offset", place(), _seen_by())
    return findings(
        evidence.suspects.filter(_nobodys()),
        "phantom",
        operations=["poll_index", "final_index", "replica_index"],
        sentence=F.when(F.col("value") >= 0, ours).otherwise(foreign),
        around=Window(F.lit(0), _seen_ns()),
    )


def _elsewhere() -> Column:
    return _held() & (F.col("sent_log") != F.col("log"))


@check(
    "misrouted",
    Family.INTEGRITY,
    "–",
    "a value was read from another partition than it was sent to",
)
def misrouted(evidence: Evidence) -> DataFrame:
    home = evidence.tables.logs.select(
        F.col("log").alias("sent_log"),
        F.col("topic").alias("sent_topic"),
        F.col("partition").alias("sent_partition"),
    )
    return findings(
        evidence.suspects.filter(_elsewhere()).join(F.broadcast(home), "sent_log"),
        "misrouted",
        operations=["invoke_index", "poll_index", "final_index", "replica_index"],
        sentence=say(
            "value %d was sent to %s at %s, but is at offset %d of %s (seen by %s)",
            *(
                "value",
                place("sent_topic", "sent_partition"),
                seconds("invoke_ns"),
                "offset",
                place(),
                _seen_by(),
            ),
        ),
        around=Window(F.col("invoke_ns"), _seen_ns()),
    )


def _spoiled() -> Column:
    return _held() & (F.col("value") == CORRUPT)


@check("corrupt", Family.INTEGRITY, "–", "payload, key, headers or timestamp differ from what was sent")
def corrupt(evidence: Evidence) -> DataFrame:
    """What is wrong with each is in ``extra.corrupt`` of the event that read it."""
    rows = evidence.suspects.filter(_spoiled())
    witness = F.coalesce("final_index", "poll_index", "replica_index")
    if rows.isEmpty():
        told = rows.withColumn("detail", F.lit(None))
    else:
        details = _details(evidence.tables.history).withColumnRenamed("index", "witness")
        told = rows.withColumn("witness", witness).join(details, ["log", "offset", "witness"], "left")
    return findings(
        told,
        "corrupt",
        operations=["poll_index", "final_index", "replica_index"],
        sentence=say(
            "the record at offset %d of %s is not what was sent: %s (seen by %s)",
            *("offset", place(), F.coalesce("detail", F.lit("its checksum is wrong")), _seen_by()),
        ),
        around=Window(F.lit(0), _seen_ns()),
    )


def _details(history: DataFrame) -> DataFrame:
    """log, offset, index, detail: what readers said of records that were not as sent."""
    said = F.from_json(F.get_json_object("extra", "$.corrupt"), _DETAIL)
    return (
        history.filter("type != 'invoke' and extra like '%\"corrupt\"%'")
        .select("base", "index", F.explode(said).alias("one"))
        .select((F.col("base") + F.col("one.partition")).alias("log"), "index", "one.offset", "one.detail")
        .dropDuplicates(["log", "index", "offset"])
    )


def epochs(tables: Tables) -> DataFrame:
    """Where each leader epoch begins and ends, in the final read (node null) and in each replica's log: log, node,
    leader_epoch, offset, last, index, last_index."""
    read = tables.seen.filter("f in ('drain', 'replica') and leader_epoch >= 0")
    node = F.when(F.col("f") == "replica", F.col("node")).alias("node")
    return read.groupBy("log", node, "leader_epoch").agg(
        F.min("offset").alias("offset"),
        F.max("offset").alias("last"),
        F.min("index").alias("index"),
        F.max("index").alias("last_index"),
    )


@check("epoch-order", Family.INTEGRITY, "–", "the leader epochs of records decrease along offsets")
def epoch_order(evidence: Evidence) -> DataFrame:
    """In the final read, and in each replica's own log. A log has few epochs, so where each begins and ends is
    enough: an epoch that begins before a smaller one ends is out of order."""
    smaller = (
        SqlWindow.partitionBy("log", "node")
        .orderBy("leader_epoch")
        .rowsBetween(SqlWindow.unboundedPreceding, -1)
    )
    before = F.max(F.struct("last", "last_index", "leader_epoch")).over(smaller)
    rows = (
        evidence.epochs.withColumn("before", before)
        .filter("before.last > offset")
        .withColumn("run", run_of("log"))
    )
    whose = F.coalesce(F.concat(F.lit("the log of "), "node"), F.lit("the final read"))
    return findings(
        named(rows, evidence.tables),
        "epoch-order",
        operations=["index", "before.last_index"],
        where=whose,
        sentence=say(
            "%s of %s has leader epoch %d at offset %d, but the smaller epoch %d as late as offset %d",
            *(whose, place(), "leader_epoch", "offset", "before.leader_epoch", "before.last"),
        ),
        around=Window(F.lit(0)),
    )

"""What a transaction promises to those who read (docs/anomalies.md section 5), besides what cycles show
(wrackline.checkers.anomalies.cycles).

A run has transactions where operations carry ``extra.txn`` (wrackline.history.model); elsewhere nothing of
this is planned. What each sent, what was asked for and what became of it is brought together once, with one
row for each record.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycles import TRANSACTIONS
from wrackline.checkers.anomalies.evidence import Window, findings, place, say, seconds
from wrackline.checkers.anomalies.group_tables import COMMIT, COMMITTED, deliveries, kept, operations, reached
from wrackline.checkers.anomalies.keys import compacted
from wrackline.checkers.anomalies.registry import Evidence, Family, check
from wrackline.checkers.engine.tables import Tables, keep

READ_UNCOMMITTED = "read_uncommitted"
_RECORD = ("run", "topic", "partition", "value")


def _sent(tables: Tables) -> DataFrame:
    """One row per record of a transaction: run, txn, topic, partition, value, offset (of its ack, else a
    code), type (null where it never completed), asked (``commit``, ``abort``; null: not on record), end_ns
    (when that was asked for), invoke_index, invoke_ns, complete_index, complete_ns, transactional_id (null:
    not on record)."""
    invoked = F.col("type") == "invoke"
    begun = F.struct(
        F.col("index").alias("invoke_index"),
        F.col("time_ns").alias("invoke_ns"),
        F.get_json_object("extra", "$.transactional_id").alias("transactional_id"),
    )
    done = F.struct(
        F.col("index").alias("complete_index"),
        F.col("time_ns").alias("complete_ns"),
        "type",
        F.get_json_object("extra", "$.asked").alias("asked"),
        F.get_json_object("extra", "$.end_ns").cast("bigint").alias("end_ns"),
        F.col("record.offset").alias("offset"),
    )
    events = (
        tables.events(tables.transactional)
        .filter("f = 'send' and extra like '%\"txn\"%'")
        .select(
            *("run", "index", "time_ns", "type", "topic", "extra"),
            F.get_json_object("extra", "$.txn").cast("bigint").alias("txn"),
            F.explode("records").alias("record"),
        )
    )
    return (
        events.select("*", "record.partition", "record.value")
        .filter("txn is not null and value >= 0")
        .groupBy("txn", *_RECORD)
        .agg(F.min(F.when(invoked, begun)).alias("begun"), F.max(F.when(~invoked, done)).alias("done"))
        .select("txn", *_RECORD, "begun.*", "done.*")
    )


NEVER_ASKED = "type = 'info' and (asked = 'abort' or (asked is null and transactional_id is not null))"
"""Of a transaction that ended without success: nobody ever asked for its commit. Where the transactional id
is on record, so is whatever was asked for."""


def sent(evidence: Evidence) -> DataFrame:
    """``_sent``, computed once."""
    return evidence.once("sent by transactions", lambda: keep(_sent(evidence.tables)))


def _given(tables: Tables) -> DataFrame:
    """One row per record that a poll gave: run, topic, partition, value, offset, poll_index, poll_ns,
    poll_process, poll_txn (null: of no transaction)."""
    polls = (
        tables.events(tables.transactional)
        .filter("f = 'poll' and type = 'ok'")
        .select(
            *("run", "topic", F.explode("records").alias("record")),
            F.col("index").alias("poll_index"),
            F.col("time_ns").alias("poll_ns"),
            F.col("process").alias("poll_process"),
            F.get_json_object("extra", "$.txn").cast("bigint").alias("poll_txn"),
        )
    )
    return polls.select("*", "record.partition", "record.value", "record.offset").drop("record")


def _final(tables: Tables) -> DataFrame:
    """One row per value of a partition in the final read: run, topic, partition, value, final_offset,
    final_index."""
    drained = (
        tables.events(tables.transactional)
        .filter("f = 'drain' and type = 'ok'")
        .select("run", "topic", F.col("index").alias("final_index"), F.explode("records").alias("record"))
    )
    first = F.min(F.struct(F.col("record.offset").alias("final_offset"), "final_index"))
    keys = (
        "run",
        "topic",
        F.col("record.partition").alias("partition"),
        F.col("record.value").alias("value"),
    )
    return drained.groupBy(*keys).agg(first.alias("first")).select(*_RECORD, "first.*")


def readers(tables: Tables) -> DataFrame:
    """run, isolation: what consumers asked for."""
    rows = [(number, run.info.isolation) for number, run in enumerate(tables.runs)]
    return F.broadcast(tables.small(rows, "run int, isolation string"))


def _logs(tables: Tables) -> DataFrame:
    return F.broadcast(tables.logs_of_runs.select("run", "topic", "partition", "log"))


@check(
    "precommitted-read",
    Family.TRANSACTIONS,
    "precommitted-read",
    "a record was given to a consumer before its transaction was asked to end, or to the transaction itself",
    marks=[TRANSACTIONS],
)
def precommitted_read(evidence: Evidence) -> DataFrame:
    """Whatever became of the transaction, and once per record. ``where``: ``its own`` (a transaction's polls
    come before its end), ``before its end`` (by the clock, of any consumer)."""
    tables = evidence.tables
    own = F.coalesce(F.col("poll_txn") == F.col("txn"), F.lit(False))
    early = F.coalesce(F.col("poll_ns") < F.col("end_ns"), F.lit(False))
    first = F.min(F.struct(~own, "poll_index", "poll_ns", "poll_process", "given_at")).alias("first")
    sends = sent(evidence).drop("offset")
    keys = ("txn", *_RECORD, "asked", "end_ns", "invoke_index", "invoke_ns")
    rows = (
        _given(tables)
        .withColumnRenamed("offset", "given_at")
        .join(sends, list(_RECORD))
        .filter(own | early)
        .groupBy(*keys)
        .agg(first)
        .select(*keys, "first.*")
        .withColumnRenamed("col1", "others")
        .withColumn("offset", F.col("given_at"))
        .join(_logs(tables), ["run", "topic", "partition"])
    )
    itself = say(
        "transaction %d sent value %d at %s and was itself given it, at offset %d of %s at %s: it cannot "
        "have been committed by then",
        *("txn", "value", seconds("invoke_ns"), "offset", place(), seconds("poll_ns")),
    )
    other = say(
        "process %d was given value %d of transaction %d, at offset %d of %s at %s, before its %s was asked "
        "for at %s",
        *("poll_process", "value", "txn", "offset", place(), seconds("poll_ns")),
        *(F.coalesce("asked", F.lit("end")), seconds("end_ns")),
    )
    return findings(
        rows,
        "precommitted-read",
        operations=["invoke_index", "poll_index"],
        where=F.when(F.col("others"), "before its end").otherwise("its own"),
        sentence=F.when(F.col("others"), other).otherwise(itself),
        around=Window(F.col("invoke_ns"), F.col("poll_ns")),
    )


def visible_though_aborted(evidence: Evidence) -> DataFrame:
    """``aborted-read`` of transactions whose end is unknown and whose commit nobody asked for: whatever the
    calls returned, nobody wanted these records to be visible. Once per record."""
    tables = evidence.tables
    aborts = sent(evidence).filter(NEVER_ASKED).drop("offset")
    given = (
        _given(tables).groupBy(*_RECORD).agg(F.min(F.struct("poll_index", "poll_ns", "offset")).alias("poll"))
    )
    rows = (
        aborts.join(readers(tables), "run")
        .filter(F.col("isolation") != READ_UNCOMMITTED)
        .join(given, list(_RECORD), "left")
        .join(_final(tables), list(_RECORD), "left")
        .filter("poll is not null or final_index is not null")
        .select("*", "poll.poll_index", "poll.poll_ns")
        .withColumn("offset", F.coalesce("final_offset", "poll.offset"))
        .join(_logs(tables), ["run", "topic", "partition"])
    )
    by = F.when(F.col("final_index").isNotNull(), F.lit("the final read")).otherwise(
        say("a consumer at %s", seconds("poll_ns"))
    )
    return findings(
        rows,
        "aborted-read",
        operations=["invoke_index", "complete_index", "poll_index", "final_index"],
        where=F.lit("abort failed"),
        sentence=say(
            "value %d is of transaction %d, whose commit was never asked for (it ended without success at "
            "%s), yet %s has it at offset %d of %s",
            *("value", "txn", seconds("complete_ns"), by, "offset", place()),
        ),
        around=Window(F.col("invoke_ns"), F.col("poll_ns")),
    )


def _outcomes(evidence: Evidence) -> DataFrame:
    """One row per record of a transaction whose commit was asked for and did not fail, or of which nobody
    knows the end: as ``_sent``, with its log, ``final_offset``, ``final_index`` and ``missing``: it is not in
    the final read, which is whole. Of a compacted topic, and where polls stand for the final read, nothing is
    missing."""
    tables = evidence.tables
    thinned = tables.small(compacted(tables), "run int, topic string").withColumn("thinned", F.lit(True))
    known = F.col("complete") & F.col("unread_from").isNull() & F.col("thinned").isNull()
    return (
        sent(evidence)
        .filter(f"coalesce(type, '') != 'fail' and not coalesce({NEVER_ASKED}, false)")
        .join(F.broadcast(tables.logs_of_runs), ["run", "topic", "partition"])
        .join(F.broadcast(thinned), ["run", "topic"], "left")
        .join(_final(tables), list(_RECORD), "left")
        .withColumn("missing", F.coalesce(known & F.col("final_index").isNull(), F.lit(False)))
    )


def _whole(outcomes: DataFrame) -> DataFrame:
    """One row per transaction: run, txn, type, asked, its times, ``records``, how many are ``seen`` in the
    final read and ``gone`` from it, and one of each: ``one_seen``, ``one_gone``."""
    about = F.struct("topic", "partition", "value", "final_offset", "final_index", "log", "offset")
    return outcomes.groupBy("run", "txn").agg(
        *(
            F.max(name).alias(name)
            for name in ("type", "asked", "complete_index", "complete_ns", "invoke_index", "invoke_ns")
        ),
        F.count("*").alias("records"),
        F.count("final_index").alias("seen"),
        F.count_if("missing").alias("gone"),
        F.min(F.when(F.col("final_index").isNotNull(), about)).alias("one_seen"),
        F.min(F.when(F.col("missing"), about)).alias("one_gone"),
    )


@check(
    "torn-transaction",
    Family.TRANSACTIONS,
    "–",
    "of one transaction a part is visible and a part is not",
    marks=[TRANSACTIONS],
)
def torn_transaction(evidence: Evidence) -> DataFrame:
    """Once per transaction. ``where``: ``committed`` or ``end unknown`` (some of its records are in the final
    read and some are not), ``offsets`` (a group has its offsets, and the final read has none of its
    records)."""
    whole = _whole(_outcomes(evidence))
    half = whole.filter("seen > 0 and gone > 0").select(
        "*", F.lit(None).cast("string").alias("group"), F.lit(None).cast("bigint").alias("told_index")
    )
    ended = F.when(F.col("type") == "ok", say("was committed at %s", seconds("complete_ns"))).otherwise(
        "may have been committed"
    )
    part = say(
        "transaction %d %s: the final read has %d of its %d records (value %d at offset %d of %s) and %d it "
        "has not (value %d of %s)",
        *("txn", ended, "seen", "records", "one_seen.value", "one_seen.final_offset"),
        *(place("one_seen.topic", "one_seen.partition"), "gone", "one_gone.value"),
        place("one_gone.topic", "one_gone.partition"),
    )
    offsets = say(
        "transaction %d %s: group %s has its offsets, but the final read has none of its %d records (value "
        "%d of %s is gone)",
        *("txn", ended, "group", "records", "one_gone.value"),
        place("one_gone.topic", "one_gone.partition"),
    )
    rows = half.union(_without_output(evidence, whole)).select(
        "*", "one_gone.topic", "one_gone.partition", "one_gone.log", "one_gone.value"
    )
    known = F.when(F.col("type") == "ok", "committed").otherwise("end unknown")
    return findings(
        rows,
        "torn-transaction",
        operations=["invoke_index", "complete_index", "one_seen.final_index", "told_index"],
        offset=F.when(F.col("one_gone.offset") >= 0, F.col("one_gone.offset")),
        where=F.when(F.col("group").isNotNull(), "offsets").otherwise(known),
        sentence=F.when(F.col("group").isNotNull(), offsets).otherwise(part),
        around=Window(F.col("invoke_ns")),
    )


def _without_output(evidence: Evidence, whole: DataFrame) -> DataFrame:
    """Transactions none of whose records are in the final read, and whose offsets a group was told to have
    committed: no less than theirs, where the commit had succeeded; where its end is unknown theirs exactly,
    which nobody else committed."""
    tables = evidence.tables
    silent = whole.filter("gone > 0 and gone = records")
    if not any({COMMIT, COMMITTED} <= run.kinds for run in tables.runs):
        return _told_of(silent.limit(0))
    commits = operations(tables, COMMIT).filter("type != 'fail'")
    once = ("run", "log", "group", "offset")
    alone = commits.groupBy(*once).agg(F.count("*").alias("makers"))
    theirs = commits.filter("txn is not null").join(alone, list(once))
    told = operations(tables, COMMITTED).filter("type = 'ok'")
    after = (
        "t.run = c.run and t.log = c.log and t.group = c.group and "
        "t.invoke_index > coalesce(c.complete_index, c.invoke_index) and "
        "((c.type = 'ok' and t.offset >= c.offset) or (c.makers = 1 and t.offset = c.offset))"
    )
    shown = (
        theirs.alias("c")
        .join(told.alias("t"), F.expr(after))
        .groupBy(F.col("c.run").alias("run"), F.col("c.txn").alias("txn"))
        .agg(F.min(F.struct(F.col("c.group").alias("group"), F.col("t.complete_index"))).alias("first"))
        .select("run", "txn", "first.group", F.col("first.complete_index").alias("told_index"))
    )
    return silent.join(shown, ["run", "txn"]).select(*_told_of(silent).columns)


def _told_of(rows: DataFrame) -> DataFrame:
    return rows.select(
        "*", F.lit(None).cast("string").alias("group"), F.lit(None).cast("bigint").alias("told_index")
    )


def ends(tables: Tables) -> DataFrame:
    """The metric ``transaction-ends``: run, transactional_id (empty where it is not on record), ends (a
    struct with the fields of wrackline.checkers.verdict.metrics.TransactionEnds)."""
    events = tables.events(tables.transactional).filter("f = 'send' and extra like '%\"txn\"%'")

    def said(name: str) -> Column:
        return F.get_json_object("extra", f"$.{name}")

    of_each = events.groupBy("run", said("txn").alias("txn")).agg(
        F.coalesce(F.max(said("transactional_id")), F.lit("")).alias("transactional_id"),
        F.max(said("end_ns")).isNotNull().alias("asked"),
        F.max(F.when(F.col("type") != "invoke", F.col("type"))).alias("type"),
    )
    return of_each.groupBy("run", "transactional_id").agg(
        F.struct(
            F.count("*").alias("transactions"),
            F.count_if("asked").alias("ends_asked"),
            F.count_if(F.col("type") == "ok").alias("committed"),
            F.count_if(F.col("type") == "fail").alias("aborted"),
            F.count_if(F.coalesce("type", F.lit("info")) == "info").alias("unknown"),
        ).alias("ends")
    )


@check(
    "unprocessed-input",
    Family.TRANSACTIONS,
    "–",
    "a group committed past a record that it was given in aborted transactions alone",
    marks=[TRANSACTIONS],
)
def unprocessed_input(evidence: Evidence) -> DataFrame:
    """Of records that are in the final read. A transaction of unknown end may have processed what it was
    given."""
    tables = evidence.tables
    keys = ("run", "log", "group")
    given = F.max(F.struct("poll_index", "poll_ns", "poll_process")).alias("given")
    unprocessed = (
        deliveries(tables)
        .groupBy(*keys, "offset")
        .agg(F.min("undone").alias("undone"), given)
        .filter("undone")
    )
    rows = (
        unprocessed.join(F.broadcast(reached(tables)), list(keys))
        .filter("offset < last.offset")
        .join(kept(evidence), ["run", "topic", "partition", "offset"])
    )
    return findings(
        rows,
        "unprocessed-input",
        operations=["given.poll_index", "last.complete_index", "final_index"],
        sentence=say(
            "value %d is at offset %d of %s; group %s committed offset %d (process %d at %s), but was given "
            "that record in aborted transactions alone, last by process %d at %s",
            *("value", "offset", place(), "group", "last.offset", "last.process"),
            *(seconds("last.complete_ns"), "given.poll_process", seconds("given.poll_ns")),
        ),
        around=Window(F.col("given.poll_ns"), F.col("last.complete_ns")),
    )

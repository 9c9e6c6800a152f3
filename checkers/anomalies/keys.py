"""Topics with keys that are compacted: a record that a later one of the same key follows may be gone, from
any replica and for any reader; the last one of a key may not.

Which key a value has its send tells; where it is, acks, polls, the final read and the replicas' own logs do
(below their high watermarks). A record of unknown outcome that nobody has counts for nothing: had it taken
the place of another, it would be there itself, or one after it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine.tables import Tables, keep

_VALUE = ("run", "topic", "partition", "value")


def compacted(tables: Tables) -> list[tuple[int, str]]:
    """(run, topic)."""
    return [(n, one.name) for n, run in enumerate(tables.runs) for one in run.info.topics if one.compacted]


def uncompacted_only(rows: DataFrame, tables: Tables) -> DataFrame:
    """Rows (run, topic) that are not of a compacted topic."""
    found = compacted(tables)
    if not found:
        return rows
    return rows.join(F.broadcast(tables.small(found, "run int, topic string")), ["run", "topic"], "anti")


def lasting(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Rows (run, topic, partition, value, offset) of records that must be there still. One whose offset
    nobody told may have been followed by any other of its key."""
    if not compacted(evidence.tables):
        return rows
    last = evidence.once("last of keys", lambda: keep(_last(evidence.tables)))
    known = rows.join(last, list(_VALUE), "left")
    must = "last is null or (offset is not null and offset >= last)"
    return known.filter(must).select(*rows.columns)


def _last(tables: Tables) -> DataFrame:
    """run, topic, partition, value, last: the highest offset known of a record with the value's key."""
    hw = F.when(F.col("f") == "replica", F.get_json_object("extra", "$.hw").cast("bigint"))
    topics = compacted(tables)
    some = F.broadcast(tables.small(topics, "run int, topic string"))
    events = tables.events(run for run, _ in topics)
    history = events.filter("f in ('send', 'poll', 'drain', 'replica')").join(some, ["run", "topic"])
    records = history.select(
        *("run", "topic", "f", "type", "key"), hw.alias("hw"), F.explode("records").alias("record")
    ).select("*", "record.partition", "record.value", "record.offset")
    keys = records.filter("f = 'send' and type = 'invoke' and key is not null").select(*_VALUE, "key")
    places = records.filter(
        "type = 'ok' and offset >= 0 and value >= 0 and (hw is null or offset < hw)"
    ).select(*_VALUE, "offset")
    of_key = ("run", "topic", "partition", "key")
    last = keys.join(places, list(_VALUE)).groupBy(*of_key).agg(F.max("offset").alias("last"))
    return keys.join(last, list(of_key)).select(*_VALUE, "last")

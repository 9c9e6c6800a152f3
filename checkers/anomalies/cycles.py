"""Cycles between transactions (docs/anomalies.md section 3): Elle's G0 and G1c.

Nodes are transactions: sends and polls that carry the same ``extra.txn``. Sends that are none are no nodes,
however many records they have: nothing in Kafka keeps the records of a send together.

=====  =======================================================================================================
ww     a record of one transaction is followed, among records of transactions in its partition, by one of
       another
wr     a transaction was given a record that another one sent
rt     one transaction had completed before another was invoked
=====  =======================================================================================================

A consumer reads ahead and a poll never proves that there was no more, so there are no anti-dependencies (rw).
Edges that real time implies anyway say nothing and are left out. What is left is a sparse graph, whose
strongly connected components are found in linear time; real time is a chain of times in it, not a square of
pairs. Of each component of writes and real time the shortest cycle through its first node is reported, edge
by edge, and so of each component of reads alone; of each component of all with a read that does not lie
within one of those, the shortest cycle through that read (wrackline.checkers.anomalies.cycle_search).

Kafka does not isolate writes (KIP-98): records of open transactions lie between each other. What it promises
at read_committed is that nobody is given a record before its transaction has committed, and so a cycle of
reads alone cannot be: everyone in it would have committed before the next one did.

Spark brings operations together, with one row for each record they sent or were given (about 100 bytes each).
The transactions of a run are one graph, in one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycle_search import WR, WW, Edge, circles, graph_of, sentence_of
from wrackline.checkers.anomalies.evidence import Window, findings, place
from wrackline.checkers.anomalies.explained_by import Cycle, ExplainedBy
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.engine.frames import Frame, Int, Long, Text, all_of, frame, packed, schema, unpacked
from wrackline.checkers.engine.tables import Partition, RecordOf, Tables, keep
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise

TRANSACTIONS = mark("transactions")
"""Seen where operations carry ``extra.txn``."""
_BOTH = "both"


@dataclass(frozen=True, slots=True)
class _Cycle(Table[Column]):
    """A cycle. ``log``, ``offset`` and ``value`` are of its first edge that rests on a record; null: none
    does."""

    run: Int
    log: Long
    kind: Text
    offset: Long
    value: Long
    since_ns: Long
    until_ns: Long
    indexes: Annotated[Column, "array<bigint>"]
    sentence: Text


@dataclass(frozen=True, slots=True)
class _Invoked(Table[Column]):
    """The event before another of the same process."""

    index: Column
    time_ns: Column
    type: Column
    txn: Column


@dataclass(frozen=True, slots=True)
class _Stayed(Table[Column]):
    """A record of the final read."""

    run: Column
    topic: Column
    partition: Column
    offset: Column
    value: Column


@dataclass(frozen=True, slots=True)
class _Touched(Table[Column]):
    """A record that a transaction sent (acknowledged) or was given, with its operation."""

    run: Column
    txn: Column
    process: Column
    invoke_index: Column
    complete_index: Column
    invoke_ns: Column
    complete_ns: Column
    log: Column
    place: Column
    offset: Column
    value: Column
    sent: Column


def of_transactions(tables: Tables) -> Frame[_Touched]:
    """One row per record that a transaction sent (acknowledged) or was given."""
    history = tables.events(tables.transactional)
    e = history.c
    events = history.filter(e.f.isin("send", "poll") & e.extra.like('%"txn"%'))
    txn = F.get_json_object(e.extra, "$.txn").cast("bigint")
    by_process = SqlWindow.partitionBy(e.run, e.process).orderBy(e.index)
    this = packed(_Invoked(index=e.index, time_ns=e.time_ns, type=e.type, txn=txn))
    events, previous = events.plus(F.lag(this).over(by_process))
    before = unpacked(_Invoked, previous)
    same = before.txn.eqNullSafe(txn)
    touched = events.filter((e.type == "ok") & (before.type == "invoke") & same).exploded(e.records, RecordOf)
    _, record = touched.c
    drained = history.filter((e.f == "drain") & (e.type == "ok")).exploded(e.records, RecordOf)
    _, one = drained.c
    stored = drained.select(
        _Stayed(run=e.run, topic=e.topic, partition=one.partition, offset=one.offset, value=one.value)
    )
    logs = tables.logs_of_runs.small()
    log, stayed = logs.c, stored.c
    in_log = all_of(e.run == log.run, e.topic == log.topic, record.partition == log.partition)
    is_stored = all_of(
        stayed.run == e.run,
        stayed.topic == e.topic,
        stayed.partition == record.partition,
        stayed.offset == record.offset,
        stayed.value == record.value,
    )
    # The offset of a lost record is used again, which is loss, and no order.
    counts = stayed.run.isNotNull() | ~log.complete | (record.offset >= log.unread_from)
    return (
        touched.filter((record.offset >= 0) & (record.value >= 0))
        .join(logs, in_log)
        .join(stored, is_stored, "left")
        .filter(counts)
        .select(
            _Touched(
                run=e.run,
                txn=txn,
                process=e.process,
                invoke_index=before.index,
                complete_index=e.index,
                invoke_ns=before.time_ns,
                complete_ns=e.time_ns,
                log=log.log,
                place=place(log),
                offset=record.offset,
                value=record.value,
                sent=e.f == "send",
            )
        )
    )


def found_in(rows: pd.DataFrame) -> pd.DataFrame:
    """The cycles of one run as rows of ``_Cycle``. ``rows``: of ``_Touched``."""
    graph = graph_of(rows)
    found = []
    for circle in circles(graph):
        first = next((edge for edge in circle if edge.log >= 0), None)
        members = graph.nodes.iloc[[edge.source for edge in circle]]
        found.append(
            (
                int(rows["run"].iloc[0]),
                None if first is None else first.log,
                _kind_of(circle),
                None if first is None else first.offset,
                None if first is None else first.value,
                members["invoke_ns"].min(),
                members["complete_ns"].max(),
                sorted({*members["invoke"].tolist(), *members["complete"].tolist()}),
                sentence_of(circle, graph.nodes),
            )
        )
    return pd.DataFrame(found, columns=list(_Cycle.names()))


def _kind_of(circle: Sequence[Edge]) -> str:
    kinds = {edge.kind for edge in circle}
    if WR not in kinds:
        return WW
    return WR if kinds == {WR} else _BOTH


def _found(evidence: Evidence, kind: str, anomaly: str) -> Findings:
    tables = evidence.tables

    def every() -> Frame[_Cycle]:
        rows = of_transactions(tables)
        found = rows.rows.groupBy("run").applyInPandas(found_in, schema(_Cycle))
        return frame(keep(found), _Cycle)

    cycles, logs = evidence.once("cycles", every), tables.logs_of_runs.small()
    c, log = cycles.c, logs.c
    return findings(
        cycles.filter(c.kind == kind).join(logs, c.log == log.log, "left"),
        anomaly,
        at=Partition(run=c.run, log=c.log, topic=log.topic, partition=log.partition),
        offset=c.offset,
        value=c.value,
        operations=[F.get(c.indexes, F.lit(n)) for n in range(8)],
        sentence=F.concat(F.lit("Transactions follow each other in a cycle: "), c.sentence),
        around=Window(c.since_ns, c.until_ns),
    )


@check(
    "write-cycle",
    Family.CYCLES,
    "G0",
    "transactions follow each other in a cycle, by the order of their records and real time",
    breaks=Promise.ISOLATED_WRITES,
    marks=[TRANSACTIONS],
    explained_by=ExplainedBy(transactions=True, cycle=Cycle.G0),
)
def write_cycle(evidence: Evidence) -> Findings:
    return _found(evidence, WW, "write-cycle")


@check(
    "read-cycle",
    Family.CYCLES,
    "G1c",
    "transactions follow each other in a cycle, by what they were given alone",
    breaks=Promise.COMMITTED_READS,
    marks=[TRANSACTIONS],
    explained_by=ExplainedBy(transactions=True, cycle=Cycle.G1C),
)
def read_cycle(evidence: Evidence) -> Findings:
    return _found(evidence, WR, "read-cycle")


@check(
    "write-read-cycle",
    Family.CYCLES,
    "G1c (with :ww-deps)",
    "transactions follow each other in a cycle, by what they were given, the order of their records and "
    "real time",
    breaks=Promise.ISOLATED_WRITES,
    marks=[TRANSACTIONS],
    explained_by=ExplainedBy(transactions=True, cycle=Cycle.G1C),
)
def write_read_cycle(evidence: Evidence) -> Findings:
    return _found(evidence, _BOTH, "write-read-cycle")

"""What a transaction promises to those who read (docs/anomalies.md sections 3 and 5).

A run has transactions where operations have ``extra.txn`` (wrackline.history.model); elsewhere nothing of
this is looked at. Its events are gone through once, in their order: a state machine for each transactional id
says what was open when, and what may still take effect (coordinator); what each sent is then joined, by
partition and value, with what polls gave and with the final read.

A run is one part: any record that a poll or the final read gave may be of any transaction, and cycles lead
through all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple

import pyarrow as pa

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER, By, Cycle, ExplainedBy
from wrackline.checkers.anomalies.finding import Finding
from wrackline.checkers.anomalies.registry import found_by
from wrackline.checkers.anomalies.transactions.cycles import cycles
from wrackline.checkers.anomalies.transactions.events import KINDS, read_events
from wrackline.checkers.anomalies.transactions.inputs import unprocessed_inputs
from wrackline.checkers.anomalies.transactions.matches import match_records
from wrackline.checkers.anomalies.transactions.reads import (
    aborted_reads,
    precommitted_offsets,
    precommitted_reads,
    unstable_reads,
)
from wrackline.checkers.anomalies.transactions.wholeness import torn_transactions, zombie_transactions
from wrackline.checkers.anomalies.walks import Figure, Walk
from wrackline.checkers.verdict.anomaly import Family, Promise

__all__ = ["TRANSACTIONS", "find"]

_CHECKS = (
    precommitted_reads,
    precommitted_offsets,
    aborted_reads,
    unstable_reads,
    torn_transactions,
    zombie_transactions,
    unprocessed_inputs,
    cycles,
)


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Iterator[Finding | Figure]:
    """Findings of all anomalies below and of ``aborted-read``, and the figure of each transactional id
    (wrackline.checkers.verdict.metrics.TransactionEnds)."""
    events = read_events(batches, about)
    for transactional_id, ends in events.coordinator.ends().items():
        yield Figure("transaction", transactional_id, list(astuple(ends)))
    records = match_records(events)
    for check in _CHECKS:
        yield from check(events, records, about)


TRANSACTIONS = Walk(
    name="transactions",
    needs=frozenset({"send"}),
    transactional=True,
    reads=frozenset(KINDS),
    find=find,
)

found_by(
    TRANSACTIONS,
    "write-cycle",
    Family.CYCLES,
    "G0",
    "transactions follow each other in a cycle, by the order of their records and real time",
    breaks=Promise.ISOLATED_WRITES,
    explained_by=ExplainedBy(transactions=True, cycle=Cycle.G0),
)
found_by(
    TRANSACTIONS,
    "read-cycle",
    Family.CYCLES,
    "G1c",
    "transactions follow each other in a cycle, by what they were given alone",
    breaks=Promise.COMMITTED_READS,
    explained_by=ExplainedBy(transactions=True, cycle=Cycle.G1C),
)
found_by(
    TRANSACTIONS,
    "write-read-cycle",
    Family.CYCLES,
    "G1c (with :ww-deps)",
    "transactions follow each other in a cycle, by what they were given, the order of their records and "
    "real time",
    breaks=Promise.ISOLATED_WRITES,
    explained_by=ExplainedBy(transactions=True, cycle=Cycle.G1C),
)
found_by(
    TRANSACTIONS,
    "precommitted-read",
    Family.TRANSACTIONS,
    "precommitted-read",
    "a record was given to a consumer before its transaction was asked to end, or to the transaction itself",
    breaks=Promise.COMMITTED_READS,
)
found_by(
    TRANSACTIONS,
    "unstable-read",
    Family.TRANSACTIONS,
    "–",
    "a consumer was given what lies behind a record of a transaction that was still open",
    breaks=Promise.COMMITTED_READS,
    explained_by=IN_ANY_ORDER,
)
found_by(
    TRANSACTIONS,
    "torn-transaction",
    Family.TRANSACTIONS,
    "–",
    "of one transaction a part is visible and a part is not",
    breaks=Promise.WHOLE_TRANSACTIONS,
    rests_on_final_read=True,
    explained_by=ExplainedBy(By.FACTS, transactions=True),
)
found_by(
    TRANSACTIONS,
    "zombie-transaction",
    Family.TRANSACTIONS,
    "–",
    "a transaction took effect though its producer had been fenced",
    breaks=Promise.ALWAYS,
    explained_by=IN_ANY_ORDER,
)
found_by(
    TRANSACTIONS,
    "unprocessed-input",
    Family.TRANSACTIONS,
    "–",
    "a group committed past a record that it was given in aborted transactions alone",
    breaks=Promise.PROCESSED_INPUT,
    explained_by=IN_ANY_ORDER,
)

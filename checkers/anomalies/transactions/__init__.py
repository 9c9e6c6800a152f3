"""Checks of what a transaction promises to those who read (docs/anomalies.md sections 3 and 5).

A run has transactions where operations have ``extra.txn`` (wrackline.history.model); elsewhere nothing of
this is looked at. docs/checkers.md says how its events are gone through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple

import pyarrow as pa

from wrackline.checkers.anomalies.transactions.cycles import cycles
from wrackline.checkers.anomalies.transactions.events import read_events
from wrackline.checkers.anomalies.transactions.inputs import unprocessed_inputs
from wrackline.checkers.anomalies.transactions.matches import match_records
from wrackline.checkers.anomalies.transactions.reads import (
    aborted_reads,
    precommitted_offsets,
    precommitted_reads,
    unstable_reads,
)
from wrackline.checkers.anomalies.transactions.wholeness import torn_transactions, zombie_transactions
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import ASSIGN, COMMIT, COMMITTED, REBALANCE, SUBSCRIBE
from wrackline.checkers.checks.explained_by import BY_ORDER, By, Cycle, ExplainedBy
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Figure, Walk
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
    (wrackline.checkers.verdict.measures.metrics.TransactionEnds)."""
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
    reads=frozenset({"send", "poll", "drain", COMMIT, COMMITTED, REBALANCE, SUBSCRIBE, ASSIGN}),
    find=find,
)

_WRITES, _READS = (ExplainedBy(transactions=True, cycle=cycle) for cycle in (Cycle.G0, Cycle.G1C))
_COMMITTED = Promise.COMMITTED_READS

found_by(
    TRANSACTIONS,
    Family.CYCLES,
    {
        "write-cycle": WalkAnomaly(
            "transactions follow each other in a cycle, by the order of their records and real time",
            Promise.ISOLATED_WRITES,
            _WRITES,
            jepsen="G0",
        ),
        "read-cycle": WalkAnomaly(
            "transactions follow each other in a cycle, by what they were given alone",
            _COMMITTED,
            _READS,
            jepsen="G1c",
        ),
        "write-read-cycle": WalkAnomaly(
            "transactions follow each other in a cycle, by what they were given, the order of their records "
            "and real time",
            Promise.ISOLATED_WRITES,
            _READS,
            jepsen="G1c (with :ww-deps)",
        ),
    },
)
found_by(
    TRANSACTIONS,
    Family.TRANSACTIONS,
    {
        "precommitted-read": WalkAnomaly(
            "a record was given to a consumer before its transaction was asked to end, or to the transaction "
            "itself",
            _COMMITTED,
            BY_ORDER,
            jepsen="precommitted-read",
        ),
        "unstable-read": WalkAnomaly(
            "a consumer was given what lies behind a record of a transaction that was still open", _COMMITTED
        ),
        "torn-transaction": WalkAnomaly(
            "of one transaction a part is visible and a part is not",
            Promise.WHOLE_TRANSACTIONS,
            ExplainedBy(By.FACTS, transactions=True),
            rests_on_final_read=True,
        ),
        "zombie-transaction": WalkAnomaly(
            "a transaction took effect though its producer had been fenced", Promise.ALWAYS
        ),
        "unprocessed-input": WalkAnomaly(
            "a group committed past a record that it was given in aborted transactions alone",
            Promise.PROCESSED_INPUT,
        ),
    },
)

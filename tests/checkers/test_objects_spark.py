"""Registers and queues in Spark: the same findings as the exact checks, and verdicts of whole runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from goldens import INITIAL, as_columns, make
from histories import TOPIC, History

from checkers.analysis import analyze
from checkers.calls import CALLS
from checkers.columns import NEVER, NOTHING, Columns
from checkers.exact_queue import check_queue
from checkers.exact_register import check_register
from checkers.findings import FINDINGS
from checkers.jvm.calls import Model
from checkers.queues import queue_breaches
from checkers.registers import register_breaches
from harness.history.model import MARKER, UNKNOWN, Record, Type, value_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
HISTORIES = 250


def distinct_stamps(table: Columns) -> Columns:
    """Events one after another, as the recorder numbers them; of equal stamps invocations come first."""
    stamps = sorted(
        [(int(inv), 0, row) for row, inv in enumerate(table.inv)]
        + [(int(ret), 1, row) for row, ret in enumerate(table.ret) if ret != NEVER]
    )
    for index, (_, done, row) in enumerate(stamps):
        (table.ret if done else table.inv)[row] = index
    return table


def spoil(table: Columns, rng: random.Random) -> None:
    """Exchange what two gets returned, or let one return what nobody put, or a put fail; or leave it as it is."""
    gets, puts = np.flatnonzero(~table.puts), np.flatnonzero(table.puts)
    what = rng.randrange(5)
    if what == 0 and len(gets) > 1:
        one, other = rng.sample(gets.tolist(), 2)
        table.value[[one, other]] = table.value[[other, one]]
    elif what == 1 and len(gets):
        table.value[rng.choice(gets.tolist())] = 999
    elif what == 2 and len(puts):
        table.failed[rng.choice(puts.tolist())] = True


def calls_of(table: Columns, log: int) -> list[tuple[Any, ...]]:
    """Rows of checkers.calls.CALLS; the operation's row stands for its process."""
    rows = []
    for row in range(len(table)):
        inv, ret, ok = int(table.inv[row]), int(table.ret[row]), int(table.ret[row]) != NEVER
        call = (inv, ret, inv, ret if ok else None, row)
        rows.append((0, log, bool(table.puts[row]), int(table.value[row]), ok, bool(table.failed[row]), call))
    return rows


@pytest.mark.parametrize("model", [Model.REGISTER, Model.FIFO_QUEUE])
def test_spark_finds_what_the_exact_checks_find(spark: SparkSession, model: Model) -> None:
    is_register = model is Model.REGISTER
    check: Callable[[Columns], list[Any]] = check_register if is_register else check_queue
    breaches: Callable[[DataFrame], DataFrame] = register_breaches if is_register else queue_breaches
    expected: set[Any] = set()
    rows: list[Any] = []
    for log in range(HISTORIES):
        rng = random.Random(f"spark/{model}/{log}")
        table = as_columns(make(model, rng, rng.randint(3, 14)))
        table.value[table.value == INITIAL] = NOTHING
        table = distinct_stamps(table)
        spoil(table, rng)
        expected |= {(log, str(b.rule), b.value, witness(b)) for b in check(table)}
        rows += calls_of(table, log)
    found = {
        (r["log"], r["rule"], r["value"], tuple(sorted(c["process"] for c in r["calls"])))
        for r in breaches(spark.createDataFrame(rows, CALLS)).collect()
    }
    chains = {one[:3] for one in expected if one[1] == "not empty" and len(one[3]) > 3}
    assert {one for one in found if one[:3] not in chains} == {
        one for one in expected if one[:3] not in chains
    }
    assert {one[:3] for one in found} == {one[:3] for one in expected}
    assert len({one[1] for one in expected}) >= 4, "the histories show too few kinds of breaches"


def witness(breach: Any) -> tuple[int, ...]:
    return tuple(sorted(breach.rows))


class Objects(History):
    """A run of the workload ``register`` or ``queue`` on one partition; values by number."""

    def __init__(self, test_id: str, workload: str, **changes: Any) -> None:
        super().__init__(test_id, workload=workload, **{"reads": "marker", "idempotence": False, **changes})
        self.offset = 0
        self.kept: list[tuple[int, int, int]] = []
        self.assignment().phase("main")

    def put(self, number: int, process: int = 1, attempt: int = 0) -> Objects:
        value = value_of(process, number, attempt)
        self.kept.append((self.offset, value, 0))
        self.send(process, (value, self.offset))
        self.offset += 1
        return self

    def get(self, f: str, number: int | None, process: int = 2, author: int = 1) -> Objects:
        if f == "read":
            self.put(self.offset, 50, MARKER)
        records = () if number is None else (Record(0, number, value_of(author, number)),)
        self.event(process, Type.INVOKE, f, topic=TOPIC, partition=0)
        self.event(process, Type.OK, f, topic=TOPIC, partition=0, records=records)
        return self

    def lost(self, number: int, process: int) -> Objects:
        """A send that never came back and was never seen."""
        records = (Record(0, UNKNOWN, value_of(process, number)),)
        self.event(process, Type.INVOKE, "send", topic=TOPIC, partition=0, records=records)
        return self

    def end_of_run(self) -> Objects:
        self.phase("drain")
        self.drain(*self.kept)
        self.replicas(*self.kept)
        return self


def judged(
    run: Objects, tmp_path: Path, spark: SparkSession, contract: str | None = None
) -> tuple[Any, list[Any]]:
    import pyarrow.parquet as pq

    del spark  # analyze() uses the one that is running
    directory = run.end_of_run().write(tmp_path / run.info.test_id)
    [verdict] = analyze([directory], contract=contract)
    rows = pq.read_table(directory / "findings.parquet", schema=FINDINGS).to_pylist()
    return verdict, [
        row
        for row in rows
        if row["anomaly"].endswith(("register-not-linearizable", "queue-not-linearizable"))
    ]


def test_a_good_register_passes_and_markers_are_no_writes(spark: SparkSession, tmp_path: Path) -> None:
    run = Objects("good", "register").get("read", None).put(1).get("read", 1).lost(7, 9).put(2).get("read", 2)
    verdict, found = judged(run, tmp_path, spark)
    assert (verdict["verdict"], found) == ("pass", [])


def test_a_stale_read_breaks_the_contract_and_shows_its_operations(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = Objects("stale", "register").put(1).put(2).get("read", 1)
    verdict, [finding] = judged(run, tmp_path, spark)
    assert verdict["verdict"] == "violation"
    assert finding["where"] == "inside"
    assert finding["value"] == value_of(1, 1)
    told = [run.events[index] for index in finding["operations"]]
    assert [event.f for event in told] == ["send", "send", "read"]
    assert "it held value" in finding["explanation"]


def test_a_read_by_the_end_offset_promises_less(spark: SparkSession, tmp_path: Path) -> None:
    run = Objects("by-end", "register", reads="end").put(1).put(2).get("read", 1)
    verdict, found = judged(run, tmp_path, spark)
    assert (verdict["verdict"], len(found)) == ("pass", 1)
    again = Objects("by-end-2", "register", reads="end").put(1).put(2).get("read", 1)
    verdict, _ = judged(again, tmp_path, spark)
    [strict] = analyze([tmp_path / "by-end-2"], contract="acks-all+linearizable-reads")
    assert strict["verdict"] == "violation"


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda run: run.put(1).put(2).get("dequeue", 1).get("dequeue", 2).get("dequeue", None), None),
        (lambda run: run.put(1).put(2).get("dequeue", 2), "lost"),
        (lambda run: run.put(1).put(2).get("dequeue", 2).get("dequeue", 1), "overtaken"),
        (lambda run: run.put(1).get("dequeue", 1).get("dequeue", 1, process=3), "twice"),
        (lambda run: run.put(1).get("dequeue", None), "not empty"),
        (lambda run: run.get("dequeue", 5, author=8), "garbage"),
    ],
)
def test_queues_by_rule(
    spark: SparkSession, tmp_path: Path, build: Callable[[Objects], Objects], rule: str | None
) -> None:
    verdict, found = judged(build(Objects("queue", "queue")), tmp_path, spark)
    assert [row["where"] for row in found] == ([] if rule is None else [rule])
    assert verdict["verdict"] == ("pass" if rule is None else "violation")
    assert all(row["explanation"].startswith("log-0 is no linearizable queue: ") for row in found)

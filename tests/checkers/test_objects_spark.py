"""Registers and queues in Spark: the same findings as the exact checks, and verdicts of whole runs."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from goldens import INITIAL, as_columns, make
from histories import TOPIC, History
from search import is_queue as is_queue_history
from search import is_register as is_register_history

from checkers.analysis import analyze
from checkers.calls import CALLS
from checkers.columns import NEVER, NOTHING, Columns
from checkers.exact_queue import check_queue
from checkers.exact_register import check_register
from checkers.findings import FINDINGS
from checkers.jvm.calls import Model
from checkers.jvm.classpath import available
from checkers.queues import queue_breaches
from checkers.referee import MODELS, referee
from checkers.registers import register_breaches
from harness.history.model import MARKER, UNKNOWN, Record, Type, value_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
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
    linearizable = is_register_history if is_register else is_queue_history
    expected: set[Any] = set()
    rows: list[Any] = []
    tables = [history(model, log) for log in range(HISTORIES)]
    for log, table in enumerate(tables):
        expected |= {(log, str(breach.rule), breach.value) for breach in check(table)}
        rows += calls_of(table, log)
    found = breaches(spark.createDataFrame(rows, CALLS)).collect()
    assert {(row["log"], row["rule"], row["value"]) for row in found} == expected
    assert len({rule for _, rule, _ in expected}) >= 5, "the histories show too few kinds of breaches"
    for row in found:
        if row["rule"] == "not empty" and row["contradicted"] > 1:
            continue  # the witness names one of several values
        witness = sorted(call["process"] for call in row["calls"])
        assert not linearizable(tables[row["log"]].rows(witness)), row


def history(model: Model, number: int) -> Columns:
    rng = random.Random(f"spark/{model}/{number}")
    table = as_columns(make(model, rng, rng.randint(3, 14)))
    table.value[table.value == INITIAL] = NOTHING
    table = distinct_stamps(table)
    spoil(table, rng)
    return table


class Objects(History):
    """A run of the workload ``register`` or ``queue`` on one partition; values by number."""

    def __init__(self, test_id: str, workload: str, **changes: Any) -> None:
        super().__init__(test_id, workload=workload, **{"reads": "marker", **changes})
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


def register() -> Objects:
    return Objects("", "register")


def by_end() -> Objects:
    return Objects("", "register", reads="end")


def queue() -> Objects:
    return Objects("", "queue")


RUNS: dict[str, tuple[Objects, str | None, str]] = {
    "good register": (
        register().get("read", None).put(1).get("read", 1).lost(7, 9).put(2).get("read", 2),
        None,
        "pass",
    ),
    "stale read": (register().put(1).put(2).get("read", 1), "inside", "violation"),
    "two at once": (register().put(1).put(2).get("read", 2).get("read", 1), "two at once", "violation"),
    "stale read by the end offset": (by_end().put(1).put(2).get("read", 1), "inside", "pass"),
    "good queue": (
        queue().put(1).put(2).get("dequeue", 1).get("dequeue", 2).get("dequeue", None),
        None,
        "pass",
    ),
    "lost": (queue().put(1).put(2).get("dequeue", 2), "lost", "violation"),
    "overtaken": (queue().put(1).put(2).get("dequeue", 2).get("dequeue", 1), "overtaken", "violation"),
    "twice": (queue().put(1).get("dequeue", 1).get("dequeue", 1, process=3), "twice", "violation"),
    "not empty": (queue().put(1).get("dequeue", None), "not empty", "violation"),
    "garbage": (queue().put(1).get("dequeue", 5, author=8), "garbage", "violation"),
}
"""What happens, the rule that it breaks, and the verdict."""


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Verdict, findings and directory of every run, from one analysis."""
    del spark  # analyze() uses the one that is running
    folder = tmp_path_factory.mktemp("objects")
    for name, (run, _, _) in RUNS.items():
        run.info = dataclasses.replace(run.info, test_id=name)
        run.end_of_run().write(folder / name)
    verdicts = analyze([folder / name for name in RUNS])
    found: dict[str, Any] = {}
    for name, verdict in zip(RUNS, verdicts, strict=True):
        rows = pq.read_table(folder / name / "findings.parquet", schema=FINDINGS).to_pylist()
        found[name] = (verdict, [row for row in rows if row["anomaly"] in MODELS], folder / name)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_runs_by_rule(judged: dict[str, Any], name: str) -> None:
    run, rule, expected = RUNS[name]
    verdict, found, directory = judged[name]
    assert [row["where"] for row in found] == ([] if rule is None else [rule])
    assert verdict["verdict"] == expected, verdict["reasons"]
    for row in found:
        told = [run.events[index] for index in row["operations"]]
        assert all(event.f in ("send", "read", "dequeue") for event in told)
        assert row["explanation"].startswith(f"log-0 is no linearizable {run.info.workload}: ")
    if found and available():
        assert [one.answer for one in referee(directory, directory / "findings.parquet")] == ["confirmed"]


def test_a_stale_read_tells_its_operations(judged: dict[str, Any]) -> None:
    run, _, _ = RUNS["stale read"]
    _, [finding], _ = judged["stale read"]
    assert finding["value"] == value_of(1, 1)
    assert [run.events[index].f for index in finding["operations"]] == ["send", "send", "read"]
    assert "it held value" in finding["explanation"]


def test_a_contract_with_linearizable_reads_forbids_what_the_end_offset_shows(judged: dict[str, Any]) -> None:
    _, _, directory = judged["stale read by the end offset"]
    [strict] = analyze([directory], contract="acks-all+linearizable-reads")
    assert strict["verdict"] == "violation"

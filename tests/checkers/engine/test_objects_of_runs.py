"""Registers and queues in the plan: the same findings as the exact checks, and verdicts of whole runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.checkers.histories import TOPIC, History
from tests.checkers.local_plan import contradictions
from tests.checkers.object_histories import WORKLOADS, expected, loaded, objects, rough
from tests.checkers.search import is_queue, is_register
from wrackline.checkers.analysis import analyze
from wrackline.checkers.anomalies.objects import wrong_values
from wrackline.checkers.checks import registry
from wrackline.checkers.checks.about import about
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.places import Places
from wrackline.checkers.checks.registry import marks
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.context import topics_of
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.inputs.table import Ints
from wrackline.checkers.jvm.calls import Model
from wrackline.checkers.jvm.classpath import available
from wrackline.checkers.jvm.referee import MODELS, referee
from wrackline.history.model import MARKER, UNKNOWN, Record, Type, value_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]
"""All histories are judged at once, in the first test that asks for it."""


@pytest.mark.parametrize("span", [150, 1 << 20])
def test_the_plan_finds_what_the_exact_checks_find(span: int, tmp_path: Path) -> None:
    made = [(model, *objects(model, seed)) for model in WORKLOADS for seed in (10, 11)]
    runs = [loaded(run, tmp_path / str(n), 200) for n, (_, run, _) in enumerate(made)]
    found = contradictions(runs, span)
    topics = topics_of(runs)
    said: dict[int, set[Any]] = {number: set() for number in range(len(runs))}
    for number, run in enumerate(runs):
        known = about(number, run, topics)
        for log in known.logs.values():
            mine = found.take(found.log == log.number)
            at = Places(known, log, Candidate[Ints].unknown(0), mine, marks())
            for one in (wrong for workload in WORKLOADS.values() for wrong in wrong_values(at, workload)):
                witness = frozenset(call.inv for call in one.calls)
                what = (log.partition, str(one.rule), one.found.value, one.found.other, one.contradicted)
                said[number].add((*what, witness))
                if one.rule != "not empty" or one.contradicted == 1:
                    model, _, tables = made[number]
                    table = tables[log.partition]
                    rows = np.flatnonzero(np.isin(table.inv, list(witness)))
                    brute = is_register if model is Model.REGISTER else is_queue
                    assert not brute(table.rows(rows)), (number, what)
    kinds: dict[Model, set[str]] = {model: set() for model in WORKLOADS}
    for number, (model, _, tables) in enumerate(made):
        assert rough(said[number]) == rough(expected(model, tables))
        kinds[model] |= {one[1] for one in said[number]}
    assert all(len(some) >= 5 for some in kinds.values()), kinds  # else the histories show too little


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

    def led_by(self, node: int, epoch: int) -> Objects:
        self.cluster((1, 2, 3), node, epoch)
        return self

    def end_of_run(self) -> Objects:
        self.phase("drain")
        self.drain(*self.kept)
        self.replicas(*self.kept)
        self.account()
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
    "stale read by the end offset": (by_end().put(1).put(2).get("read", 1), "inside", "violation"),
    "stale read by the end offset, beside a change of leader": (
        by_end().led_by(1, 5).put(1).put(2).led_by(2, 6).get("read", 1),
        "inside",
        "pass",
    ),
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


def write_runs(folder: Path) -> list[Path]:
    for name, (run, _, _) in RUNS.items():
        run.info = dataclasses.replace(run.info, test_id=name)
        run.end_of_run().write(folder / name)
    return [folder / name for name in RUNS]


@pytest.fixture(scope="module")
def judged(judged_runs: Mapping[Path, dict[str, Any]]) -> dict[str, Any]:
    """Verdict, findings and directory of every run."""
    found: dict[str, Any] = {}
    for run, verdict in judged_runs.items():
        rows = pq.read_table(run / "findings.parquet", schema=FINDINGS).to_pylist()
        found[run.name] = (verdict, [row for row in rows if row["anomaly"] in MODELS], run)
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
        assert row["explanation"].startswith(f"log-0 is not a linearizable {run.info.workload}: ")
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


def test_a_check_is_asked_only_where_its_own_marks_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def watched(name: str) -> None:
        one = registry._CHECKS[name]
        find = one.find
        assert find is not None

        def asking(at: Places) -> Iterator[Finding]:
            asked.append((name, at.run.info.test_id))
            yield from find(at)

        monkeypatch.setitem(registry._CHECKS, name, dataclasses.replace(one, find=asking))

    assert "lost-write" in registry.names()
    for name in ("lost-write", "register-not-linearizable", "queue-not-linearizable"):
        watched(name)
    stale = Objects("stale", "register").put(1).put(2).get("read", 1).end_of_run()
    lost = History("lost").phase("main").send(1, (160, 0)).send(1, (176, 1)).phase("drain").drain((0, 160, 0))
    analyze([one.write(tmp_path / one.info.test_id) for one in (stale, lost)], engine="local")
    assert sorted(asked) == [("lost-write", "lost"), ("register-not-linearizable", "stale")]

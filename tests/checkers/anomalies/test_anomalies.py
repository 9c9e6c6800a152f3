"""Every anomaly on a tiny history of its own: how many findings it gives, and what is said of them.

All histories are judged together, told apart by their test ids.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.checkers.cases import Case, all_cases
from tests.checkers.goldens import check_golden_log, golden_of_log
from tests.checkers.histories import TOPIC
from wrackline.checkers.checks.registry import checks
from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.explain.model import EXPLANATIONS_FILE, from_json
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.jvm import referee
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.classpath import available
from wrackline.checkers.jvm.referee import LOG
from wrackline.checkers.jvm.witness_log import KINDS, UNFILLED
from wrackline.checkers.verdict.anomaly import Family
from wrackline.proving.model.knobs import Final, drawn
from wrackline.proving.model.made import Made, make
from wrackline.proving.rules import Rule, violations

pytestmark = pytest.mark.timeout(1_800)
"""All histories are judged at once, in the first test that asks for it."""

CASES = all_cases()


def of_logs() -> set[str]:
    """Registers and queues have histories of their own (test_proving_objects.py)."""
    objects = (Family.REGISTERS, Family.QUEUES)
    return {one.name for one in checks() if one.family not in objects}


@cache
def correct_logs() -> list[Made]:
    """Without offsets that nobody may miss: no transactions, no compaction, final reads to the end."""
    whole = {"transactional": 0, "keys": 0, "final": Final.COMPLETE}
    every = (replace(drawn(seed, operations=40), **whole) for seed in range(150))
    return [make(f"correct {seed}", seed, knobs) for seed, knobs in enumerate(every) if knobs.idempotence]


def write_runs(folder: Path) -> list[Path]:
    return [case.write(folder / str(n)) for n, case in enumerate(CASES)]


@pytest.fixture(scope="module")
def folder(judged_runs: Mapping[Path, Any]) -> Path:
    return next(iter(judged_runs)).parent


@pytest.fixture(scope="module")
def findings(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All findings of all histories of this file, by test id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for n, case in enumerate(CASES):
        rows = pq.read_table(folder / str(n) / "findings.parquet", schema=FINDINGS).to_pylist()
        assert {row["test_id"] for row in rows} <= {case.info.test_id}
        found[case.info.test_id] = rows
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, findings: dict[str, list[dict[str, Any]]]) -> None:
    found = findings[case.info.test_id]
    assert Counter(row["anomaly"] for row in found) == case.expected, [row["explanation"] for row in found]
    for row in found:
        assert row["where"] == case.where.get(row["anomaly"], row["where"])
        assert row["operations"] == sorted(set(row["operations"])), row
        assert all(0 <= index < len(case.events) for index in row["operations"]), row
        assert row["operations"] or row["anomaly"] == "not-linearizable", row
        assert row["explanation"].endswith("."), row
        assert "null" not in row["explanation"], row["explanation"]


def test_every_check_has_a_bad_history() -> None:
    assert {anomaly for case in CASES for anomaly in case.expected} == of_logs()


def test_every_check_says_what_it_means() -> None:
    for one in checks():
        assert one.meaning
        assert one.jepsen


def test_the_judge_and_numpy_agree_on_linearizability(findings: dict[str, list[dict[str, Any]]]) -> None:
    """Per partition of every case."""
    verdicts: Counter[bool] = Counter()
    for history in CASES:
        rows = findings[history.info.test_id]
        mine = [row for row in rows if row["topic"] == TOPIC and row["anomaly"] == "not-linearizable"]
        by_judge = {row["partition"] for row in mine}
        partitions = history.info.topics[0].partitions
        found = violations(history.events, partitions, idempotence=history.info.idempotence)
        for partition, rules in enumerate(found):
            kept = history.info.topics[0].compacted  # a key's earlier records leave holes
            by_numpy = [one for one in rules if not (kept and one.rule is Rule.HOLE)]
            assert bool(by_numpy) == (partition in by_judge), (
                history.info.test_id,
                partition,
                by_numpy,
                rows,
            )
            verdicts[bool(by_numpy)] += 1
    assert verdicts[True] > 10
    assert verdicts[False] > 100


def test_a_witness_is_impossible_by_itself(findings: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Few operations, whatever else others did: by the numpy rules always, by Knossos where it is."""
    seen: Counter[str] = Counter()
    with ExitStack() as stack:
        knossos = stack.enter_context(Bridge(heap="512m")) if available() else None
        for number, history in enumerate(CASES):
            rows = [row for row in findings[history.info.test_id] if row["anomaly"] == LOG]
            for row, calls in zip(rows, referee.histories(folder / str(number), rows), strict=True):
                seen[row["where"]] += 1
                if row["where"] == UNFILLED:
                    continue
                assert len(calls) <= 5
                assert check_golden_log(golden_of_log(calls)) == "invalid", (row, golden_of_log(calls))
                if knossos:
                    assert knossos.linearizable(calls).answer is Answer.INVALID, row
    assert min(seen[rule] for rule in ("late append", "stale end", "two values", "hole")) > 0, seen


IN_A_CIRCLE = {
    "lost-write", "vanished-read", "lost-committed", "append-order", "session-order", "stale-read",
    "future-read", "watermark-regression", "write-cycle", "read-cycle",
}  # fmt: skip
"""Anomalies that contradict an order, so that the edges of their explanations must show it."""


def test_every_anomaly_is_explained(folder: Path) -> None:
    """From the findings of each case to what the judge says of them."""
    found = [
        one
        for n, _ in enumerate(CASES)
        for one in from_json((folder / str(n) / EXPLANATIONS_FILE).read_bytes())
        if one.detailed  # not where another of the group rests on the same operations
    ]
    assert {one.finding.anomaly for one in found} == of_logs()
    for one in found:
        assert one.operations, one.finding.sentence
        assert one.edges or one.facts, one.finding.sentence
        following = [*one.edges[1:], *one.edges[:1]]
        assert all(a.after == b.before for a, b in zip(one.edges, following, strict=True))
        said = " ".join([*one.facts, *(edge.sentence for edge in one.edges)])
        assert "None" not in said, said
        if one.finding.offset is not None:
            assert one.neighbourhood is not None
            assert one.finding.offset in [line.offset for line in one.neighbourhood.lines]
    assert {one.finding.anomaly for one in found if one.edges} >= IN_A_CIRCLE
    assert {one.cycle for one in found} == {None, "G0", "G0-realtime", "G1c"}


def test_operations_of_a_correct_log_are_never_impossible(tmp_path: Path) -> None:
    """Whatever a finding might name of it, by any rule."""
    rng = random.Random(5)
    seen: Counter[str] = Counter()
    for number, history in enumerate(correct_logs()):
        directory = history.write(tmp_path / str(number))
        done = [e.index for e in history.events if e.f in KINDS and e.process >= 0]
        made = []
        for rule in ("late append", "stale end", "two values", "hole"):
            record = rng.choice([r for e in history.events if e.f == "send" for r in e.records])
            partition = record.partition
            finding = {"anomaly": LOG, "topic": TOPIC, "partition": partition, "where": rule}
            drains = [e.index for e in history.events if e.f == "drain" and e.partition == partition]
            named = rng.sample(drains, min(len(drains), 2)) if rule == "hole" else rng.sample(done, 6)
            made.append(finding | {"operations": named, "offset": rng.randrange(12), "value": record.value})
        for finding, calls in zip(made, referee.histories(directory, made), strict=True):
            told = golden_of_log(calls)
            assert check_golden_log(told) == "valid", (history.info.test_id, finding, told)
            seen |= Counter(op[0] for op in told["ops"])
    assert set(seen) == {"append", "read", "end"}

"""Every anomaly on a tiny history of its own, correct random histories without findings, and spoiled ones
with.

All histories go through Spark in one batch, with those of other files, told apart by their test ids.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from tests.checkers.cases import all_cases
from tests.checkers.cases.base import Case
from tests.checkers.goldens import check_golden_log, golden_of_log
from tests.checkers.histories import TOPIC, History
from tests.checkers.model import Model, completions, copy_of
from wrackline.checkers.anomalies.registry import checks, names
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.jvm import referee
from wrackline.checkers.jvm.bridge import Answer, Bridge
from wrackline.checkers.jvm.classpath import available
from wrackline.checkers.jvm.referee import LOG
from wrackline.checkers.jvm.witness_log import KINDS, UNFILLED
from wrackline.checkers.proving.rules import violations
from wrackline.checkers.verdict.contracts import OF_OBJECTS
from wrackline.harness.report import write_report
from wrackline.history.model import FAILED, Type

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]
"""All histories are judged at once, in the first test that asks for it."""

CASES = all_cases()
MODELS = 200
SEEDS = (1, 4)
"""Of the histories that are spoiled."""


@functools.cache
def random_histories() -> list[History]:
    """Correct ones: with a final read, without, with retries that append twice (where that is allowed)."""
    return [
        Model(
            f"random {seed}", seed, partitions=1 + seed % 3, final=seed % 3 != 0, retries=seed % 5 == 0
        ).run()
        for seed in range(MODELS)
    ]


def lose_an_ack(h: History) -> None:
    """An acked record is in neither the final read nor any replica; what followed it moved down."""
    _, send = last(h, "send")
    lost = send.records[-1]
    for n, event in enumerate(h.events):
        if event.f in ("drain", "replica", "poll") and event.type is Type.OK:
            h.events[n] = replace(event, records=tuple(r for r in event.records if r.value != lost.value))


def swap_in_a_replica(h: History) -> None:
    at, chunk = longest(h, "replica")
    first, second, *rest = chunk.records
    swapped = (first._replace(value=second.value), second._replace(value=first.value), *rest)
    h.events[at] = replace(chunk, records=swapped)


def repeat_in_the_final_read(h: History) -> None:
    at, chunk = longest(h, "drain")
    again = chunk.records[-1]._replace(offset=chunk.records[-1].offset + 1)
    assert chunk.high_watermark is not None
    h.events[at] = replace(chunk, records=(*chunk.records, again), high_watermark=chunk.high_watermark + 1)


def fail_what_was_acked(h: History) -> None:
    at, send = last(h, "send")
    records = tuple(record._replace(offset=FAILED) for record in send.records)
    h.events[at] = replace(send, type=Type.FAIL, records=records)


def read_an_unsent_value(h: History) -> None:
    at, chunk = longest(h, "drain")
    h.events[at] = replace(chunk, records=(*chunk.records[:-1], chunk.records[-1]._replace(value=7 << 40)))


def show_a_short_end(h: History) -> None:
    """The last end offset forgets everything."""
    at, end = last(h, "end")
    h.events[at] = replace(end, high_watermark=0)


def read_before_it_was_sent(h: History) -> None:
    _, chunk = longest(h, "drain")
    early = replace(
        chunk, process=5_000, f="poll", records=chunk.records[-1:], offset=None, high_watermark=None
    )
    h.events[0:0] = [replace(early, type=Type.INVOKE, records=()), early]


def lower_an_epoch(h: History) -> None:
    at, chunk = longest(h, "drain")
    h.events[at] = replace(
        chunk, records=tuple(r._replace(leader_epoch=9 if n == 0 else 8) for n, r in enumerate(chunk.records))
    )


MUTATORS: dict[str, tuple[Callable[[History], None], str]] = {
    mutate.__name__: (mutate, anomaly)
    for mutate, anomaly in (
        (lose_an_ack, "lost-write"),
        (swap_in_a_replica, "replica-divergence"),
        (repeat_in_the_final_read, "duplicate"),
        (fail_what_was_acked, "aborted-read"),
        (read_an_unsent_value, "phantom"),
        (show_a_short_end, "watermark-regression"),
        (read_before_it_was_sent, "future-read"),
        (lower_an_epoch, "epoch-order"),
    )
}


def last(h: History, f: str) -> tuple[int, Any]:
    found = [(at, e) for at, e in completions(h, f) if f != "end" or (e.high_watermark or 0) > 0]
    if f == "end":  # one that others were told something before
        found = found[1:]
    return found[-1]


def longest(h: History, f: str) -> tuple[int, Any]:
    return max(completions(h, f), key=lambda one: len(one[1].records))


def spoiled_history(name: str, seed: int) -> History:
    base = Model(f"base {seed}", seed, partitions=1, operations=60).run()
    spoiled = copy_of(base, f"spoiled {name} {seed}")
    MUTATORS[name][0](spoiled)
    renumber(spoiled)
    return spoiled


def renumber(h: History) -> None:
    h.events = [replace(event, index=n) for n, event in enumerate(h.events)]


@functools.cache
def every() -> list[History]:
    """Made when they are asked for: every worker imports this file, and one judges its histories."""
    spoiled = [spoiled_history(name, seed) for name in MUTATORS for seed in SEEDS]
    return [case.history for case in CASES] + random_histories() + spoiled


def write_runs(folder: Path) -> list[Path]:
    return [h.write(folder / str(n)) for n, h in enumerate(every())]


@pytest.fixture(scope="module")
def folder(judged_together: Mapping[str, Mapping[Path, Any]]) -> Path:
    return next(iter(judged_together[__name__])).parent


@pytest.fixture(scope="module")
def findings(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All findings of all histories of this file, by test id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for n, history in enumerate(every()):
        rows = pq.read_table(folder / str(n) / "findings.parquet", schema=FINDINGS).to_pylist()
        assert {row["test_id"] for row in rows} <= {history.info.test_id}
        found[history.info.test_id] = rows
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, findings: dict[str, list[dict[str, Any]]]) -> None:
    found = findings[case.history.info.test_id]
    assert Counter(row["anomaly"] for row in found) == case.expected, [row["explanation"] for row in found]
    for row in found:
        assert row["operations"] == sorted(set(row["operations"])), row
        assert all(0 <= index < len(case.history.events) for index in row["operations"]), row
        assert row["operations"] or row["anomaly"] == "not-linearizable", row
        assert row["explanation"].endswith("."), row
        assert "null" not in row["explanation"], row["explanation"]


def test_every_check_has_a_bad_history() -> None:
    assert {anomaly for case in CASES for anomaly in case.expected} == set(names()) - set(OF_OBJECTS)


def test_every_check_says_what_it_means() -> None:
    for one in checks():
        assert one.meaning
        assert one.jepsen


def test_correct_random_histories_have_no_findings(findings: dict[str, list[dict[str, Any]]]) -> None:
    wrong = {}
    for history in random_histories():
        found = [row for row in findings[history.info.test_id] if not allowed(history, row)]
        if found:
            wrong[history.info.test_id] = [(row["anomaly"], row["explanation"]) for row in found]
    assert not wrong


def allowed(history: History, row: dict[str, Any]) -> bool:
    """A retry without idempotence appends twice: duplicates are what it does."""
    return row["anomaly"] == "duplicate" and not history.info.idempotence


def test_the_random_histories_are_not_trivial() -> None:
    outcomes = Counter(event.type for h in random_histories() for event in h.events if event.f == "send")
    assert outcomes[Type.OK] > 1000
    assert outcomes[Type.INFO] > 50
    assert outcomes[Type.FAIL] > 20
    assert sum(len(e.records) for h in random_histories() for e in h.events if e.f == "poll") > 2000


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MUTATORS)
def test_spoiled_history(name: str, seed: int, findings: dict[str, list[dict[str, Any]]]) -> None:
    found = {row["anomaly"] for row in findings[f"spoiled {name} {seed}"]}
    assert MUTATORS[name][1] in found


def test_spark_and_numpy_agree_on_linearizability(findings: dict[str, list[dict[str, Any]]]) -> None:
    """Per partition of every history of this file, correct, bad and spoiled."""
    verdicts = Counter()
    for history in every():
        rows = findings[history.info.test_id]
        by_spark = {row["partition"] for row in rows if row["anomaly"] == "not-linearizable"}
        partitions = history.info.topics[0].partitions
        found = violations(history.events, partitions, idempotence=history.info.idempotence)
        for partition, by_numpy in enumerate(found):
            assert bool(by_numpy) == (partition in by_spark), (
                history.info.test_id,
                partition,
                by_numpy,
                rows,
            )
            verdicts[bool(by_numpy)] += 1
    assert verdicts[True] > 20
    assert verdicts[False] > 100


def test_a_witness_is_impossible_by_itself(findings: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Few operations, whatever else others did: by the numpy rules always, by Knossos where it is."""
    seen: Counter[str] = Counter()
    with ExitStack() as stack:
        knossos = stack.enter_context(Bridge(heap="512m")) if available() else None
        for number, history in enumerate(every()):
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
    """From the findings of each case to what its report says of them."""
    explained: list[dict[str, Any]] = []
    for n, _ in enumerate(CASES):
        run_dir = folder / str(n)
        write_report(run_dir)
        explained += orjson.loads((run_dir / "explanations.json").read_bytes())
    assert {one["anomaly"] for one in explained} == {one.name for one in checks()} - set(OF_OBJECTS)
    for one in explained:
        assert one["operations"], one["sentence"]
        assert one["edges"] or one["facts"], one["sentence"]
        following = [*one["edges"][1:], *one["edges"][:1]]
        assert all(a["after"] == b["before"] for a, b in zip(one["edges"], following, strict=True))
        told = " ".join([*one["facts"], *(edge["sentence"] for edge in one["edges"])])
        assert "None" not in told, told
        if one["offset"] is not None:
            around = one["neighbourhood"]["offsets"]
            assert one["offset"] in [line["offset"] for line in around], one["sentence"]
    assert {one["anomaly"] for one in explained if one["edges"]} >= IN_A_CIRCLE


def test_operations_of_a_correct_log_are_never_impossible(tmp_path: Path) -> None:
    """Whatever a finding might name of it, by any rule."""
    rng = random.Random(5)
    seen: Counter[str] = Counter()
    for number, history in enumerate(one for one in random_histories() if one.info.idempotence):
        directory = history.write(tmp_path / str(number))
        done = [e.index for e in history.events if e.f in KINDS and e.process >= 0]
        made = []
        for rule in ("late append", "stale end", "two values", "hole"):
            partition = rng.randrange(history.info.topics[0].partitions)
            sent = [r for e in history.events if e.f == "send" for r in e.records if r.partition == partition]
            record = rng.choice(sent)
            finding = {"anomaly": LOG, "topic": TOPIC, "partition": partition, "where": rule}
            drains = [e.index for e in history.events if e.f == "drain" and e.partition == partition]
            named = rng.sample(drains, min(len(drains), 2)) if rule == "hole" else rng.sample(done, 6)
            made.append(finding | {"operations": named, "offset": rng.randrange(12), "value": record.value})
        for finding, calls in zip(made, referee.histories(directory, made), strict=True):
            told = golden_of_log(calls)
            assert check_golden_log(told) == "valid", (history.info.test_id, finding, told)
            seen |= Counter(op[0] for op in told["ops"])
    assert set(seen) == {"append", "read", "end"}

"""Registers and queues in pieces: however values and time are cut, the same is found as by the exact checks
at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wrackline.checkers.engine.objects.values
from tests.checkers.local_plan import contradictions
from tests.checkers.object_histories import WORKLOADS, Said, expected, loaded, objects, rough
from wrackline.checkers.cases.language import parse
from wrackline.checkers.engine.object_facts import SLOTS, Contradiction
from wrackline.checkers.engine.objects.values import RULES
from wrackline.checkers.exact.operations import Columns, Ints
from wrackline.checkers.inputs.runs import open_run, scanned, scanned_split
from wrackline.checkers.inputs.table import NONE
from wrackline.checkers.jvm.calls import Model
from wrackline.proving.model.made import write_events


def together(rows: Contradiction[Ints]) -> Said:
    """What intervals of time say of one culprit, as one: as wrackline.checkers.anomalies.objects
    has it."""
    found: dict[Any, list[dict[str, int]]] = {}
    for at in range(len(rows)):
        row = {name: int(column[at]) for name, column in zip(rows.names(), rows.columns(), strict=True)}
        rule = str(RULES[row["rule"]][1])
        family = "two values" if rule in ("two at once", "inside") else rule
        found.setdefault((row["log"], family, row["key"]), []).append(row)
    said = set()
    for (log, _, _), parts in found.items():
        if len(parts) < parts[0]["pieces"]:
            continue
        first = min(parts, key=lambda row: row["order"])
        witness = {first[f"c{slot}_inv"] for slot in range(SLOTS)} - {NONE}
        contradicted = sum(row["contradicted"] for row in parts)
        other = None if first["other"] == NONE else first["other"]
        names = (str(RULES[first["rule"]][1]), first["value"], other, contradicted)
        said.add((log & 0xFFFFF, *names, frozenset(witness)))
    return said


@pytest.mark.parametrize("model", WORKLOADS)
@pytest.mark.parametrize("span", [2, 25, 1 << 20])
def test_what_is_found_does_not_depend_on_where_it_is_cut(model: Model, span: int, tmp_path: Path) -> None:
    rules: set[str] = set()
    for seed in range(5):
        history, tables = objects(model, seed)
        row_group = (None, 50)[seed % 2]
        rows = contradictions([loaded(history, tmp_path / str(seed), row_group)], span)
        said, wanted = together(rows), expected(model, tables)
        assert rough(said) == rough(wanted)
        if span > len(history.events):
            assert said == wanted
        rules |= {rule for _, rule, *_ in wanted}
    assert len(rules) == len([1 for workload, _ in RULES if workload == WORKLOADS[model]]), rules


@pytest.mark.parametrize("model", WORKLOADS)
@pytest.mark.parametrize("span", [9, 40])
def test_long_histories_in_many_intervals(model: Model, span: int, tmp_path: Path) -> None:
    good, bad = 0, 0
    for seed in range(30, 42):
        history, tables = objects(model, seed, logs=3, most=120)
        said = together(contradictions([loaded(history, tmp_path / str(seed), None)], span))
        assert rough(said) == rough(expected(model, tables))
        good, bad = good + (not said), bad + bool(said)
    assert min(good, bad) > 0


@pytest.mark.parametrize("model", WORKLOADS)
def test_any_number_of_gets_of_one_value_fits(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gets that say nothing more are forgotten on the way, where few rows fit: the same is found."""
    forgotten: list[int] = []
    essential = wrackline.checkers.engine.objects.values.essential

    def counted(workload: str, table: Columns) -> Ints:
        kept = essential(workload, table)
        forgotten.append(len(table) - len(kept))
        return kept

    monkeypatch.setattr(wrackline.checkers.engine.objects.values, "_COMPACT_ROWS", 10)
    monkeypatch.setattr(wrackline.checkers.engine.objects.values, "essential", counted)
    for seed in (20, 21):
        history, tables = objects(model, seed, again=0.5)
        rows = contradictions([loaded(history, tmp_path / str(seed), 40)], 1 << 20)
        assert together(rows) == expected(model, tables)
    assert sum(forgotten) > 20


def test_a_value_that_was_put_twice_is_left_out(tmp_path: Path) -> None:
    for workload, get in (("register", "read"), ("queue", "dequeue")):
        case = parse(f"p: a@0 | q: a@1 | p: b@2 | r: {get} a@0 | r: {get} a@1 | r: {get} z@3", workload)
        run = open_run(write_events(tmp_path / workload, case.info, case.events))
        rows = contradictions([scanned(run, [scanned_split(split) for split in run.splits])], 1 << 20)
        assert [str(RULES[rule][1]) for rule in rows.rule.tolist()] == ["garbage"]

"""Registers and queues in pieces: however values and time are cut, the same is found as by the exact checks at once. Without
Spark: the stages alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from object_histories import WORKLOADS, Said, expected, loaded, objects, rough
from without_spark import breaches

from checkers.jvm.calls import Model
from checkers.objects import RULES
from checkers.packets import NONE, SLOTS, Rows


def together(rows: Rows) -> Said:
    """What stretches of time tell of one culprit, as one: as checkers.breaches has it."""
    found: dict[Any, list[dict[str, int]]] = {}
    for at in range(len(rows)):
        row = {name: int(column[at]) for name, column in rows.columns.items()}
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
    for seed in range(4):
        history, tables = objects(model, seed)
        row_group = (None, 50)[seed % 2]
        rows = breaches([loaded(history, tmp_path / str(seed), row_group)], span)
        said, wanted = together(rows), expected(model, tables)
        assert rough(said) == rough(wanted)
        if span > len(history.events):
            assert said == wanted
        rules |= {rule for _, rule, *_ in wanted}
    assert len(rules) == len([1 for workload, _ in RULES if workload == WORKLOADS[model]]), rules

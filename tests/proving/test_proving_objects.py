"""The checks of registers and queues are proved: each rule, broken alone in a correct history, is found,
once, and nothing else is; correct histories give no finding; so too by hand, a case that breaks a rule beside
one that does not. All of them go through one analysis, with those of other files."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.checkers.histories import keeps_the_rules
from wrackline.checkers.cases.language import CaseError, parse
from wrackline.checkers.engine.objects.values import RULES
from wrackline.history import history_files
from wrackline.history.model import MARKER, UNKNOWN, Event, Type
from wrackline.history.store.schema import SCHEMA
from wrackline.proving.model.made import write_events
from wrackline.proving.model.object_events import MadeObjects, info_of, make_objects, write_objects
from wrackline.proving.model.objects import ObjectKnobs, drawn_objects
from wrackline.proving.mutations.objects import (
    KNOBS,
    ObjectMutation,
    mutate_objects,
    object_mutations,
)
from wrackline.proving.pairs import OBJECT_PAIRS, rule_of

pytestmark = pytest.mark.timeout(1_800)
"""All histories are judged at once, in the first test that asks for it."""
MUTATIONS = object_mutations()
OF_EACH = 2
CORRECT = range(7_000, 7_024)
Found = Counter[tuple[str, str | None]]
"""(anomaly, rule) -> findings."""


@cache
def base(workload: str, seed: int) -> MadeObjects:
    return make_objects(f"base-{workload}-{seed}", seed, KNOBS[workload])


@cache
def mutants(one: ObjectMutation) -> list[list[Event]]:
    """Of the first histories that have a place for it."""
    tried = (mutate_objects(one, base(one.workload, seed)) for seed in range(200))
    found = list(itertools.islice((events for events in tried if events is not None), OF_EACH))
    assert len(found) == OF_EACH, f"{one.name}: {len(found)} of 200 histories have a place for it"
    return found


def write_runs(folder: Path) -> list[Path]:
    """All mutants, cases and correct histories."""
    runs = []
    for one in MUTATIONS:
        for number, events in enumerate(mutants(one)):
            info = info_of(f"{one.name}-{number}", 1, one.workload, KNOBS[one.workload].partitions)
            runs.append(write_events(folder / info.test_id, info, events))
    for name, texts in OBJECT_PAIRS.items():
        for verdict, text in zip(("bad", "good"), texts, strict=True):
            case = parse(text, f"{verdict} {name}")
            assert case.info.workload == name.split()[0]
            runs.append(write_events(folder / case.test_id, case.info, case.events))
    for seed in CORRECT:
        runs.append(make_objects(f"correct-{seed}", seed, drawn_objects(seed)).write(folder / str(seed)))
    return runs


@pytest.fixture(scope="module")
def findings(judged_runs: Mapping[Path, Any]) -> dict[str, Found]:
    return {run.name: found_in(run) for run in judged_runs}


def found_in(run: Path) -> Found:
    rows = pq.read_table(run / "findings.parquet").to_pylist()
    assert not [row["explanation"] for row in rows if " nul" in row["explanation"]]
    return Counter((row["anomaly"], row["where"]) for row in rows if row["anomaly"] != "unproven-write")


@pytest.mark.parametrize("number", range(OF_EACH))
@pytest.mark.parametrize("one", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_is_found_once_and_nothing_else(
    one: ObjectMutation, number: int, findings: dict[str, Found]
) -> None:
    assert findings[f"{one.name}-{number}"] == {(one.anomaly, str(one.rule)): 1}


def test_correct_histories_have_no_findings(findings: dict[str, Found]) -> None:
    assert {seed: found for seed in CORRECT if (found := findings[str(seed)])} == {}


@pytest.mark.parametrize("name", OBJECT_PAIRS)
def test_one_case_breaks_the_rule_and_its_neighbour_does_not(name: str, findings: dict[str, Found]) -> None:
    rule, anomaly = rule_of(name), f"{name.split()[0]}-not-linearizable"
    assert findings[f"bad {name}"] == {(anomaly, rule): 1}
    assert findings[f"good {name}"] == {}


def test_every_rule_has_a_mutation_and_a_pair_of_cases() -> None:
    rules = {(workload, str(rule)) for workload, rule in RULES}
    assert {(one.workload, str(one.rule)) for one in MUTATIONS} == rules
    assert {(name.split()[0], rule_of(name)) for name in OBJECT_PAIRS} == rules


def test_the_same_seed_is_the_same_history() -> None:
    first, second, other = (make_objects("t", seed, drawn_objects(6)) for seed in (6, 6, 8))
    assert first.table.equals(second.table)
    assert not first.table.equals(other.table)
    assert first.table.schema.equals(SCHEMA)


def test_a_history_may_be_written_in_blocks(tmp_path: Path) -> None:
    for seed in (6, 7):
        knobs = drawn_objects(seed)
        whole = make_objects("blocks", seed, knobs)
        last = whole.events[-1].time_ns
        assert write_objects(tmp_path / str(seed) / "blocks", seed, knobs, block_ns=last // 7) == len(
            whole.table
        )
        [file] = history_files(tmp_path / str(seed) / "blocks")
        assert pq.read_table(file).cast(SCHEMA).equals(whole.table)


def test_a_made_history_keeps_the_rules_of_histories() -> None:
    for seed in range(30):
        keeps_the_rules(make_objects("t", seed, drawn_objects(seed)).events, seed)


def test_the_histories_are_not_trivial() -> None:
    """All that the knobs promise happens."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        made = make_objects("t", seed, drawn_objects(seed))
        landed = {r.value for e in made.events if e.f == "drain" for r in e.records}
        ended = {e.process for e in made.events if e.type is not Type.INVOKE}
        reported: dict[int, int] = {}
        for event in made.events:
            seen[f"{event.f} {event.type}"] += 1
            if event.f in ("read", "dequeue"):
                seen[f"{event.f} nothing"] += event.type is Type.OK and not event.records
                seen[f"{event.f} never ends"] += event.process not in ended
            for record in event.records if event.f == "send" else ():
                seen["marker"] += record.value & 15 == MARKER
                seen["lands in doubt"] += event.type is Type.INFO and record.value in landed
                reported[record.value] = event.index
            for record in event.records if event.f in ("read", "dequeue") else ():
                late = record.offset == UNKNOWN or reported[record.value] < event.index
                seen["got after its sender heard or gave up"] += late
    wanted = {
        *(
            "send ok",
            "send fail",
            "send info",
            "read ok",
            "read fail",
            "dequeue ok",
            "dequeue fail",
            "marker",
        ),
        *("read nothing", "dequeue nothing", "read never ends", "dequeue never ends", "lands in doubt"),
        *("drain ok", "replica ok", "got after its sender heard or gave up"),
    }
    assert {one for one in wanted if seen[one] < 10} == set(), seen


def test_knobs_and_cases_that_make_no_sense_are_one_line() -> None:
    with pytest.raises(ValueError, match="'stack' is no workload of objects"):
        ObjectKnobs("stack")
    with pytest.raises(ValueError, match="one partition"):
        ObjectKnobs(partitions=0)
    with pytest.raises(CaseError, match="'read' gives one record"):
        parse("r: read")

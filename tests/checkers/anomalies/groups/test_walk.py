"""The walk as a whole: events may come in batches of any size, what is looked at for keys alone is left out
where there are none, and what it holds grows with intervals."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.checkers.anomalies.groups.walked import walk_of
from wrackline.checkers.anomalies.groups.spans import Spans
from wrackline.checkers.cases.language import parse
from wrackline.checkers.verdict.anomaly import Family
from wrackline.proving.model.knobs import TO_MUTATE
from wrackline.proving.model.made import make, write_events
from wrackline.proving.mutations.catalogue import mutate, mutations
from wrackline.proving.mutations.mutation import Mutation

OF_GROUPS = [one for one in mutations() if one.apply.__module__.endswith(".groups")]


def mutants(one: Mutation, folder: Path, number: int) -> list[Path]:
    all_made = (make("t", seed, one.suited(TO_MUTATE)) for seed in range(200))
    changed = ((made, events) for made in all_made if (events := mutate(one, made)) is not None)
    some = itertools.islice(changed, number)
    return [write_events(folder / str(n), made.info, events) for n, (made, events) in enumerate(some)]


@pytest.mark.parametrize("one", OF_GROUPS, ids=lambda one: one.name)
def test_a_mutation_is_found_however_the_events_come(one: Mutation, tmp_path: Path) -> None:
    runs = mutants(one, tmp_path, 2)
    assert len(runs) == 2
    for run in runs:
        whole, figures = walk_of(run, 1 << 20)
        assert {row["anomaly"] for row in whole} == one.findings
        for size in (1, 23, 100) if one is OF_GROUPS[-1] else (23, 100):
            assert walk_of(run, size) == (whole, figures)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p: a@0 b@1 | c: gen 1 from 0 | c: got a@0 | d: gen 2 from 0 | d: got a@0 b@1", (3, 2)),
        ("p: a@0 b@1 | c: got a@0 | c: gen 1 from 1 | c: got b@1", (2, 2)),
        ("p: a@0 b@1 | c: from 0 | c: got a@0 b@1", None),
        ("p: a@0 b@1 | c: from 0 in g | c: got a@0 | c: got a@0", (2, 1)),
    ],
)
def test_deliveries_to_a_group_are_counted(
    text: str, expected: tuple[int, int] | None, tmp_path: Path
) -> None:
    case = parse(text, "case")
    figures = walk_of(write_events(tmp_path / "run", case.info, case.events))[1]
    assert figures.get("g") == expected


def test_offsets_are_intervals() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        parts = [random.integers(0, 60, random.integers(0, 30)) for _ in range(random.integers(0, 5))]
        spans = Spans.union(Spans.of(part) for part in parts)
        there = {int(one) for part in parts for one in part}
        assert [bool(one) for one in spans.has(np.arange(-2, 70))] == [n in there for n in range(-2, 70)]
        assert (spans.size, spans.number) == (len(there), sum(map(len, parts)))
        assert np.all(spans.begin[1:] > spans.end[:-1])


def test_a_member_that_reads_on_is_one_interval() -> None:
    spans = Spans.union(Spans.of(np.arange(at, at + 1_000)) for at in range(0, 100_000, 1_000))
    assert (len(spans.begin), spans.size) == (1, 100_000)


def test_every_anomaly_of_groups_has_a_mutation() -> None:
    from wrackline.checkers.checks.registry import checks

    of_groups = {one.name for one in checks() if one.family == Family.GROUPS} - {"wrong-state"}
    assert of_groups == {one.anomaly for one in OF_GROUPS}, "of an application the pairs have the mutations"

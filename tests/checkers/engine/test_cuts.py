"""However a history is cut, by rows or by offsets, the same is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checkers.cases import Case, all_cases
from tests.checkers.local_plan import candidates
from wrackline.checkers.checks.registry import marks
from wrackline.checkers.engine.context import run_of
from wrackline.checkers.inputs.row_groups import splits_of
from wrackline.checkers.inputs.runs import Run, open_run, scanned, scanned_split
from wrackline.checkers.inputs.table import NONE, Ints, Table, pack, unpack
from wrackline.proving.model.knobs import drawn
from wrackline.proving.model.made import make

pytestmark = pytest.mark.slow

WHOLE = 131_072


def load(directory: Path, row_groups: int) -> Run:
    """A run whose splits have so many row groups each (0: one split)."""
    run = open_run(directory)
    if row_groups:
        file = run.files[0]
        every = splits_of(0, file, events=1)
        assert len(every) > 1
        run.splits = every if row_groups == 1 else run.splits
    return scanned(run, [scanned_split(split) for split in run.splits])


def found(runs: list[Run], width: int) -> tuple[list[Counter[str]], int]:
    """Per run how many rows have each mark."""
    rows, again = candidates(runs, width)
    counts = []
    for number in range(len(runs)):
        mine = rows.take(run_of(rows.log) == number)
        counts.append(Counter(marks().counted(mine)))
    return [+one for one in counts], again


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> list[Counter[str]]:
    folder = tmp_path_factory.mktemp("uncut")
    counts, again = found([load(one.write(folder / str(n)), 0) for n, one in enumerate(histories())], WHOLE)
    assert again == 0
    assert sum(counts, Counter()).total() > 50
    return counts


@cache
def histories() -> tuple[Case, ...]:
    """All hand-written ones, and correct ones of the model."""
    made = [make(f"cut {seed}", seed, drawn(seed, operations=60)) for seed in range(6)]
    return (*all_cases(), *(Case(one.info.test_id, one.info, list(one.events), {}) for one in made))


@pytest.mark.parametrize(
    ("row_group", "width"),
    # The third cuts as the second does, twice as often.
    [(None, 1), (6, WHOLE), pytest.param(3, WHOLE, marks=pytest.mark.nightly), (6, 2)],
)
def test_cutting_a_history_into_ranges_does_not_change_the_findings(
    row_group: int | None, width: int, uncut: list[Counter[str]], tmp_path: Path
) -> None:
    runs = [
        load(one.write(tmp_path / str(n), row_group), 1 if row_group and len(one.events) > row_group else 0)
        for n, one in enumerate(histories())
    ]
    counts, again = found(runs, width)
    assert again > 0  # some ranges had to know what was above them, or some steps went over a cut
    for history, one, whole in zip(histories(), counts, uncut, strict=True):
        # A send that may be anywhere, and that offsets are missing, is found once per gap: gaps are what is
        # cut.
        for mark in ("gap", "placeless"):
            assert bool(one.pop(mark, 0)) == bool(whole[mark]), history.info.test_id
        assert one == +Counter({m: n for m, n in whole.items() if m not in ("gap", "placeless")}), (
            history.info.test_id
        )


@dataclass(frozen=True, slots=True)
class Four(Table[Ints]):
    a: Ints
    b: Ints
    c: Ints
    d: Ints


@given(
    st.lists(
        st.lists(
            st.one_of(st.just(NONE), st.integers(-(2**62), 2**62), st.integers(-3, 300)),
            min_size=4,
            max_size=4,
        ),
        min_size=4,
        max_size=4,
    )
)
def test_any_integers_come_back_as_they_were_packed(columns: list[list[int]]) -> None:
    table = Four.of_columns([np.array(column, dtype=np.int64) for column in columns])
    back = unpack(pack(table.columns()), 4, Four)
    assert [column.tolist() for column in back.columns()] == columns

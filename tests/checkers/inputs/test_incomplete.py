"""A history that lacks events is refused, whichever they are: what is found in the rest is no evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.checkers.histories import History
from wrackline.checkers.inputs.runs import AnalysisError, load_run
from wrackline.history.model import RunInfo
from wrackline.history.store.files import open_writer, put_info
from wrackline.history.store.tally import TALLY_KEY

if TYPE_CHECKING:
    pass

Rows = list[dict[str, Any]]


def whole(folder: Path, row_group: int | None = None) -> Path:
    """A run of 100 sends and polls."""
    h = History("run").phase("main").assign(2, 0)
    records = [(offset, (offset + 1) << 4) for offset in range(100)]
    for offset, value in records:
        h.send(1, (value, offset)).poll(2, (offset, value))
    h.phase("drain").drain(*((offset, value, 0) for offset, value in records))
    return h.account().write(folder, row_group)


def lost(f: str, kind: str, every: int) -> Callable[[Rows], Rows]:
    """Each so many of the rows of one kind are gone."""

    def left(rows: Rows) -> Rows:
        gone = [row["index"] for row in rows if (row["f"], row["type"]) == (f, kind)][::every]
        return [row for row in rows if row["index"] not in gone]

    return left


def operations(f: str, count: int) -> Callable[[Rows], Rows]:
    """Ten operations with all that is on record of them."""

    def left(rows: Rows) -> Rows:
        gone = [row["index"] for row in rows if row["f"] == f][10 : 10 + 2 * count]
        return [row for row in rows if row["index"] not in gone]

    return left


LOST: Mapping[str, Callable[[Rows], Rows]] = {
    "3 % of the acknowledgements": lost("send", "ok", 33),
    "30 % of the polls' completions": lost("poll", "ok", 3),
    "invocations of polls": lost("poll", "invoke", 10),
    "ten sends": operations("send", 10),
    "polls": operations("poll", 10),
    "the runner's phases": lost("phase", "info", 1),
    "the final read": lost("drain", "ok", 1),
    "the first rows": lambda rows: rows[5:],
    "the last rows": lambda rows: rows[:-5],
    "one row in the middle": lambda rows: rows[:57] + rows[58:],
    "all rows": lambda _: [],
    "none, and one is there twice": lambda rows: [*rows[:57], rows[56], *rows[57:]],
}


def rewrite(file: Path, change: Callable[[Rows], Rows], *, renumber: bool, row_group: int | None) -> None:
    """As anybody would who knows Parquet: the file says of itself what it said."""
    table = pq.read_table(file)
    rows = change(table.to_pylist())
    if renumber:
        rows = [{**row, "index": index} for index, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), file, row_group_size=row_group)


@pytest.mark.parametrize("row_group", [None, 16], ids=["one row group", "many row groups"])
@pytest.mark.parametrize("renumber", [False, True], ids=["with holes", "renumbered"])
@pytest.mark.parametrize("name", LOST)
def test_a_history_that_lacks_rows_is_refused(
    name: str, renumber: bool, row_group: int | None, tmp_path: Path
) -> None:
    run_dir = whole(tmp_path / "run", row_group)
    assert load_run(run_dir).rows > 400
    rewrite(run_dir / "history.parquet", LOST[name], renumber=renumber, row_group=row_group)
    with pytest.raises(AnalysisError) as refused:
        load_run(run_dir)
    said = str(refused.value)
    twice = "twice" in name and not renumber
    assert ("makes no sense" if twice else "is incomplete") in said
    assert said.startswith(f"{run_dir}/history.parquet: ")
    assert said.endswith("restore it from a copy or run the test again")
    assert "\n" not in said


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    def refusal(change: Callable[[Rows], Rows], *, renumber: bool) -> str:
        run_dir = whole(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        rewrite(run_dir / "history.parquet", change, renumber=renumber, row_group=None)
        with pytest.raises(AnalysisError) as refused:
            load_run(run_dir)
        return str(refused.value)

    assert "event 57 missing" in refusal(LOST["one row in the middle"], renumber=False)
    assert "events 0 to 4 missing" in refusal(LOST["the first rows"], renumber=False)
    assert "90 of 100 rows send invoke, 90 of 100 rows send ok" in refusal(LOST["ten sends"], renumber=True)


def without_tally(file: Path) -> None:
    table = pq.read_table(file)
    metadata = {key: value for key, value in table.schema.metadata.items() if key != TALLY_KEY}
    pq.write_table(table.replace_schema_metadata(metadata), file)


def test_a_history_of_an_earlier_version_is_judged_unless_its_indexes_have_a_hole(tmp_path: Path) -> None:
    file = whole(tmp_path / "run") / "history.parquet"
    without_tally(file)
    assert load_run(tmp_path / "run").tally is None
    rewrite(file, LOST["ten sends"], renumber=False, row_group=None)
    with pytest.raises(AnalysisError, match="is incomplete"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("row_group", [None, 16])
def test_answers_that_the_recorder_never_got_are_missed(row_group: int | None, tmp_path: Path) -> None:
    """Nothing in the file says so but the processes: each does one thing at a time."""
    from wrackline.checkers.analysis import analyze

    run_dir = whole(tmp_path / "run", row_group)
    file = run_dir / "history.parquet"
    info, table = RunInfo.from_json(pq.read_metadata(file).metadata[b"wrackline"]), pq.read_table(file)
    left = lost("poll", "ok", 3)(table.to_pylist())
    rows = [{**row, "index": index} for index, row in enumerate(left)]
    with open_writer(file) as writer:
        writer.write_table(pa.Table.from_pylist(rows, writer.schema), row_group_size=row_group)
        put_info(writer, info)
    assert load_run(run_dir).rows == len(rows)
    with pytest.raises(AnalysisError, match=r"is incomplete \(process 2 invoked .* completion is missing\)"):
        analyze([run_dir])

"""A history that makes no sense is named once, in one line, and the others are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.checkers.histories import History
from wrackline.checkers.engine.executor import LocalExecutor
from wrackline.checkers.inputs.runs import AnalysisError, load_run
from wrackline.harness.cli.main import main
from wrackline.history.model import RunInfo
from wrackline.history.store.files import open_writer, put_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spoil = Callable[[Path], None]
A, B = 160, 176


def good(test_id: str) -> History:
    h = History(test_id).phase("main").send(1, (A, 0)).assign(2, 0).poll(2, (0, A)).end(3, 1)
    return h.phase("drain").drain((0, A, 0)).replicas((0, A, 0))


def rows_of(file: Path) -> tuple[list[dict[str, Any]], RunInfo]:
    table = pq.read_table(file)
    return table.to_pylist(), RunInfo.from_json(pq.read_metadata(file).metadata[b"wrackline"])


def rewrite(change: Callable[[list[dict[str, Any]]], object]) -> Spoil:
    """The same file with other events in it, in the schema of histories."""

    def spoil(file: Path) -> None:
        rows, info = rows_of(file)
        change(rows)
        with open_writer(file) as writer:
            writer.write_table(pa.Table.from_pylist(rows, writer.schema))
            put_info(writer, info)

    return spoil


def with_table(change: Callable[[pa.Table], pa.Table]) -> Spoil:
    """The same file in another schema."""

    def spoil(file: Path) -> None:
        metadata = pq.read_metadata(file).metadata
        table = change(pq.read_table(file)).replace_schema_metadata({b"wrackline": metadata[b"wrackline"]})
        pq.write_table(table, file)

    return spoil


def with_info(info: bytes) -> Spoil:
    return lambda file: pq.write_table(
        pq.read_table(file).replace_schema_metadata({b"wrackline": info}), file
    )


def put(f: str, kind: str, **columns: Any) -> Spoil:
    """The first event of this kind says something else."""

    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if (row["f"], row["type"]) == (f, kind)).update(columns)

    return rewrite(change)


def record(f: str, kind: str, **columns: Any) -> Spoil:
    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if (row["f"], row["type"]) == (f, kind))["records"][0].update(columns)

    return rewrite(change)


def bytes_of(change: Callable[[bytes], bytes]) -> Spoil:
    return lambda file: file.write_bytes(change(file.read_bytes())) and None


def set_column(name: str, kind: pa.DataType) -> Spoil:
    return with_table(
        lambda t: t.set_column(t.schema.get_field_index(name), name, t[name].cast(kind, safe=False))
    )


def without_one(table: pa.Table) -> pa.Table:
    values = [None, *table["index"].to_pylist()[1:]]
    return table.set_column(table.schema.get_field_index("index"), "index", pa.array(values, pa.int64()))


FOOTER: Mapping[str, tuple[Spoil, str]] = {
    "truncated": (bytes_of(lambda b: b[:-100]), "corrupt or truncated"),
    "empty": (bytes_of(lambda _: b""), "corrupt or truncated"),
    "half": (bytes_of(lambda b: b[: len(b) // 2]), "corrupt or truncated"),
    "no parquet": (bytes_of(lambda _: b"{}\n" * 1000), "corrupt or truncated"),
    "a foreign parquet": (lambda file: pq.write_table(pa.table({"x": [1, 2]}), file), "history"),
    "another's metadata": (with_info(b"[]"), "run information"),
    "metadata of half a run": (with_info(b'{"test_id": "x"}'), "run information"),
    "metadata that is no JSON": (with_info(b"{"), "corrupt or truncated"),
    "a missing column": (with_table(lambda t: t.drop_columns(["process"])), "columns missing: process"),
    "no records": (with_table(lambda t: t.drop_columns(["records"])), "columns missing: records"),
    "a wrong type": (set_column("time_ns", pa.string()), "column time_ns is string, not int64"),
    "a float": (set_column("index", pa.float64()), "column index is double, not int64"),
    "a null index": (with_table(without_one), "index is missing in 1 events"),
    "another test": (put("send", "ok", test_id="someone else"), "events of test someone else"),
    "a time before the start": (put("send", "ok", time_ns=-5), "5 ns before the start"),
}
"""What the first look sees: (how a file is spoiled, what is said of it)."""
EVENTS: Mapping[str, tuple[Spoil, str]] = {
    "an index twice": (put("send", "ok", index=1), "event 1 follows event 1"),
    "an index that goes back": (put("end", "ok", index=0), "event 0 follows event"),
    "a completion of nothing": (put("send", "invoke", process=77), "completes what process 1 never invoked"),
    "a completion twice": (
        rewrite(lambda rows: rows.append({**rows[2], "index": len(rows)})),
        "completes what process 1 never invoked",
    ),
    "an unknown type": (put("send", "ok", type="okay"), "type okay"),
    "a negative partition": (record("poll", "ok", partition=-7), "partition -7"),
    "a partition of another world": (put("end", "ok", partition=1 << 30), f"partition {1 << 30}"),
    "an offset that none is": (record("send", "ok", offset=-9), "offset -9"),
    "a value that none is": (record("drain", "ok", value=-1 << 62), "value"),
    "extra that is no JSON": (put("assign", "ok", extra="{"), "corrupt or truncated"),
    "a drain that is no JSON": (put("drain", "ok", extra="nonsense"), "corrupt or truncated"),
    "a phase without a name": (put("phase", "info", extra="{}"), "make no sense"),
    "a drain of nothing": (put("drain", "ok", partition=None), "is of no partition"),
    "a replica of nowhere": (put("replica", "ok", partition=-4), "partition -4"),
}
"""What only the events tell."""


def spoiled(folder: Path, name: str, spoil: Spoil) -> Path:
    directory = good(name).write(folder / name.replace(" ", "-"))
    spoil(directory / "history.parquet")
    return directory


@pytest.mark.parametrize("name", FOOTER)
def test_a_history_that_cannot_be_loaded_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    spoil, says = FOOTER[name]
    directory = spoiled(tmp_path, name, spoil)
    with pytest.raises(AnalysisError) as refused:
        load_run(directory)
    assert says in str(refused.value)
    assert str(directory) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bad_histories_do_not_stop_the_others_from_being_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the command line: exit code 2, one line for each of those that are none, and nothing of a
    stack."""
    every = {**FOOTER, **EVENTS}
    bad = {name: spoiled(tmp_path, name, spoil) for name, (spoil, _) in every.items()}
    whole = [good(f"whole-{n}").write(tmp_path / f"whole-{n}") for n in range(2)]
    directories = [whole[0], *bad.values(), whole[1]]
    with pytest.raises(SystemExit) as ended:
        main(["analyze", *map(str, directories), "--engine", "local"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "Traceback" not in told
    for name, (_, says) in every.items():
        lines = [line for line in told.splitlines() if f"{bad[name]}/" in line or f"{bad[name]}:" in line]
        assert len(lines) == 1, (name, lines)
        assert says in lines[0]
        assert not (bad[name] / "verdict.json").exists()
    for one in whole:
        verdict = orjson.loads((one / "verdict.json").read_bytes())
        assert not [row for row in verdict["anomalies"] if row["count"]]


def test_a_single_bad_history_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = spoiled(tmp_path, "alone", EVENTS["an index twice"][0])
    with pytest.raises(SystemExit) as ended:
        main(["analyze", str(directory)])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.count("makes no sense") == 1, told


def test_a_run_that_becomes_unreadable_does_not_stop_the_others(tmp_path: Path) -> None:
    """A second look at a history that cannot be read is no news (a phantom makes it look at all sends
    again)."""
    from wrackline.checkers.analysis import _Job, _judge

    phantom = History("phantom").send(1, (A, 0)).drain((0, A), (1, B))
    runs = [load_run(good("gone").write(tmp_path / "gone")), load_run(phantom.write(tmp_path / "phantom"))]
    content = Path(runs[0].files[0]).read_bytes()
    Path(runs[0].files[0]).write_bytes(content[:20] + bytes(200) + content[220:])
    gone, found = _judge(LocalExecutor(), runs, _Job("")).values()
    assert "corrupt or truncated" in gone.problem
    assert (found.problem, found.found.total("phantom")) == ("", 1)


def test_an_unexpected_exception_fails_only_the_run_that_raised_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a history makes the analysis raise: by halves it is found out which it is."""
    from wrackline.checkers import analysis

    runs = [load_run(good(f"run-{n}").write(tmp_path / f"run-{n}")) for n in range(5)]
    real = analysis.judge

    def judge(executor: Any, some: Any) -> Any:
        if any(run.info.test_id == "run-3" for run in some):
            raise KeyError("nobody thought of it")
        return real(executor, some)

    monkeypatch.setattr(analysis, "judge", judge)
    told: list[str] = []
    outcomes = analysis._judge(LocalExecutor(), runs, analysis._Job("", told.append))
    problems = {path.name: outcome.problem for path, outcome in outcomes.items() if outcome.problem}
    assert list(problems) == ["run-3"]
    assert "nobody thought of it" in problems["run-3"]
    assert sorted(one.name for one in outcomes) == [f"run-{n}" for n in range(5)]


@pytest.mark.spark
def test_a_worker_that_lacks_a_library_is_no_fault_of_the_history(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wrackline.checkers import analysis
    from wrackline.checkers.engine.spark.executor import SparkExecutor

    def judge(executor: Any, _runs: Any) -> Any:
        def lacking(_batches: Any) -> Any:
            __import__("a_library_that_no_worker_has")

        table = pa.table({"id": [1]})
        list(executor.table(table, 1).mapped(lacking, table.schema).batches())

    monkeypatch.setattr(analysis, "judge", judge)
    run = load_run(good("run").write(tmp_path / "run"))
    with pytest.raises(AnalysisError, match="has no Python module a_library_that_no_worker_has: install"):
        analysis._judge(SparkExecutor(spark), [run], analysis._Job(""))

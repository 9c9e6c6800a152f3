"""The dataset of all nights: its page says what is in it, and whoever asks in SQL is answered."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.sample import copy_sample
from wrackline.checkers.findings import FINDINGS
from wrackline.harness.cli.main import main
from wrackline.harness.dataset import TABLES, write_dataset
from wrackline.harness.records import METRICS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "export-to-sql.md").read_text()
LOST = {
    "anomaly": "lost-write",
    "topic": "log",
    "partition": 0,
    "offset": 7,
    "value": 8,
    "operations": [1, 2],
    "where": "tail",
    "explanation": "it is gone",
}


def _run(folder: Path, *, lost: bool = False, **changed: object) -> None:
    """The sample's verdict and metrics, with a run.json of our own."""
    said = {
        "name": "canary",
        "seed": 7,
        "started_at": "2026-11-20T01:00:00+00:00",
        "system_kind": "wrackline",
    }
    copy_sample(folder, {**said, **changed})
    if lost:
        table = pa.Table.from_pylist([{"test_id": folder.name, **LOST}], FINDINGS)
        pq.write_table(table, folder / "findings.parquet")


def _night(folder: Path, name: str, runs: Mapping[str, bool]) -> Path:
    """A night of these runs: name -> whether a record was lost."""
    for run, lost in runs.items():
        _run(folder / name / "runs" / run, lost=lost, system_version=name)
    lines = [orjson.dumps({"run": run, "task": f"canary~{run}"}) for run in runs]
    (folder / name / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


def _rows(dataset: Path, table: str, night: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        pq.ParquetFile(dataset / table / f"night={night}" / "part-0.parquet").read().to_pylist()
    )
    return found


def test_every_run_of_every_night_is_in_it(tmp_path: Path) -> None:
    results = _night(tmp_path / "results", "20261120", {"r1": True, "r2": False})
    _run(results / "alone")
    dataset = tmp_path / "dataset"
    written = write_dataset([str(results)], str(dataset))
    assert [one.night for one in written] == ["20261120", "alone-2026-11-20"]
    assert written[0].rows | {"faults": 0} == {
        "runs": 2,
        "findings": 1,
        "metrics": 2 * len(METRICS),
        "faults": 0,
    }
    runs = {row["run"]: row for row in _rows(dataset, "runs", "20261120")}
    assert runs["r1"]["task"] == "canary~r1"
    assert runs["r1"]["verdict"] == "violation"
    assert runs["r1"]["cause"] == "inconsistent-offset+lost-write+vanished-read"
    assert str(runs["r1"]["started_at"]) == "2026-11-20 01:00:00+00:00"
    [finding] = _rows(dataset, "findings", "20261120")
    assert finding == {"run": "r1", "meaning": "violation", **LOST}
    assert {row["metric"] for row in _rows(dataset, "metrics", "20261120")} == set(METRICS)
    assert {row["run"] for row in _rows(dataset, "faults", "20261120")} == {"r1", "r2"}


def test_a_night_is_written_anew_and_the_others_stay(tmp_path: Path) -> None:
    results = _night(tmp_path / "results", "n1", {"r1": True, "r2": False})
    dataset = tmp_path / "dataset"
    write_dataset([str(results)], str(dataset))
    before = {file: file.read_bytes() for file in dataset.rglob("*.parquet")}
    write_dataset([str(results)], str(dataset))
    assert {file: file.read_bytes() for file in dataset.rglob("*.parquet")} == before
    shutil.rmtree(results / "n1" / "runs" / "r2")
    later = _night(tmp_path / "later", "n2", {"r3": False})
    write_dataset([str(results), str(later)], str(dataset))
    assert [row["run"] for row in _rows(dataset, "runs", "n1")] == ["r1"]
    assert [row["run"] for row in _rows(dataset, "runs", "n2")] == ["r3"]


def test_what_cannot_be_read_is_told_and_the_rest_is_written(tmp_path: Path) -> None:
    results = _night(tmp_path / "results", "n1", {"r1": True, "r2": True})
    (results / "n1" / "runs" / "r1" / "findings.parquet").write_bytes(b"PAR1 not at all")
    said: list[str] = []
    [written] = write_dataset([str(results)], str(tmp_path / "dataset"), progress=said.append)
    assert written.rows["runs"] == 2
    assert written.rows["findings"] == 1
    assert len(said) == 1
    assert said[0].startswith("r1: its findings cannot be read: ")


def test_the_command_says_what_it_wrote_and_refuses_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = _night(tmp_path / "results", "n1", {"r1": True})
    for arguments, code, said in (
        ([tmp_path / "dataset", results], 0, "n1: 1 runs, 1 findings, 12 metrics, "),
        ([tmp_path / "dataset", tmp_path / "nowhere"], 2, "nowhere: no such folder"),
        ([tmp_path / "dataset", tmp_path / "dataset"], 2, "no run below"),
        (["s5://bucket/dataset", results], 2, "wrackline[cluster]"),
        (["hdfs://127.0.0.1:7/dataset", results], 2, "nobody answers there"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["dataset", *map(str, arguments)])
        out = capsys.readouterr()
        assert ended.value.code == code, out
        assert said in out.out + out.err
        assert len((out.out + out.err).splitlines()) == 1


def test_the_page_has_the_columns_that_are_written() -> None:
    for name, table in TABLES.items():
        [section] = re.findall(rf"^### {name}\n(.*?)^##", PAGE, re.MULTILINE | re.DOTALL)
        assert re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE) == [
            (
                field.name,
                f"{field.type}{', *null*' if field.nullable else ''}",
                field.metadata[b"comment"].decode(),
            )
            for field in table.schema
        ]


def _queries(engine: str, dataset: Path) -> list[list[str]]:
    """The page's blocks for one engine, each a list of statements, of our dataset."""
    blocks = re.findall(rf"```sql\n-- {engine}\n(.*?)```", PAGE, re.DOTALL)
    return [
        [one for one in re.split(r";\s*", block.replace("nights.dataset", str(dataset))) if one]
        for block in blocks
    ]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights whose names are numbers: a reader must not take them for one."""
    root = tmp_path_factory.mktemp("dataset")
    _night(root / "results", "20261120", {"r1": True, "r2": False})
    _night(root / "results", "20261121", {"r3": True})
    write_dataset([str(root / "results")], str(root / "dataset"))
    return root / "dataset"


def test_duckdb_answers_the_page_s_questions(dataset: Path) -> None:
    answers = []
    for statements in _queries("duckdb", dataset):
        with duckdb.connect() as connection:
            for statement in statements:
                answer = connection.execute(statement).fetchall()
            answers.append(answer)
    by_system, incidents = answers
    assert by_system == [("wrackline", "20261120", 2, 2), ("wrackline", "20261121", 1, 1)]
    assert [(row[0], row[-3], row[-2], row[-1]) for row in incidents] == [
        ("inconsistent-offset+lost-write+vanished-read", "20261120", "20261120", 2),
        ("inconsistent-offset+lost-write+vanished-read", "20261121", "20261121", 1),
    ]


@pytest.mark.spark
def test_spark_answers_the_page_s_questions(dataset: Path, spark: SparkSession) -> None:
    answers = []
    for statements in _queries("spark", dataset):
        for statement in statements:
            answer = spark.sql(statement).collect()
        answers.append([tuple(row) for row in answer])
    lost, latencies = answers
    assert {row[1:] for row in lost} == {(3, 2)}
    assert [row[:2] for row in latencies] == [("20261120", "wrackline"), ("20261121", "wrackline")]
    assert all(row[2] > 0 for row in latencies)

"""A verdict that was changed since the judge wrote it, or whose run was, is shown as a verdict by nobody."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest
from upath import UPath

from tests.harness.cli.test_main import call
from tests.harness.report.synthetic_run import write_run
from wrackline.checkers.verdict.seal import SEAL, UNSEALED, sealed
from wrackline.harness.index.collect import Kept, gather
from wrackline.harness.records import State, record
from wrackline.harness.report import write_report
from wrackline.harness.run.judge import read_verdict


def with_json(name: str, **changes: object) -> Callable[[Path], object]:
    def edit(run_dir: Path) -> None:
        file = run_dir / name
        file.write_bytes(orjson.dumps({**orjson.loads(file.read_bytes()), **changes}))

    return edit


def without_an_anomaly(run_dir: Path) -> None:
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    verdict["anomalies"].pop()
    (run_dir / "verdict.json").write_bytes(orjson.dumps(verdict))


def with_another_history(run_dir: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(run_dir / "history.parquet")
    pq.write_table(table.slice(0, len(table) - 1), run_dir / "history.parquet")


EDITS: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "the verdict": (with_json("verdict.json", verdict="pass", exit_code=0), "verdict.json"),
    "the headline": (with_json("verdict.json", headline="all is well"), "verdict.json"),
    "the contract": (with_json("verdict.json", contract={"name": "acks-1"}), "verdict.json"),
    "an anomaly": (without_an_anomaly, "verdict.json"),
    "the seal": (with_json("verdict.json", seal="none"), "verdict.json"),
    "run.json": (with_json("run.json", acks="1"), "run.json"),
    "the specification": (
        lambda run_dir: (run_dir / "spec.yaml").write_text("name: another\nfleet: {kind: netns}\n"),
        "spec.yaml",
    ),
    "the history": (with_another_history, "history.parquet"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = write_run(tmp_path_factory.mktemp("results") / "20260101T000000Z-run-0001")
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    assert verdict["verdict"] == "violation"
    (run_dir / "verdict.json").write_bytes(orjson.dumps(sealed(run_dir, verdict)))
    return run_dir


@pytest.fixture
def run_dir(judged: Path, tmp_path: Path) -> Path:
    return shutil.copytree(judged, tmp_path / "results" / judged.name)


def test_a_run_as_the_judge_left_it_is_shown(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = record(run_dir)
    assert (one.verdict, one.sealed, one.trouble) == ("violation", True, "")
    assert read_verdict(run_dir) is not None
    code, told, _ = call(capsys, "runs", "--results", str(run_dir.parent))
    assert code == 0
    assert "violation" in told
    assert "not sealed" not in told
    assert call(capsys, "report", str(run_dir))[0] == 0
    assert call(capsys, "explain", str(run_dir))[0] == 0


@pytest.mark.parametrize("what", EDITS)
def test_a_run_that_was_changed_has_no_verdict_anywhere(
    what: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, file = EDITS[what]
    edit(run_dir)
    said = f"{file} was changed after the run had been judged"
    one = record(run_dir)
    assert (one.verdict, one.state, one.headline, one.incidents) == (None, State.DAMAGED, "", ())
    assert said in one.trouble
    assert f"`wrackline analyze {run_dir.name}` judges it again" in one.trouble
    assert read_verdict(run_dir) is None
    code, told, _ = call(capsys, "runs", "--results", str(run_dir.parent))
    assert code == 0
    assert said in told
    assert " pass " not in told
    assert " violation " not in told
    for command in ("report", "explain"):
        code, told, error = call(capsys, command, str(run_dir))
        assert (code, told) == (2, "")
        assert said in error
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize("what", EDITS)
def test_its_report_and_its_junit_say_why(what: str, run_dir: Path) -> None:
    """Where they are written nevertheless."""
    edit, file = EDITS[what]
    edit(run_dir)
    page = write_report(run_dir).read_text()
    assert f"{file} was changed after the run had been judged" in page
    assert "all is well" not in page
    errors = [*ElementTree.parse(run_dir / "junit.xml").getroot().iter("error")]
    assert len(errors) == 1
    assert f"{file} was changed after" in (errors[0].text or "")


def test_the_index_that_was_made_sees_a_later_edit(run_dir: Path) -> None:
    """Also of a file that has no part in the site itself."""
    kept = Kept()
    results = UPath(run_dir.parent)
    assert [entry.record.verdict for entry in gather(results, kept, histories=False)] == ["violation"]
    (run_dir / "spec.yaml").write_text("name: another, and longer than it was\n" * 100)
    assert [entry.record.verdict for entry in gather(results, kept, histories=False)] == [None]


def test_what_an_earlier_version_judged_is_shown_as_that(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    del verdict[SEAL]
    (run_dir / "verdict.json").write_bytes(orjson.dumps(verdict))
    one = record(run_dir)
    assert (one.verdict, one.sealed, one.trouble) == ("violation", False, "")
    code, told, _ = call(capsys, "runs", "--results", str(run_dir.parent))
    assert code == 0
    assert "violation" in told
    assert UNSEALED in told
    assert UNSEALED in write_report(run_dir).read_text()


def test_what_is_gone_was_not_edited(run_dir: Path) -> None:
    """Pruned runs have lost files, and runs elsewhere may never have had them."""
    (run_dir / "spec.yaml").unlink()
    (run_dir / "history.parquet").unlink()
    assert record(run_dir).verdict == "violation"

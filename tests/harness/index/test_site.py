"""The site as files: what is written, what is written again, and what stands on bad ground."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.harness.index.nights import night
from wrackline.harness.cli.main import main
from wrackline.harness.cli.verdicts import site as command
from wrackline.harness.index import collect as gathering
from wrackline.harness.index.site import Reader


@pytest.fixture(autouse=True)
def no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who needs the reader of histories tests it in test_reader.py: it comes from a registry."""
    monkeypatch.setattr(command, "_reader", lambda: Reader("", "left out here"))


def index(*arguments: object) -> Result:
    return CliRunner().invoke(command.index_command, [str(one) for one in arguments])


def test_the_site_is_below_the_results_and_links_to_their_reports(tmp_path: Path) -> None:
    folder = night(tmp_path, 0, [{}])
    said = index("--results", tmp_path)
    assert said.exit_code == 0, said.output
    assert "1 runs" in said.output
    [page] = (tmp_path / "site/run").glob("*.html")
    [run] = (folder / "runs").iterdir()
    link = f"../../nights/{folder.name}/runs/{run.name}/report.html"
    assert f'href="{link}"' in page.read_text()
    assert (page.parent / link).resolve() == (run / "report.html").resolve()


def test_a_site_elsewhere_links_back_by_a_path_or_an_address(tmp_path: Path) -> None:
    night(tmp_path / "results", 0, [{}])
    index("--results", tmp_path / "results", "--out", tmp_path / "www")
    [page] = (tmp_path / "www/run").glob("*.html")
    assert 'href="../../results/nights/' in page.read_text()
    index("--results", tmp_path / "results", "--out", tmp_path / "www", "--links", "https://ci.example/r")
    assert 'href="https://ci.example/r/nights/' in page.read_text()


def test_results_in_object_storage_give_the_same_site(tmp_path: Path) -> None:
    """fsspec's own storage in memory is read as any other address is."""
    from upath import UPath

    night(tmp_path, 0, [{}, {"name": "other", "verdict": "violation", "anomalies": ("lost-write",)}])
    there = UPath("memory://ci/results")
    for file in tmp_path.rglob("*"):
        if file.is_file():
            (there / str(file.relative_to(tmp_path))).parent.mkdir(parents=True, exist_ok=True)
            (there / str(file.relative_to(tmp_path))).write_bytes(file.read_bytes())
    said = index("--results", "memory://ci/results", "--out", tmp_path / "www", "--links", "https://x")
    assert said.exit_code == 0, said.output
    assert "2 runs" in said.output
    assert "lost-write" in (tmp_path / "www/incidents.html").read_text()
    assert 'href="https://x/nights/' in next((tmp_path / "www/run").glob("*.html")).read_text()
    refused = index("--results", "memory://ci/results")
    assert refused.exit_code == 2
    assert "--out names a folder" in refused.output


def test_what_has_not_changed_is_not_written_or_read_again(
    ten_nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Path(shutil.copytree(ten_nights, tmp_path / "results"))
    assert " 0 pages written" not in index("--results", results).output
    before = {path: path.stat().st_mtime_ns for path in (results / "site/run").iterdir()}
    monkeypatch.setattr(gathering, "latency", lambda folder: pytest.fail(f"{folder} was read again"))
    assert " 0 pages written" in index("--results", results).output
    night(results, 20, [{"name": "new-suite"}])
    assert index("--results", results).exit_code == 0
    after = {path: path.stat().st_mtime_ns for path in (results / "site/run").iterdir()}
    assert len(after) == len(before) + 1
    assert {path: after[path] for path in before} == before


def test_a_history_that_was_changed_is_read_again(ten_nights: Path, tmp_path: Path) -> None:
    results = Path(shutil.copytree(ten_nights, tmp_path / "results"))
    index("--results", results)
    [history] = results.glob("*/history.parquet")
    page = results / "site/run" / f"{history.parent.name}.html"
    assert 'id="latency"' in page.read_text()
    history.write_bytes(b"no Parquet any more")
    index("--results", results)
    assert 'id="latency"' not in page.read_text()


def test_pages_of_runs_that_are_gone_go_too(tmp_path: Path) -> None:
    folder = night(tmp_path, 0, [{}, {"seed": 8}])
    index("--results", tmp_path)
    shutil.rmtree(sorted((folder / "runs").iterdir())[0])
    index("--results", tmp_path)
    assert len(list((tmp_path / "site/run").iterdir())) == 1


def test_bad_places_are_one_line_and_make_nothing(tmp_path: Path) -> None:
    said = index("--results", tmp_path / "nowhere")
    assert said.exit_code == 2
    assert "no such folder" in said.output
    assert not (tmp_path / "nowhere").exists()
    said = index("--results", tmp_path)
    assert said.exit_code == 2
    assert "no run in it" in said.output
    assert not (tmp_path / "site").exists()
    said = index("--results", "nosuch://bucket/x", "--out", tmp_path / "www")
    assert said.exit_code == 2
    assert "nosuch" in said.output


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    night(tmp_path / "results", 0, [{}])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/index.html").write_text("mine")
    said = index("--results", tmp_path / "results", "--out", tmp_path / "mine")
    assert said.exit_code == 2
    assert "no site of ours" in said.output
    assert (tmp_path / "mine/index.html").read_text() == "mine"


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"[]",
        b'{"verdict": "pass", "anomalies": 7}',
        b'{"verdict": "pass", "anomalies": [{"count": 3}]}',
        b'{"verdict": "pass", "faults": [{"begin_ns": "x"}], "counts": []}',
        b'{"verdict": 5}',
    ],
)
def test_a_damaged_verdict_is_shown_and_stops_nobody(tmp_path: Path, damage: bytes) -> None:
    folder = night(tmp_path, 0, [{}, {"seed": 8}])
    [bad, _] = sorted((folder / "runs").iterdir())
    (bad / "verdict.json").write_bytes(damage)
    said = index("--results", tmp_path)
    assert said.exit_code == 0, said.output
    assert "2 runs" in said.output
    page = (tmp_path / "site/index.html").read_text()
    assert "verdict.json" in page
    assert "✓" in page


def test_other_files_that_are_damaged_stop_nobody(tmp_path: Path) -> None:
    folder = night(tmp_path, 0, [{"seed": seed} for seed in range(5)])
    runs = sorted((folder / "runs").iterdir())
    (runs[0] / "metrics.json").write_bytes(b'{"latency": 7, "phases": [{"end_ns": "x"}], "load": [1]}')
    (runs[1] / "run.json").write_bytes(
        b'{"plan": 3, "seed": [], "defects": 5, "expected": 7, "started_at": 9}'
    )
    (runs[2] / "spec.yaml").write_bytes(b"{")
    (runs[3] / "history.parquet").write_bytes(b"PAR1")
    (folder / "journal.jsonl").write_bytes(b'[1]\n"x"\n{"run": 1, "task": 2}\n{"run')
    said = index("--results", tmp_path)
    assert said.exit_code == 0, said.output
    assert "5 runs" in said.output


def test_text_of_others_is_no_markup(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    folder = night(tmp_path, 0, [{"name": bad.replace("/", "-"), "version": bad, "guided": bad}])
    [run] = (folder / "runs").iterdir()
    (run / "verdict.json").write_text(
        (run / "verdict.json").read_text().replace("pass of", "</script>" + bad)
    )
    assert index("--results", tmp_path).exit_code == 0
    for page in (tmp_path / "site").rglob("*.html"):
        assert bad not in page.read_text(), page


def test_what_cannot_be_written_is_one_line_and_leaves_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night(tmp_path, 0, [{}])
    index("--results", tmp_path)
    before = (tmp_path / "site/suites.html").read_bytes()
    shutil.rmtree(tmp_path / "site/run")
    (tmp_path / "site/run").write_text("a file where a folder has to be")
    with pytest.raises(SystemExit) as ended:
        main(["index", "--results", str(tmp_path)])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"wrackline: {tmp_path / 'site/run'}: ")
    assert (tmp_path / "site/suites.html").read_bytes() == before


def test_a_known_incident_is_marked_and_counted_apart(tmp_path: Path) -> None:
    night(tmp_path, 0, [{"verdict": "violation", "anomalies": ("lost-write",)}])
    index("--results", tmp_path)
    page = tmp_path / "site" / "index.html"
    [name] = set(re.findall(r'id="(i-[0-9a-f]{10})"', page.read_text()))
    assert "worked on at" not in page.read_text()
    known = tmp_path / "known.yaml"
    known.write_text(f"{name}: https://issues.example/K-1\n")
    assert index("--results", tmp_path).exit_code == 0
    assert '<a href="https://issues.example/K-1">' in page.read_text()
    assert "0 new in the latest night; 1 known" in page.read_text()
    known.write_text(f"{name}: javascript:alert(1)\n")
    index("--results", tmp_path)
    assert 'href="javascript' not in page.read_text()
    known.write_text("- what?\n")
    wrong = index("--results", tmp_path)
    assert wrong.exit_code == 2
    assert "known.yaml: is no list of lines such as i-0a1b2c3d4e: LINK" in wrong.output

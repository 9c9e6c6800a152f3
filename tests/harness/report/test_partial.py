"""The report of a run that lacks something says so and shows the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.report import synthetic_run
from tests.harness.report.test_html import page
from wrackline.checkers.explain.step import explain
from wrackline.harness.report import write_report
from wrackline.harness.report.model import NOT_JUDGED, build

BREAKABLE = ["verdict.json", "metrics.json", "explanations.json", "run.json", "history.parquet"]
BROKEN = [(name, None) for name in (*BREAKABLE, "plan.json", "spec.yaml")] + [
    (name, b"\x00\xff{") for name in BREAKABLE
]


@pytest.mark.parametrize(("name", "content"), BROKEN)
def test_any_one_file_may_be_missing_or_broken(own_run: Path, name: str, content: bytes | None) -> None:
    (own_run / name).unlink()
    if content is not None:
        (own_run / name).write_bytes(content)
    write_report(own_run)
    read = page(own_run)
    assert read.problems == []
    assert "Missing from this report" in read.text
    assert name.removesuffix(".parquet") in read.text


def test_a_truncated_history_is_named_and_the_findings_keep_their_sentences(own_run: Path) -> None:
    history = own_run / "history.parquet"
    history.write_bytes(history.read_bytes()[: history.stat().st_size // 2])
    explain(own_run)
    write_report(own_run)
    text = page(own_run).text
    assert "history.parquet" in text
    assert "cannot be shown" in text
    assert "was acknowledged at offset" in text
    assert "The operations that prove it" not in text


def test_explanations_outlive_the_history(own_run: Path) -> None:
    """They are data of the judge's: who prunes a history keeps what was proved by it."""
    (own_run / "history.parquet").unlink()
    write_report(own_run)
    assert "The operations that prove it" in page(own_run).text


def test_explanations_of_another_version_are_named(own_run: Path) -> None:
    (own_run / "explanations.json").write_text('{"version": 0, "groups": []}')
    write_report(own_run)
    assert "its version is 0" in page(own_run).text


def test_findings_that_cannot_be_read_are_named(own_run: Path) -> None:
    (own_run / "findings.parquet").write_bytes(b"PAR1 not at all")
    explain(own_run)
    write_report(own_run)
    assert "findings.parquet not readable" in page(own_run).text


def test_an_unjudged_run_shows_its_faults_and_rates_from_the_history(own_run: Path) -> None:
    for name in ("verdict.json", "metrics.json", "findings.parquet", "explanations.json"):
        (own_run / name).unlink()
    report = build(own_run)
    assert report.verdict == NOT_JUDGED
    assert "wrackline analyze" in report.subline
    assert [row.fault.id for row in report.faults] == ["f1", "f2", "f3"]
    assert [row.fault.proved for row in report.faults] == [True, False, True]
    assert report.faults[2].fault.lost_bytes == 57_440
    assert report.chart is not None
    assert "send per second" in report.chart


def test_an_infrastructure_verdict_is_a_report_too(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "run.json").write_bytes(synthetic_run.INFO.to_json())
    verdict = {"test_id": "x", "name": "x", "verdict": "infrastructure", "exit_code": 4,
               "headline": "n2 could not be reached over "
                   "SSH.", "reasons": ["n2: connection "
                   "refused"], "contract": None,
               "anomalies": None, "conditions": [], "faults": [], "counts": {}, "engine": None}  # fmt: skip
    (run_dir / "verdict.json").write_text(json.dumps(verdict))
    (run_dir / "infrastructure.json").write_text('{"error": "deployment stopped at n2"}')
    write_report(run_dir)
    read = page(run_dir)
    assert read.problems == []
    assert "n2: connection refused" in read.text
    assert "failed on our side: deployment stopped at n2" in read.text
    assert "Sends by error Not counted." in read.text.replace("  ", " ")
    assert "No checker has run." in read.text
    assert "No fault is recorded" in read.text


RECORD_AND_DIE = """
import os, sys
from pathlib import Path
from tests.harness.report import synthetic_run
from wrackline.history import Recorder
from wrackline.history.model import Event, Record, Type
recorder = Recorder(Path(sys.argv[1]), synthetic_run.INFO)
for n in range(300):
    record = Record(0, -1, n << 4)
    recorder.record(Event(process=0, type=Type.INVOKE, f="send", topic="log", partition=0, records=(record,)))
    if n < 299:
        recorder.record(Event(process=0, type=Type.OK, f="send", topic="log", partition=0, latency_ns=1000,
                              records=(record._replace(offset=n),)))
os._exit(9)
"""


def test_a_killed_run_is_reported_from_its_write_ahead_file(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    died = subprocess.run(
        [sys.executable, "-c", RECORD_AND_DIE, str(run_dir)],
        cwd=Path(__file__).parents[3],
        timeout=180,
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == 9, died.stderr
    write_report(run_dir)
    text = page(run_dir).text
    assert NOT_JUDGED in text
    assert "verdict.json missing" in text
    assert "Noted during the run 1 note the recording process died; 599 events were recovered" in text
    assert "send per second" in text


def test_odd_types_in_the_verdict_do_not_stop_the_report(own_run: Path) -> None:
    odd = {"verdict": "pass", "anomalies": [3, {"anomaly": "phantom", "count": None}], "conditions": "none",
           "faults": [{"id": "f1", "targets": "n1", "lost": [1], "begin_ns": "soon"}], "counts": [],
           "contract": "acks"}  # fmt: skip
    (own_run / "verdict.json").write_text(json.dumps(odd))
    (own_run / "metrics.json").write_text(
        '{"seconds": [{"t": -4}, {"t": 2, "f": null, "ok": true}], "latency": 7}'
    )
    write_report(own_run)
    assert page(own_run).problems == []

"""What GitHub and GitLab are told of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.notifications.summaries import NIGHT, PASSED, expected, violation
from wrackline.checkers.findings import Verdict
from wrackline.harness.notifications import codehost
from wrackline.harness.notifications.run_summary import RunSummary


def test_annotations_begin_with_the_worst_and_say_nothing_of_what_passed() -> None:
    assert list(codehost.workflow_commands(NIGHT)) == [
        "::error title=violation%3A canary::7 acknowledged records are gone; again in 3 of 3",
        "::warning file=suites/demo.yaml,line=1,title=inconclusive%3A demo.s2::fault f2 was not proved",
        "::error title=infrastructure%3A demo.s3::no host could be made",
    ]


def test_what_github_takes_for_its_own_is_escaped() -> None:
    odd = violation("a,b", headline="100%\n::error::not ours", file="x, y:z.yaml")
    assert list(codehost.workflow_commands([odd])) == [
        "::error file=x%2C y%3Az.yaml,line=1,title=violation%3A a%2Cb::"
        "100%25%0A::error::not ours; again in 3 of 3"
    ]


def told(monkeypatch: pytest.MonkeyPatch, runs: list[RunSummary], **environment: str) -> list[str]:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    said: list[str] = []
    codehost.tell("nightly", runs, said.append)
    return said


def test_in_a_job_of_github_the_summary_is_added_to_what_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n")
    said = told(monkeypatch, NIGHT, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert len(said) == 3
    assert summary.read_text().startswith(
        "# before\n## nightly: 1 violation in 4 of 5 runs\n\n| run | verdict | |\n|---|---|---|\n"
        "| canary | **violation** (new) | 7 acknowledged records are gone; again in 3 of 3 |\n"
    )
    assert "| demo.s4 | not made |  |" in summary.read_text()


def test_elsewhere_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, NIGHT) == []


def test_a_summary_that_cannot_be_written_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [line] = told(monkeypatch, NIGHT, GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "summary.md"))
    assert line.endswith("summary.md: the summary could not be written: No such file or directory")


def test_a_summary_stays_within_what_github_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    many = [violation(f"run-{number}", headline="x" * 500) for number in range(3000)]
    told(monkeypatch, many, GITHUB_STEP_SUMMARY=str(summary))
    assert summary.stat().st_size == codehost.SUMMARY_BYTES


def test_code_quality_has_what_gitlab_asks_for() -> None:
    issues = json.loads(codehost.code_quality(NIGHT))
    assert [issue["severity"] for issue in issues] == ["blocker", "minor", "major"]
    assert issues[0]["check_name"] == "lost-write"
    assert issues[1]["location"] == {"path": "suites/demo.yaml", "lines": {"begin": 1}}
    assert all(len(issue["fingerprint"]) == 64 and issue["description"] for issue in issues)
    assert json.loads(codehost.code_quality([PASSED])) == []


def test_a_fingerprint_is_that_of_a_run_and_its_anomalies() -> None:
    def fingerprint(summary: RunSummary) -> str:
        [issue] = json.loads(codehost.code_quality([summary]))
        return str(issue["fingerprint"])

    first = fingerprint(violation("canary"))
    assert fingerprint(violation("canary", headline="9 acknowledged records are gone", new=False)) == first
    assert fingerprint(violation("canary", "duplicate")) != first
    assert fingerprint(violation("canary.s2")) != first


def test_a_file_is_named_as_it_lies_in_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    (tmp_path / "suites").mkdir()
    monkeypatch.chdir(tmp_path / "suites")
    assert codehost.in_repository("demo.yaml") == "suites/demo.yaml"
    assert codehost.in_repository("/usr/share/demo.yaml") == ""


def test_a_violation_that_had_to_come_is_no_news_to_anybody() -> None:
    canary = expected("canary")
    assert not canary.bad
    assert not canary.violates
    assert list(codehost.workflow_commands([canary])) == []
    assert codehost.code_quality([canary]) == b"[]\n"
    told = codehost.markdown("nightly", [canary, violation("real")])
    assert told.startswith("## nightly: 1 violation in 2 of 2 runs")
    assert "| canary | as expected: violation |" in told


def test_a_pass_where_a_violation_must_come_fails_the_build() -> None:
    canary = expected("canary")
    assert canary.record is not None
    blind = replace(canary, verdict=Verdict.PASS, record=replace(canary.record, verdict=Verdict.PASS))
    assert blind.bad
    [line] = codehost.workflow_commands([blind])
    assert line.startswith("::error ")
    [issue] = json.loads(codehost.code_quality([blind]))
    assert issue["severity"] == "critical"

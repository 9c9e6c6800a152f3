"""Campaigns in virtual time as cases of a night: verdict, exit code, corpus, page, going on after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest
from click.testing import CliRunner, Result

from wrackline.checkers.findings import Verdict
from wrackline.harness.cli.runs.suite import suite_command
from wrackline.harness.nights.journal import Did, read
from wrackline.harness.records import JOURNAL, Record, records
from wrackline.harness.report.read.files import ReportError
from wrackline.harness.report.render import write_report
from wrackline.simulator.campaigns.ledger import CAMPAIGNS

pytestmark = [pytest.mark.real, pytest.mark.slow]
FIRST = 252_200_000
"""From here on the bug shows in most seeds."""
BUG = {"swarm": "kip966", "defects": ["shrink_before_commit"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a corpus whose next seed is ``FIRST``."""
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / ".wrack" / "corpus"
    corpus.mkdir(parents=True)
    entry = {"at": "", "swarm": "", "first": 0, "after": FIRST, "seeds": 0, "violations": 0, "met": 0}
    (corpus / CAMPAIGNS).write_text(json.dumps({**entry, "lacking": []}) + "\n")
    return tmp_path


def suite(*campaigns: dict[str, Any]) -> Result:
    file = Path("night.yaml")
    file.write_text(
        json.dumps({"name": "n", "keep_free_mb": 0, "runs": [{"simulate": one} for one in campaigns]})
    )
    return CliRunner().invoke(suite_command, [str(file), "--results", "results"], standalone_mode=False)


def outcome(run: Record) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads((run.folder / "campaign.json").read_bytes())
    return content


def test_a_violation_fails_the_night_and_is_run_first_in_the_next(folder: Path) -> None:
    done = suite({"name": "clean", "swarm": "kip966", "seeds": 1}, {**BUG, "seeds": 3})
    assert done.return_value == 1, done.output
    [night] = (folder / "results" / "nights").iterdir()
    results = read(night).results
    assert {name: one.verdict for name, one in results.items()} == {
        "clean": Verdict.PASS,
        "swarm-kip966": Verdict.VIOLATION,
    }, "nothing follows from the violation: it has been made smaller"
    runs = {run.name: run for run in records("results")}
    assert (runs["clean"].verdict, runs["clean"].seed, runs["clean"].sealed) == (Verdict.PASS, FIRST, True)
    assert (runs["clean"].night, runs["clean"].fleet) == (night.name, "simulated")
    bug = runs["swarm-kip966"]
    findings = outcome(bug)["findings"]
    assert findings
    assert bug.violations == tuple(sorted({one["oracle"] for one in findings}))
    assert bug.seed == FIRST + 1
    page = (bug.folder / "report.html").read_text()
    for one in findings:
        assert one["smallest"]["command"] in page
        assert len(one["smallest"]["faults"]) <= one["smallest"]["faults_before"]
    suites = {
        one.get("name"): one.get("failures") for one in ElementTree.parse(night / "junit.xml").getroot()
    }
    assert suites == {"clean": "0", "swarm-kip966": str(len(findings))}
    kept = (folder / ".wrack" / "corpus" / "runs").read_text().splitlines()[1:]
    assert [line.partition(" # ")[0] for line in kept] == [one["command"] for one in findings]
    with pytest.raises(ReportError, match="a campaign in virtual time"):
        write_report(Path(str(bug.folder)))

    again = suite({"swarm": "kip966", "seeds": 1})
    assert again.return_value == 1, again.output
    newest = records("results")[-1]
    assert newest.seed == FIRST + 4
    assert f"{len(kept)} kept run" in newest.headline
    assert all(one["kept"] for one in outcome(newest)["findings"])
    [log] = (folder / "results" / "nights" / newest.night / "logs").glob("swarm-kip966.log")
    assert "of the golden tables met" in log.read_text()


def test_an_interrupted_campaign_has_a_page_and_goes_on_with_its_seeds(folder: Path) -> None:
    campaigns = ({"name": "first", "seeds": 1}, {"name": "long", "seeds": 25, "jobs": 2})

    def interrupt() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            files = list(folder.glob("results/nights/*/runs/*-long-*/seeds.jsonl"))
            if files and files[0].read_text().count("\n") > 3:
                break
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = suite(*campaigns)
    thread.join()
    assert done.return_value == 130, done.output
    before = {run.name: run for run in records("results")}
    assert before["first"].verdict is Verdict.PASS
    assert before["long"].verdict is Verdict.INCONCLUSIVE
    assert before["long"].reasons == ("interrupted; the same command goes on",)
    assert "interrupted" in (before["long"].folder / "report.html").read_text()
    assert 0 < outcome(before["long"])["totals"]["seeds"] < 25

    done = suite(*campaigns)
    assert done.return_value == 0, done.output
    after = {run.name: run for run in records("results")}
    assert after["long"].folder == before["long"].folder
    assert (after["long"].verdict, after["long"].seed) == (Verdict.PASS, before["long"].seed)
    assert outcome(after["long"])["totals"]["seeds"] == 25
    [night] = (folder / "results" / "nights").iterdir()
    lines = [orjson.loads(line) for line in (night / JOURNAL).read_bytes().splitlines()]
    assert Counter(line["task"] for line in lines if line["did"] == Did.BEGAN) == {"first": 1, "long": 2}

"""Campaigns: seeds that go on, kept runs first, an end by time or violations, what is refused, the page."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wrackline.simulator.campaigns.campaign import (
    MOST_VIOLATIONS,
    Campaign,
    Outcome,
    Plan,
    Smallest,
)
from wrackline.simulator.campaigns.ledger import CAMPAIGNS, Entry, Ledger
from wrackline.simulator.campaigns.page import page
from wrackline.simulator.cli import parse_setup, simulate
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.search.corpus import CorpusError
from wrackline.simulator.search.many_seeds import Row, run_one

SHORT = "wrackline simulate --seed {} --seconds 0.5 --no-drills"
ENTRY = Entry("2026-11-23T02:00:00Z", "kip966", 100, 140, 40, 0, 1, ("isr.may_join 3",))


def carried_out(folder: Path, **settings: Any) -> Outcome:
    plan = Plan(**{"swarm": "kip966", "budget_s": 600.0, "corpus": str(folder / "corpus"), **settings})
    return Campaign(plan, folder / "campaign", parse_setup, print).carry_out()


def fails_always(setup: Setup, **_: Any) -> Row:
    row = run_one(replace(setup, seconds=0.1, drills=False, kinds=()))
    return replace(row, oracle="lost-write", text="one <is> missing", command=setup.command())


def test_seeds_go_on_from_one_campaign_to_the_next(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, parse_setup)
    assert ledger.first_seed(date(2026, 11, 24)) - ledger.first_seed(date(2026, 11, 23)) == 100_000
    ledger.add(ENTRY)
    ledger.add(replace(ENTRY, first=140, after=150, swarm="any"))
    assert ledger.first_seed(date(2026, 11, 24)) == 150
    assert ledger.before("kip966", 150) == [replace(ENTRY, lacking=["isr.may_join 3"])]  # type: ignore[arg-type]
    assert ledger.before("kip966", 100) == []


def test_a_campaign_ends_when_its_time_is_spent_and_says_what_did_not_fit(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "runs").write_text("".join(f"{SHORT.format(seed)}\n" for seed in (1, 2)))
    result = carried_out(tmp_path, budget_s=0.0)
    assert (result.totals.kept, result.new_seeds, result.verdict) == (1, 0, "inconclusive")
    assert result.reasons[:2] == ["1 of 2 kept runs fit into its time", "no new seed fitted into its time"]
    assert result.reasons[0] in page(result)


def test_the_same_bug_over_and_over_ends_a_campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = Smallest("wrackline simulate --seed 1", 9, 4, 1.0, ("at 1.000 s: f4 power n2 for 800 ms",), "n1")
    monkeypatch.setattr("wrackline.simulator.search.many_seeds.run_one", fails_always)
    monkeypatch.setattr("wrackline.simulator.campaigns.campaign.smallest", lambda _: small)
    result = carried_out(tmp_path)
    assert (result.new_seeds, len(result.findings), result.verdict) == (
        MOST_VIOLATIONS,
        MOST_VIOLATIONS,
        "violation",
    )
    assert not any(one.kept for one in result.findings)
    html = page(result)
    assert "one &lt;is&gt; missing" in html
    assert "1 fault of 9" in html
    assert small.faults[0] in html
    again = carried_out(tmp_path, seeds=1)
    assert [one.kept for one in again.findings] == [True] * MOST_VIOLATIONS + [False]
    assert again.first == result.first + MOST_VIOLATIONS
    assert again.before[-1].violations == MOST_VIOLATIONS


def test_the_page_has_totals_of_each_profile_and_what_changed_in_coverage(tmp_path: Path) -> None:
    result = carried_out(tmp_path, seeds=2)
    assert set(result.totals.profiles) == {"kip966"}
    assert result.totals.profiles["kip966"].seeds == 2
    assert result.verdict == "pass"
    lacking = (*result.lacking[1:], "isr.may_join 99")
    result.before = [replace(ENTRY, met=result.covered.rows - len(lacking), lacking=lacking)]
    html = page(result)
    assert "Met, and not before: 1" in html
    assert "isr.may_join 99" in html
    assert f'Not met, and before they were: 1</summary><ul class="rows"><li>{result.lacking[0]}</li>' in html


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--swarm", "kip999"], "no profile 'kip999'; there are:"),
        (["--defect", "trunc_hw"], "swarm any draws the profile too; name the profile"),
        (["--swarm", "kip966", "--defect", "no_bug"], "no defect 'no_bug'"),
        (["--minutes", "0"], "--minutes"),
    ],
)
def test_a_wrong_option_is_refused(options: list[str], line: str, tmp_path: Path) -> None:
    folders = ["--corpus", str(tmp_path / "corpus"), "--into", str(tmp_path / "into")]
    result = CliRunner().invoke(simulate, ["campaign", *folders, *options])
    assert result.exit_code == 2
    assert line in result.output
    assert not list(tmp_path.iterdir())


def test_a_corpus_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / CAMPAIGNS).write_text(json.dumps(asdict(ENTRY)) + "\n{}\n")
    with pytest.raises(CorpusError, match=r"campaigns.jsonl, line 2: KeyError\('at'\); take the line out"):
        Ledger(tmp_path, parse_setup).check()
    (tmp_path / CAMPAIGNS).unlink()
    (tmp_path / "runs").write_text("wrackline simulate --seed 1 --profile kip999\n")
    with pytest.raises(CorpusError, match="runs, line 1: no profile 'kip999'"):
        Ledger(tmp_path, parse_setup).check()
    with pytest.raises(CorpusError, match="no folder; name a folder for the corpus"):
        Ledger(tmp_path / "runs", parse_setup).check()

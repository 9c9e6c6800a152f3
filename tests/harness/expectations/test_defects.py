"""The suites of historic defects are counted with their twins, and two of them run on a real fleet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from wrackline.broker.defects import REGISTRY
from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations import runs as suites
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.cases import Arm, Case, catalogue, findings, stories
from wrackline.harness.expectations.cases import defects as cases
from wrackline.harness.run import judge as judging
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.judge import Judged
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.specification.spec import Spec, SpecError, load
from wrackline.harness.specification.suites import suites_dir
from wrackline.scenarios import SCENES
from wrackline.simulator.guided.catalogue import SCHEDULES as SIMULATED

NOT_ON_HOSTS = catalogue()["not_on_hosts"]
SUITES = suites_dir() / "defects"


def test_every_suite_names_a_defect_that_the_simulator_has_a_schedule_for() -> None:
    guided = {switch for schedule in SIMULATED.values() for switch in schedule.defects}
    for case in cases():
        assert set(case.main.spec.system.defects) <= set(REGISTRY)
        assert set(case.main.spec.system.defects) <= guided
        assert case.main.spec.name == f"defect-{case.name}"
        assert (SUITES / f"{case.name}.yaml").read_text().startswith("# ")


def test_every_defect_has_a_suite_or_a_reason_why_it_shows_nothing_on_hosts() -> None:
    shown = {switch for case in cases() for switch in case.main.spec.system.configured().defects}
    assert shown <= set(REGISTRY)
    assert set(NOT_ON_HOSTS) <= set(REGISTRY)
    # Of a pair the switch that does no harm alone has its reason beside the suite of the other one.
    assert shown & set(NOT_ON_HOSTS) == set()
    assert set(REGISTRY) - shown - set(NOT_ON_HOSTS) == set()


def test_every_reason_is_on_the_page_of_defects() -> None:
    page = (Path(__file__).parents[3] / "docs" / "known-bugs.md").read_text()
    for switch, reason in NOT_ON_HOSTS.items():
        assert f"| `{switch}` | {reason} |" in page


def test_every_suite_is_on_the_page_of_defects() -> None:
    page = (Path(__file__).parents[3] / "docs" / "known-bugs.md").read_text()
    for case in cases():
        assert case.main.spec.nemesis.guided is not None
        assert f"| `{case.name}` | `{case.main.spec.nemesis.guided.name}` |" in page


def test_every_scene_is_used_by_a_suite() -> None:
    used = [
        case.main.spec.nemesis.guided.name for case in cases() if case.main.spec.nemesis.guided is not None
    ]
    assert len(used) == len(set(used)) == len(cases())
    others = {
        each.main.spec.nemesis.guided.name
        for each in (*findings(), *stories())
        if each.main.spec.nemesis.guided is not None
    }
    assert SCENES.keys() - {*used, *others} == set()


def test_the_twin_differs_from_its_run_in_the_defect_alone() -> None:
    for case in cases():
        assert case.control is not None
        twin, run = case.control.spec.model_dump(), case.main.spec.model_dump()
        assert twin["system"].pop("defects") == ()
        assert run["system"].pop("defects") != ()
        assert twin.pop("name") == f"{run.pop('name')}-twin"
        assert twin == run
        assert Spec.model_validate(case.control.spec.model_dump()) == case.control.spec
        written = load(SUITES / f"{case.name}.yaml").contract.expected
        assert bool(written) is not (case.main.expectation.verdict is Verdict.INCONCLUSIVE)
        assert not written or case.main.expectation.shows == written
        assert run["contract"]["expected"] == ()


def test_an_unknown_suite_is_told_with_those_there_are() -> None:
    with pytest.raises(SpecError, match="no defect suite 'nosuch'; `wrackline list specs` lists"):
        cases(["nosuch"])


def twin_of(case: Case) -> Arm:
    assert case.control is not None
    return case.control


def judged(word: str, tmp_path: Path, **found: int) -> Judged:
    """``found``: anomaly (with underscores) -> count, all of them forbidden."""
    anomalies = [
        {"anomaly": name.replace("_", "-"), "meaning": "violation", "count": count, "why": ""}
        for name, count in found.items()
    ]
    allowed = {"anomaly": "stale-read", "meaning": "allowed", "count": 7, "why": ""}
    return Judged(
        tmp_path / "run", {"verdict": word, "anomalies": [*anomalies, allowed], "reasons": ["why"]}, None
    )


@pytest.mark.parametrize(
    ("word", "found", "caught"),
    [
        ("violation", {"lost_write": 3, "vanished_read": 1}, True),
        ("violation", {"lost_write": 0, "vanished_read": 1}, False),
        ("violation", {"stale_read": 2}, False),
        ("inconclusive", {}, False),
        ("pass", {}, False),
    ],
)
def test_a_defect_is_caught_when_what_it_does_is_forbidden(
    tmp_path: Path, word: str, found: dict[str, int], caught: bool
) -> None:
    [case] = cases(["trunc-hw"])
    case.main.add(judged(word, tmp_path, **found))
    assert (case.main.right, case.main.runs, case.is_expected) == (int(caught), 1, caught)
    assert bool(case.main.results[0].wrong) is not caught


def conditions(tmp_path: Path, word: str, **failed: str) -> Judged:
    """``failed``: names of conditions that do not hold."""
    rows = [{"name": name, "ok": False} for name in failed.values()]
    verdict = {
        "verdict": word,
        "anomalies": [],
        "reasons": [],
        "conditions": [*rows, {"name": "x", "ok": True}],
    }
    return Judged(tmp_path / "run", verdict, None)


@pytest.mark.parametrize(
    ("word", "failed", "caught"),
    [
        ("inconclusive", "threshold longest_gap_s", True),
        ("inconclusive", "every fault proved", False),
        ("pass", "threshold longest_gap_s", False),
        ("violation", "threshold longest_gap_s", False),
    ],
)
def test_a_defect_that_takes_only_time_is_caught_when_it_misses_its_threshold(
    tmp_path: Path, word: str, failed: str, caught: bool
) -> None:
    [case] = cases(["allow-fenced-isr"])
    case.main.add(conditions(tmp_path, word, one=failed))
    assert (case.main.right, case.main.runs) == (int(caught), 1)
    assert bool(case.main.results[0].wrong) is not caught


def test_what_the_contract_allows_is_caught_when_it_shows_and_the_twin_shows_none(tmp_path: Path) -> None:
    shown = {"anomaly": "watermark-regression", "meaning": "allowed", "count": 2}
    without = {"verdict": "pass", "anomalies": [], "reasons": []}
    [case] = cases(["no-offset-not-available"])
    case.main.add(Judged(tmp_path / "run", {**without, "anomalies": [shown]}, None))
    twin_of(case).add(Judged(tmp_path / "twin", without, None))
    assert case.is_expected
    case.main.add(Judged(tmp_path / "run", without, None))
    assert (case.main.right, case.main.runs) == (1, 2)
    twin_of(case).add(Judged(tmp_path / "twin", {**without, "anomalies": [shown]}, None))
    assert (twin_of(case).right, twin_of(case).runs) == (1, 2)
    assert "watermark-regression" in twin_of(case).results[-1].wrong[0]


@pytest.mark.parametrize("word", ["violation", "inconclusive", "infrastructure"])
def test_a_twin_is_clean_only_when_it_passes(tmp_path: Path, word: str) -> None:
    [case] = cases(["trunc-hw"])
    twin_of(case).add(judged("pass", tmp_path))
    assert not case.is_expected, "nothing was run with the defect"
    case.main.add(judged("violation", tmp_path, lost_write=1))
    assert case.is_expected
    twin_of(case).add(judged(word, tmp_path, lost_write=1))
    assert (twin_of(case).right, twin_of(case).runs, case.is_expected) == (1, 2, False)
    assert f"{word}, not pass (why)" in twin_of(case).results[1].complaints[0]


def test_all_runs_are_made_with_their_twins_and_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Spec] = []

    def run(spec: Spec, options: Options) -> Outcome:
        made.append(spec)
        return Outcome(options.results / f"{len(made)}-{spec.name}", (), True)

    def judge(run_dirs: Sequence[Path], **_: Any) -> list[Judged]:
        assert len(run_dirs) == 4
        twin = judged("pass", tmp_path).verdict
        broken = judged("violation", tmp_path, lost_write=9).verdict
        return [Judged(each, twin if each.name.endswith("-twin") else broken, None) for each in run_dirs]

    monkeypatch.setattr(suites, "run", run)
    monkeypatch.setattr(judging, "judge", judge)
    [case] = cases(["trunc-hw"])
    suites.play([case], tmp_path, runs=2)
    assert [spec.system.defects for spec in made] == [("trunc_hw",), (), ("trunc_hw",), ()]
    assert [(arm.right, arm.runs) for arm in case.arms] == [(2, 2), (2, 2)]
    tables.show_defects([case])
    assert "trunc_hw  b01-truncate-to-hw  2 of 2  2 of 2      lost-write (2)" in capsys.readouterr().out
    assert tables.defect_row(case)["found"] == {"lost-write": 2}


def test_it_says_how_far_the_judging_is_and_which_run_the_machine_was_too_slow_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [case] = cases(["trunc-hw"])
    usual_s = forecast(case.main.spec).usual_s
    clock = iter([0.0, 0.0, 1.5 * usual_s, 2 * usual_s, 4.5 * usual_s, 5 * usual_s])
    monkeypatch.setattr(suites, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(
        suites, "run", lambda spec, options: Outcome(options.results / spec.name, (), driven=True)
    )

    def judge(run_dirs: Sequence[Path], *, status: Callable[[str], None], **_: Any) -> list[Judged]:
        status("judging 2 runs, 7 of 40 parts done")
        return [Judged(each, judged("pass", tmp_path).verdict, None) for each in run_dirs]

    monkeypatch.setattr(judging, "judge", judge)
    suites.play([case], tmp_path)
    out, err = capsys.readouterr()
    assert err == "judging 2 runs, 7 of 40 parts done\n"
    [slow] = [line for line in out.splitlines() if "too slow" in line]
    assert slow.startswith(
        "trunc-hw, the twin, 1 of 1: this machine is too slow for its timing: the run took "
    )


def test_after_ctrl_c_no_further_run_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def run(spec: Spec, options: Options) -> Outcome:
        made.append(spec.name)
        return Outcome(options.results / spec.name, (), True, interrupted=len(made) == 2)

    def judge(run_dirs: Sequence[Path], **_: Any) -> list[Judged]:
        return [Judged(each, judged("pass", tmp_path).verdict, None) for each in run_dirs]

    monkeypatch.setattr(suites, "run", run)
    monkeypatch.setattr(judging, "judge", judge)
    first, second = cases(["trunc-hw", "elr-not-cleared"])
    suites.play([first, second], tmp_path, runs=3)
    assert made == ["defect-trunc-hw", "defect-trunc-hw-twin"]
    assert (first.main.runs, twin_of(first).runs, second.main.runs) == (1, 1, 0)
    assert not second.is_expected


@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "twins", "invariant"),
    [
        ("ignore-unclean", ["--no-twins"], 0, "I08"),
        # A second one with its twin, and one with messages held by a proxy.
        pytest.param("elr-not-cleared", [], 1, "I14", marks=[pytest.mark.nightly, pytest.mark.spark]),
        pytest.param("isr-no-hw", [], 1, "I02", marks=[pytest.mark.nightly, pytest.mark.spark]),
    ],
)
def test_a_defect_is_caught_on_a_real_fleet_and_its_twin_passes(
    name: str, options: list[str], twins: int, invariant: str, tmp_path: Path
) -> None:
    """By what clients saw, and by the invariants: the first that breaks is what the defect is about."""
    table = tmp_path / "table.json"
    command = [
        sys.executable,
        "-m",
        "wrackline.harness.cli.main",
        "known",
        "defects",
        name,
        *options,
        "--json",
        str(table),
    ]
    environment = {**os.environ, "WRACKLINE_RESULTS": str(tmp_path / "results"), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [row] = orjson.loads(table.read_bytes())
    [case] = cases([name])
    assert (row["caught"], row["runs"], row["clean"], row["twins"]) == (1, 1, twins, twins)
    assert set(case.main.expectation.shows) <= set(row["found"])
    for run_dir in (tmp_path / "results").iterdir():
        asked = orjson.loads((run_dir / "verdict.json").read_bytes())["invariants"]
        broken = [one["id"] for one in asked["broken"]]
        assert broken[:1] == ([] if run_dir.name.rpartition("-")[0].endswith("-twin") else [invariant])

"""The suites of historic defects are counted with their twins, and two of them run on a real fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from tests.harness.expectations.playing import LOST, judged, made_on_hosts, made_on_paper
from wrackline.broker.defects import REGISTRY
from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations import runs as suites
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.cases import Arm, Case, catalogue, findings, stories
from wrackline.harness.expectations.cases import defects as cases
from wrackline.harness.run import judge as judging
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.judge import Judged
from wrackline.harness.run.live.outcome import Outcome
from wrackline.harness.specification.spec import Spec, load
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


def twin_of(case: Case) -> Arm:
    assert case.control is not None
    return case.control


def test_all_runs_are_made_with_their_twins_and_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = made_on_paper(
        monkeypatch,
        lambda run: judged(run, "pass") if run.name.endswith("-twin") else judged(run, "violation", LOST),
    )
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
        return [judged(each, "pass") for each in run_dirs]

    monkeypatch.setattr(judging, "judge", judge)
    suites.play([case], tmp_path)
    out, err = capsys.readouterr()
    assert err == "judging 2 runs, 7 of 40 parts done\n"
    [slow] = [line for line in out.splitlines() if "too slow" in line]
    assert slow.startswith(
        "trunc-hw, the twin, 1 of 1: this machine is too slow for its timing: the run took "
    )


def test_after_ctrl_c_no_further_run_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_on_paper(monkeypatch, lambda run: judged(run, "pass"), until=2)
    first, second = cases(["trunc-hw", "elr-not-cleared"])
    suites.play([first, second], tmp_path, runs=3)
    assert [spec.name for spec in made] == ["defect-trunc-hw", "defect-trunc-hw-twin"]
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
    [row] = made_on_hosts(tmp_path, "defects", name, *options)
    [case] = cases([name])
    assert (row["caught"], row["runs"], row["clean"], row["twins"]) == (1, 1, twins, twins)
    assert set(case.main.expectation.shows) <= set(row["found"])
    for run_dir in (tmp_path / "results").iterdir():
        asked = orjson.loads((run_dir / "verdict.json").read_bytes())["invariants"]
        broken = [one["id"] for one in asked["broken"]]
        assert broken[:1] == ([] if run_dir.name.rpartition("-")[0].endswith("-twin") else [invariant])

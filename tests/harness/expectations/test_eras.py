"""Each story of docs/known-bugs.md is a suite whose arms differ in the profile alone, and one of them runs on
hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.harness.expectations.playing import LOST, judged, made_on_hosts, made_on_paper
from wrackline.harness.cli.runs.known import eras_command
from wrackline.harness.expectations import runs as played
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.cases import FIRST, PROFILES, Case, catalogue, eras
from wrackline.harness.specification import check
from wrackline.nemesis.guided.eras import SCHEDULES
from wrackline.simulator.eras.catalogue import STORIES as TOLD
from wrackline.simulator.eras.story import ERAS
from wrackline.systems.wrackline.spec import WracklineSpec

STORIES = catalogue()["eras"]
SUITES = Path(__file__).parents[3] / "suites" / "eras"


@pytest.fixture(scope="module")
def all_of_them() -> list[Case]:
    return eras(checked=False)


def test_every_story_that_the_simulator_tells_is_told_on_hosts() -> None:
    assert {name: known["what"] for name, known in STORIES.items()} == {
        story.name: story.what for story in TOLD
    }
    assert PROFILES == ERAS
    assert {path.stem for path in SUITES.glob("*.yaml")} == set(STORIES)


def test_the_arms_of_a_story_differ_in_profile_and_coordinator_alone(all_of_them: list[Case]) -> None:
    assert [(arm.name, arm.version) for arm in all_of_them] == [(s, p) for s in STORIES for p in ERAS]
    for arm in all_of_them:
        first = next(one for one in all_of_them if one.name == arm.name).main.spec
        spec = arm.main.spec.model_dump()
        assert (spec["system"].pop("profile"), spec["fleet"].pop("kind")) == (arm.version, "netns")
        on_zookeeper = arm.version == "zk08"
        assert (spec["fleet"].pop("zookeeper"), spec["fleet"].pop("controllers")) == (
            (1, 0) if on_zookeeper else (0, 1)
        )
        assert spec.pop("name") == f"era-{arm.name}" + ("" if on_zookeeper else f"-{arm.version}")
        same = first.model_dump()
        for part, key in (("system", "profile"), ("fleet", "kind"), ("fleet", "zookeeper")):
            del same[part][key]
        del (
            same["fleet"]["controllers"],
            same["name"],
            same["contract"]["verdict"],
            spec["contract"]["verdict"],
        )
        assert spec == same
        assert arm.main.spec.contract.expected == (), "it is judged like any other run"


@pytest.mark.parametrize("profile", ["zk08", "kip966"])
def test_the_broker_takes_the_settings_of_every_era(profile: str) -> None:
    """One file has those of both coordinators."""
    [arm] = eras(["power-back-early"], [profile])
    check.ask_system(arm.main.spec, "power-back-early.yaml")


def test_the_same_story_is_harmed_here_as_in_the_simulator(all_of_them: list[Case]) -> None:
    words = {"lost-write": "lost-write", "divergence": "replica-divergence", "stale-read": "stale-read"}
    assert ERAS[0] == FIRST
    for arm in all_of_them:
        [told] = [story for story in TOLD if story.name == arm.name]
        if arm.name != "isolated-then-unclean":  # unclean elections are allowed: there the loss is, too
            shown = {words[oracle] for oracle in told.harm if oracle in words}
            must = arm.main.expectation
            assert {*must.shows, *must.absent} == shown


def test_every_schedule_of_a_story_has_its_suite(all_of_them: list[Case]) -> None:
    used = {
        arm.main.spec.nemesis.guided.name for arm in all_of_them if arm.main.spec.nemesis.guided is not None
    }
    assert used == {*SCHEDULES, "alone-and-killed"}
    assert len(used) == len(STORIES)


def test_the_list_says_what_there_is_and_what_it_must_be() -> None:
    told = CliRunner().invoke(eras_command, ["--list", "split", "--profile", "zk08", "--profile", "kip966"])
    _, first, second = told.output.splitlines()
    assert first.split()[:3] == ["split", "zk08", "violation,"]
    assert second.split()[:4] == ["kip966", "pass,", "no", "lost-write"]


def test_all_runs_are_made_and_the_table_is_story_by_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = made_on_paper(
        monkeypatch,
        lambda run: judged(run, "pass") if run.name.endswith("-kip966") else judged(run, "violation", LOST),
    )
    happened: list[str] = []
    for ask in ("ask_clients", "ask_system"):
        monkeypatch.setattr(check, ask, lambda spec, _, ask=ask: happened.append(f"{ask} {spec.name}"))
    monkeypatch.setattr(WracklineSpec, "prepare", lambda spec, _: happened.append(spec.profile))
    wanted = eras(["split", "failover-twice"], ["zk08", "kip101", "kip966"])
    played.play(wanted, tmp_path, runs=2)
    assert happened[:2] == ["ask_clients era-split", "ask_system era-split"]
    assert happened[-len(wanted) :] == ["zk08", "kip101", "kip966"] * 2
    assert len(happened) == 3 * len(wanted), "all are asked before a run is made"
    assert [spec.name for spec in made[:3]] == ["era-split", "era-split-kip101", "era-split-kip966"]
    assert [spec.name for spec in made[6:]] == [spec.name for spec in made[:6]]
    tables.show_eras(wanted)
    told = capsys.readouterr().out
    row = next(line for line in told.splitlines() if line.startswith("split  "))
    assert row.split() == ["split", "violation", "(2)", "violation", "(2)", "(!)", "pass", "(2)"]
    assert "split under zk08: 640 lost-write of 900; 640 lost-write of 900" in told
    assert "NOT AS IT MUST BE: 2-era-split-kip101: violation, not pass (why)" in told
    assert [arm.is_expected for arm in wanted] == [True, False, True] * 2
    assert tables.era_row(wanted[0])["right"] == 2


@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("story", list(STORIES))
def test_a_story_harms_the_first_design_on_hosts_and_not_the_last(story: str, tmp_path: Path) -> None:
    rows = made_on_hosts(tmp_path, "eras", story, "--profile", "zk08", "--profile", "kip966")
    assert [(row["profile"], row["right"], row["runs"]) for row in rows] == [("zk08", 1, 1), ("kip966", 1, 1)]

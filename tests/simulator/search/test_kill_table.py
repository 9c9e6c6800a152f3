"""Every guided schedule distinguishes its defect from the rule, and the table shows it."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from click.testing import CliRunner

from wrackline.broker.defects import REGISTRY
from wrackline.scenarios import SCENES
from wrackline.simulator.cli import simulate
from wrackline.simulator.guided.catalogue import NO_SCENE, SCHEDULES
from wrackline.simulator.guided.schedule import play
from wrackline.simulator.search.kill_table import (
    Budget,
    Row,
    guided_row,
    html,
    hunt,
    kill_table,
    text,
)

WITHOUT_SCHEDULE = {}


@pytest.mark.parametrize("name", SCHEDULES)
def test_with_the_defect_an_oracle_fires(name: str) -> None:
    guided = SCHEDULES[name]
    played = play(guided, broken=True)
    assert set(played.oracles) & guided.oracles, (played.findings, played.log)


@pytest.mark.parametrize("name", SCHEDULES)
def test_without_the_defect_no_oracle_fires(name: str) -> None:
    played = play(SCHEDULES[name], broken=False)
    assert not played.findings, (played.findings, played.log)


def test_every_defect_has_a_schedule_or_a_reason() -> None:
    shown = {defect for guided in SCHEDULES.values() for defect in guided.defects}
    assert shown.isdisjoint(WITHOUT_SCHEDULE)
    assert shown | WITHOUT_SCHEDULE.keys() == REGISTRY.keys()


def test_every_schedule_is_a_scene_or_says_why_it_is_none() -> None:
    scenes = [shown.name for scene in SCENES.values() for shown in scene.shows]
    assert len(scenes) == len(set(scenes))
    assert NO_SCENE.keys().isdisjoint(scenes)
    assert NO_SCENE.keys() | set(scenes) == SCHEDULES.keys()


def test_a_schedule_is_the_same_every_time() -> None:
    first, second = (play(SCHEDULES["no_maximal_isr"], broken=True, seed=7) for _ in range(2))
    assert first == second


def test_other_latencies_change_nothing() -> None:
    for name in ("trunc_hw", "kip101_v0", "no_isr_broker_epoch", "apply_stale_off"):
        for seed in (11, 12):
            assert guided_row(SCHEDULES[name], seed).killed, (name, seed)


def test_random_runs_find_a_coarse_defect_and_leave_the_profile_alone() -> None:
    budget = Budget(runs=6, seconds=15.0)
    assert hunt(budget, "kip966", ("shrink_before_commit",)).oracle is not None
    for profile in ("kip966", "kraft35", "kip101"):
        found = hunt(Budget(runs=2, seconds=10.0), profile)
        assert found.oracle is None, (profile, found)


def test_table_as_text_json_and_page() -> None:
    table = kill_table([SCHEDULES["trunc_hw"], SCHEDULES["acks=1"]], Budget(1), random=False)
    assert table.good
    assert "2 of 2" in text(table)
    page = html(table)
    assert "trunc_hw" in page
    allowed = re.search(
        "content=\"default-src 'none'; style-src (.*?); script-src 'none'; "
        "base-uri 'none'; "
        "form-action 'none'\">",
        page,
    )
    assert allowed is not None
    digests = [
        base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        for style in re.findall("<style>(.*?)</style>", page, re.DOTALL)
    ]
    assert sorted(allowed[1].split()) == sorted(f"'sha256-{digest}'" for digest in digests)
    assert page.index("Content-Security-Policy") < page.index("<style>")
    said = json.loads(json.dumps(table.as_dict()))
    assert [row["killed"] for row in said["rows"]] == [True, True]


def test_a_silent_or_a_noisy_row_is_no_kill() -> None:
    row = Row("x", "B00", ("x",), "kip966", ("I02",), 1.0, ("I02",))
    assert row.killed
    assert not Row("x", "B00", ("x",), "kip966", (), 1.0, ("I02",)).killed
    assert not Row("x", "B00", ("x",), "kip966", ("I02",), 1.0, ("I02",), noise=("I14",)).killed


def test_the_command(tmp_path) -> None:  # type: ignore[no-untyped-def]
    page, data = tmp_path / "t.html", tmp_path / "t.json"
    asked = ["kill-table", "--guided-only", "--html", str(page), "--json", str(data), "--defect"]
    done = CliRunner().invoke(simulate, [*asked, "trunc_hw"])
    assert done.exit_code == 0, done.output
    assert "B01" in done.output
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(data.read_text())["good"]
    assert CliRunner().invoke(simulate, [*asked, "nonsense"]).exit_code == 2

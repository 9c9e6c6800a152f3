"""What a random run leaves behind tells which story it was: each story, played, is taken for itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from wrackline.simulator.cli import simulate
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.story import Story
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.run.session import Run
from wrackline.zookeeper.simulator.scenes import random_frequency
from wrackline.zookeeper.simulator.scenes.random_frequency import (
    SURROUNDINGS,
    SearchResult,
    recognitions_of,
    setup_of,
    table,
)
from wrackline.zookeeper.simulator.scenes.recognition import Recognizer


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_is_known_by_what_it_leaves_behind(story: Story) -> None:
    stage = Stage(story.setting.but(profile="zk08"))
    recognizer = Recognizer(stage.world)
    stage.world.watchers.append(recognizer)
    story.play(stage)
    stage.finish()
    recognizer.at_rest()
    assert recognizer.stories[-1:] == (story.name,), recognizer.found


@pytest.mark.parametrize("seed", range(4))
def test_failures_that_come_one_by_one_leave_no_sign(seed: int) -> None:
    session = Run(Setup(seed=seed, seconds=6.0, profile="zk08", brokers=4, fault_every_ms=700.0))
    recognizer = Recognizer(session.world)
    session.world.watchers.append(recognizer)
    for part in (session.boot, session.main, session.heal):
        part()
    recognizer.at_rest()
    assert session.driver.done
    assert recognizer.found == []


def test_chance_tells_stories_and_not_the_same_ones_with_and_without_power_cuts() -> None:
    found = recognitions_of(setup_of(SURROUNDINGS["at most two without power"], 8))
    assert {sign.story for sign in found} == {"power-back-early"}
    assert recognitions_of(setup_of(SURROUNDINGS["nobody loses power"], 8)) == []


def test_the_command_prints_a_row_for_each_story(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"nobody loses power": SURROUNDINGS["nobody loses power"]}
    monkeypatch.setattr(random_frequency, "SURROUNDINGS", one)
    done = CliRunner().invoke(simulate, ["eras", "--search", "10"])
    assert done.exit_code == 0, done.output
    for story in STORIES:
        assert f"| {story.name} | " in done.output
    assert "| restart-then-failover | **1** (10.0%), first 9 |" in done.output


def test_a_search_tells_no_story(tmp_path: Path) -> None:
    done = CliRunner().invoke(simulate, ["eras", "--search", "1", "--html", str(tmp_path / "x.html")])
    assert done.exit_code == 2
    assert "leave out --html" in done.output


def test_the_page_has_a_row_for_each_story_and_a_column_for_each_search() -> None:
    page = (Path(__file__).parents[3] / "docs" / "known-bugs.md").read_text(encoding="utf-8")
    none = {name: SearchResult(1) for name in SURROUNDINGS}
    head, _, *rows = table([story.name for story in STORIES], none).splitlines()
    assert head in page
    assert [row for row in rows if f"{row.split(' | ')[0]} | " not in page.partition(head)[2]] == []

"""Each story ends as it is told, under the rules of its time and under later ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from wrackline.simulator.cli import simulate
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.page import outcome
from wrackline.simulator.eras.story import ERAS, Story, ends_as_told, tell
from wrackline.simulator.guided.schedule import Played
from wrackline.simulator.guided.setting import Finding

PAGE = Path(__file__).parents[3] / "docs" / "known-bugs.md"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
@pytest.mark.parametrize("seed", [0, 11])
def test_a_story_ends_as_it_is_told(story: Story, era: str, seed: int) -> None:
    played = tell(story, era, seed)
    assert ends_as_told(story, era, played), (played.findings, played.log)


def test_an_end_that_was_not_told_is_noticed() -> None:
    story = STORIES[0]
    lost = Played((Finding("lost-write", "m2 is gone", 1.0),), 1.0, ())
    unharmed = Played((), 1.0, ())
    assert ends_as_told(story, "zk08", lost)
    assert ends_as_told(story, "kip966", unharmed)
    assert not ends_as_told(story, "zk08", unharmed)
    assert not ends_as_told(story, "kip966", lost)
    assert outcome(lost.oracles) == "acknowledged record lost"


def test_the_page_has_the_table_that_the_command_prints() -> None:
    done = CliRunner().invoke(simulate, ["eras", "--seeds", "1"])
    assert done.exit_code == 0, done.output
    assert done.output.strip() in PAGE.read_text(encoding="utf-8")


def test_a_story_that_is_not_there_is_refused() -> None:
    done = CliRunner().invoke(simulate, ["eras", "--story", "no-such"])
    assert done.exit_code == 2
    assert "no story 'no-such'; there are " in done.output

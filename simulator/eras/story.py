"""The definition of a story, and the function that tells it under one profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wrackline.simulator.guided.schedule import Play, Played
from wrackline.simulator.guided.setting import Setting
from wrackline.simulator.guided.stage import Stage

ERAS = ("zk08", "kip101", "kraft35", "kip966")
"""In the order of time."""


@dataclass(frozen=True, slots=True)
class Story:
    name: str
    told: str
    """Who tells it, by its code in docs/protocol.md."""
    what: str
    """One sentence."""
    play: Play
    harm: frozenset[str]
    """Oracles of which at least one fires under the oldest profile; the others come through unharmed."""
    setting: Setting


def story(name: str, told: str, what: str, *harm: str, setting: Setting) -> Callable[[Play], Story]:
    return lambda play: Story(name, told, what, play, frozenset(harm), setting)


def tell(story: Story, profile: str, seed: int | str = 0) -> Played:
    """Raises SimulationError when the story cannot be gone through under this profile."""
    return play_on(Stage(story.setting.but(profile=profile), (), seed), story)


def play_on(stage: Stage, story: Story) -> Played:
    """Raises SimulationError when the story cannot be gone through."""
    story.play(stage)
    if not stage.stuck:
        stage.finish()
    findings = stage.findings()
    at_ms = findings[0].at_ms if findings else stage.world.now_ms
    return Played(findings, at_ms, tuple(stage.lines))


def ends_as_told(story: Story, profile: str, played: Played) -> bool:
    return bool(story.harm & set(played.oracles)) if profile == ERAS[0] else not played.oracles

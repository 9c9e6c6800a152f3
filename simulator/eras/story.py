"""The definition of a story, and the function that tells it under one profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wrackline.simulator.guided.schedule import Played
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
    play: Callable[[Stage], None]
    harm: Mapping[str, frozenset[str]]
    """Profile -> oracles, of which at least one fires; profiles that are not named come through unharmed."""
    setting: Setting = field(default_factory=Setting)


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
    wanted = story.harm.get(profile, frozenset())
    return bool(wanted & set(played.oracles)) if wanted else not played.oracles

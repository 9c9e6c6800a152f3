"""The definition of a guided schedule, and the function that plays one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from wrackline.simulator.guided.setting import Finding, Setting
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.errors import SimulationError

Play = Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class Guided:
    """``defects`` (or the settings ``exposing``, where the configuration is the fault) make the play end
    badly."""

    name: str
    id: str
    """In the catalogue: B01 and so on."""
    defects: tuple[str, ...]
    play: Play
    oracles: frozenset[str]
    """At least one of them fires."""
    setting: Setting
    exposing: Mapping[str, Any]
    """Fields of the Setting, for the arm that must fail."""
    harmless: tuple[str, ...]
    """Those of the defects that do no harm alone; the clean arm has them too."""
    hunted: Mapping[str, Any]
    """Surroundings of the random runs (fields of ``wrackline.simulator.faults.setup.Setup``): what the defect
    cannot show itself without, such as three controllers. Never the faults."""
    tolerated: frozenset[str]
    """Oracles that ``harmless`` sets off by itself: they count in neither arm."""
    text: str
    """Says what happens; empty: the docstring of ``play`` does."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})
_PLAIN = Setting()


def guided(
    name: str,
    id_: str,
    *oracles: str,
    defects: tuple[str, ...] = (),
    setting: Setting = _PLAIN,
    exposing: Mapping[str, Any] = _NOTHING,
    harmless: tuple[str, ...] = (),
    hunted: Mapping[str, Any] = _NOTHING,
    tolerated: Collection[str] = (),
    text: str = "",
) -> Callable[[Play], Guided]:
    """Makes a schedule of its play. No ``defects``: the one that it is named for, and none where settings do
    the harm."""
    result, ignored = frozenset(oracles), frozenset(tolerated)
    switches = defects or (() if exposing else (name,))

    def of(play: Play) -> Guided:
        return Guided(name, id_, switches, play, result, setting, exposing, harmless, hunted, ignored, text)

    return of


@dataclass(frozen=True, slots=True)
class Played:
    findings: tuple[Finding, ...]
    at_ms: float
    """Virtual time of the first finding, or of the end."""
    log: tuple[str, ...]

    @property
    def oracles(self) -> tuple[str, ...]:
        """Returns the oracles in the order in which they fired."""
        return tuple(dict.fromkeys(finding.oracle for finding in self.findings))


def play(guided: Guided, *, broken: bool, seed: int | str = 0) -> Played:
    """Play it once. Raises SimulationError when the clean arm cannot go through the schedule."""
    defects = guided.defects if broken else guided.harmless
    setting = guided.setting.but(**guided.exposing) if broken else guided.setting
    stage = Stage(setting, defects, seed)
    try:
        guided.play(stage)
        if not stage.stuck:
            stage.finish()
    except SimulationError as impossible:
        if not broken:
            raise
        stage.find("impossible", str(impossible))
    findings = tuple(f for f in stage.findings() if f.oracle not in guided.tolerated)
    at_ms = findings[0].at_ms if findings else stage.world.now_ms
    return Played(findings, at_ms, tuple(stage.lines))

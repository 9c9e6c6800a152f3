"""The course of a run by its own account: what its runner wrote down besides phases and operations
(wrackline.history.model)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

INFRASTRUCTURE = "infrastructure.json"
"""Written by the runner when hosts, SSH or deployment failed: {"error": one line, "troubles": [{"step",
"error"}]}."""
BEFORE_THE_END = ("drive", "read back")
"""Steps of a run whose troubles can make a final read differ from what the system holds."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure on the harness's side: hosts, SSH, deployment."""

    error: str
    steps: tuple[str, ...] | None = None
    """In which steps of the run; None: not on record."""

    @property
    def spoils_final_read(self) -> bool:
        """A step that is not on record may have been any."""
        return self.steps is None or any(step in BEFORE_THE_END for step in self.steps)


CLOCK_LEAP = "clock-leap"
"""``f`` of the runner's row about the harness's time of day: extra {"at_ns", "ahead_ns"}."""


class Tier(NamedTuple):
    """The number of segments that a remote tier got, the number of those of which it gave records, and how
    often it did."""

    copied: int
    fetched: int
    fetches: int


@dataclass(slots=True)
class Course:
    over: bool = False
    """The run went on to its last step."""
    interrupted: str | None = None
    """When the user asked for an early end, and what else there is to say."""
    by_followers: Mapping[str, int] = field(default_factory=dict)
    """Partition -> records that followers gave."""
    stuck: Sequence[str] | None = None
    """Clients that had not stopped when the final read began; None: not on record."""
    guided: Mapping[str, str] | None = None
    """Id -> name of each fault that the guided schedule meant to inject; None: it never began."""
    followed: int = 0
    """How many faults began when a state of the cluster that they follow was true."""
    files: Mapping[str, Sequence[str]] | None = None
    """Host -> names of the files that were fetched from it; None: nothing was collected."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Host -> why some of its files were not."""
    repairs: Sequence[str] | None = None
    """What healing had to repair that the faults' own undo had left; None: not on record."""
    leaps: list[tuple[int, int]] = field(default_factory=list)
    """(when, by how much ahead) the harness's time of day leapt, in ns."""
    tier: Tier | None = None
    """What went through the remote tier; None: there was none."""
    unused: Sequence[str] = ()
    """Hosts whose node was never started."""

    def take(self, f: str, extra: Mapping[str, Any]) -> None:
        """A row of the runner. Raises KeyError, TypeError or AttributeError where it makes no sense."""
        match f:
            case "over":
                self.over = True
            case "interrupted":
                self.interrupted = str(extra["why"])
            case "clock-leap":
                self.leaps.append((int(extra["at_ns"]), int(extra["ahead_ns"])))
            case "stopped":
                self.stuck = tuple(extra["stuck"])
                self.by_followers = dict(extra.get("followers") or {})
            case "repaired":
                self.repairs = tuple(str(one) for one in extra["repairs"])
            case "planned":
                self.guided = dict(extra["faults"])
            case "tier":
                self.tier = Tier(int(extra["copied"]), int(extra["fetched"]), int(extra["fetches"]))
            case "follow":
                self.followed += extra["phase"] == "reached"
            case "collected":
                self.files = {host: tuple(names) for host, names in extra["files"].items()}
                self.missing = dict(extra["missing"])
                self.unused = tuple(extra.get("unused") or ())


def trouble_of(directory: Path) -> Trouble | None:
    """Returns why hosts, SSH or deployment failed; None when they did not."""
    try:
        result = orjson.loads((directory / INFRASTRUCTURE).read_bytes())
        troubles = result.get("troubles")
        steps = None if troubles is None else tuple(str(one["step"]) for one in troubles)
        error = str(result["error"]).splitlines() or ["no reason given"]
        return Trouble(error[0], steps)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as wrong:
        return Trouble(f"{INFRASTRUCTURE} is there but not readable ({wrong})")

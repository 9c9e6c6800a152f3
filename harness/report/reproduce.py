"""The command that makes a run again, so that it can be pasted: the folder to be in, and the command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
LAUNCHER: Final = "wrack"


@dataclass(frozen=True, slots=True)
class Replay:
    where: str
    """The folder to be in, as words that follow "In"."""
    command: str


def replay_of(run_dir: Path, seed: int, *, checkout: Path = CHECKOUT) -> Replay | None:
    """The command for this run; None without its specification. ``checkout`` is the folder in which this
    package lies; the launcher may be in it or not."""
    spec = run_dir.resolve() / "spec.yaml"
    if not spec.is_file():
        return None
    if (checkout / LAUNCHER).is_file():
        named = spec.relative_to(checkout) if spec.is_relative_to(checkout) else spec
        return Replay(
            "the folder of Wrackline, where its launcher is", _command(f"./{LAUNCHER}", named, seed)
        )
    return Replay("any folder", _command("wrackline", spec, seed))


def _command(program: str, spec: Path, seed: int) -> str:
    return shlex.join([program, "run", str(spec), "--seed", str(seed)])

"""The request for a run, and its outcome before it is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wrackline.errors import InputError
from wrackline.harness.run.live.progress import Progress


class Interrupted(Exception):
    """The user stopped the run before anything, or at once. The message says what is left."""


class CannotRecord(InputError):
    """The run's directory cannot be written: nothing was begun. One line: where, why, how to mend."""


def cannot_record(run_dir: Path, error: Exception) -> CannotRecord:
    """``error``: what went wrong when its directory was to be written."""
    why = getattr(error, "strerror", None) or str(error).split(";")[0]
    return CannotRecord(
        f"{run_dir} cannot be written: {why}; make room there, or name another folder with --results"
    )


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Options:
    results: Path
    keep_fleet: bool = False
    progress: Progress = field(default_factory=Progress)
    prepare_judge: Callable[[], None] = _nothing
    """Called in a thread of its own while the run waits for the cluster; it has ended before clients begin.
    Raises nothing."""
    recovered: Callable[[], None] = _nothing
    """Called when faults are over and every replica is in the ISR again: from here on the run mostly waits.
    Returns at once, raises nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was made and not judged yet."""

    run_dir: Path
    troubles: tuple[str, ...]
    """What broke down on our side, most telling first."""
    driven: bool
    """Clients did something: there is a history to analyse."""
    kept_fleet: str | None = None
    interrupted: bool = False
    """The user asked for an early end: whoever has more runs to make should not begin them."""


def what_is_left(run_dir: Path, driven: bool, kept_fleet: str | None, removed: bool) -> str:
    """One line about a run that was stopped at once: what became of its hosts, and where its files are."""
    if kept_fleet:
        hosts = f"the hosts are kept as fleet {kept_fleet}"
    elif removed:
        hosts = "its hosts were removed"
    else:
        hosts = "not all of the hosts could be removed, `wrackline fleet clean` does it"
    if not driven:
        return f"interrupted during set-up: no operation was made, {hosts}; plan and log are in {run_dir}"
    return f"stopped at once: {hosts}; what was recorded is in {run_dir}: `wrackline analyze` judges it"

"""The folder of runs, and how a person names a run: a path, a run id, or the beginning of an id."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wrackline.checkers.verdict.seal import UNSEALED
from wrackline.errors import InputError
from wrackline.harness.records import Record, State, record
from wrackline.history.store.folder import PARQUET, RUN_JSON, WAL

ENVIRONMENT = "WRACKLINE_RESULTS"


class NoSuchRun(InputError):
    """The message is one line: what was asked for and what there is."""


def default_dir() -> Path:
    return Path(os.environ.get(ENVIRONMENT, "results"))


def is_run(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in (PARQUET, WAL, RUN_JSON))


def runs(results: Path) -> list[Path]:
    """Oldest first (ids begin with the time)."""
    if not results.is_dir():
        return []
    return sorted(path for path in results.iterdir() if is_run(path))


def find(name: str, results: Path) -> Path:
    """Raises NoSuchRun when nothing, or more than one run, is meant."""
    as_path = Path(name)
    if as_path.is_dir():
        if is_run(as_path):
            return as_path
        raise NoSuchRun(f"{name}: a directory without a run in it (no {PARQUET}, {WAL} or {RUN_JSON})")
    there = runs(results)
    if name in ("last", "latest") and there:
        return there[-1]
    matching = [path for path in there if path.name.startswith(name)] or [
        path for path in there if name in path.name
    ]
    if len(matching) == 1:
        return matching[0]
    if not there:
        raise NoSuchRun(
            f"{name}: no such run in {results}, which holds none; give a run's directory, or --results the "
            "folder they are in"
        )
    if not matching:
        raise NoSuchRun(
            f"{name}: no such run in {results}; `wrackline runs` lists the {len(there)} there are"
        )
    shown = ", ".join(path.name for path in matching[-4:])
    raise NoSuchRun(f"{name}: {len(matching)} runs match ({shown}{', ...' if len(matching) > 4 else ''})")


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the table."""

    run_id: str
    verdict: str
    acked: str
    faults: str
    headline: str


def table(results: Path) -> list[Row]:
    return [_row(record(run_dir)) for run_dir in runs(results)]


def _row(one: Record) -> Row:
    if one.verdict is None:
        if one.state is State.DAMAGED:
            return Row(one.run, "-", "", "", one.trouble)
        state = "recording, or killed" if one.state is State.RECORDING else "not judged"
        return Row(one.run, "-", "", "", f"{state}; `wrackline analyze {one.run}`")
    planned = max(one.planned_faults, len(one.faults))
    proved = sum(fault.proved for fault in one.faults)
    acked = int(one.metrics.get("acknowledged", 0))
    headline = one.headline if one.sealed else f"({UNSEALED}) {one.headline}"
    return Row(one.run, one.verdict, f"{acked:,}", f"{proved}/{planned}" if planned else "0", headline)

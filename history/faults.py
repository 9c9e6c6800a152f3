"""Faults of the nemesis in a recorded run, read back from the history to be done again elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from wrackline.history.model import CONTROL, DIED, NEMESIS
from wrackline.history.store.files import history_files
from wrackline.history.store.folder import HistoryError


@dataclass(frozen=True, slots=True)
class Happened:
    """One fault as it happened. Times are seconds from the beginning of the main phase."""

    id: str
    fault: str
    targets: tuple[str, ...]
    """Hosts by name."""
    at_s: float
    duration_s: float
    how: Mapping[str, Any] = field(default_factory=dict)
    """The fault's own settings, or what a simulated one did."""


def happened(run_dir: Path) -> list[Happened]:
    """The faults that were in force, in the order of their beginnings; nodes that died by themselves are
    none. A fault that the end of the record cut short ends there. Raises HistoryError."""
    columns = ["process", "f", "time_ns", "extra"]
    expected = [("process", "in", [NEMESIS, CONTROL])]
    rows: list[dict[str, Any]] = []
    for path in history_files(run_dir):
        rows += pq.read_table(path, columns=columns, filters=expected).to_pylist()
    rows.sort(key=lambda row: row["time_ns"])
    main_ns: int | None = None
    begun: dict[str, dict[str, Any]] = {}
    result: list[Happened] = []
    for row in rows:
        extra = orjson.loads(row["extra"] or "{}")
        if row["process"] == CONTROL:
            if row["f"] == "phase" and extra.get("phase") == "main":
                main_ns = row["time_ns"]
            continue
        if row["f"] == DIED:
            continue
        match extra.get("phase"):
            case "begin":
                begun[extra["id"]] = {"at": row["time_ns"], "f": row["f"], **extra}
            case "active" if extra["id"] in begun:
                begun[extra["id"]]["active"] = True
            case "undo" if (one := begun.pop(extra["id"], None)) and one.get("active"):
                result.append(_one(one, row["time_ns"], main_ns))
    last_ns = rows[-1]["time_ns"] if rows else 0
    result += [_one(one, last_ns, main_ns) for one in begun.values() if one.get("active")]
    if main_ns is None:
        raise HistoryError(f"{run_dir}: the run had no main phase, so no fault happened in it")
    return sorted(result, key=lambda one: (one.at_s, one.id))


def _one(begun: Mapping[str, Any], ends_ns: int, main_ns: int | None) -> Happened:
    at_s = max(0.0, (begun["at"] - (main_ns or 0)) / 1e9)
    return Happened(
        begun["id"],
        begun["f"],
        tuple(begun["targets"]),
        round(at_s, 3),
        round((ends_ns - begun["at"]) / 1e9, 3),
        begun.get("how") or {},
    )

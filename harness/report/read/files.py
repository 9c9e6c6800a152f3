"""The files of a run directory. Each may be missing or broken, and then the report says so.

Nothing here raises for the content of a run: what cannot be read becomes a ``Gap`` that the report shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from wrackline.checkers.explain.model import EXPLANATIONS_FILE, VERSION, Explanations, Group, from_json
from wrackline.checkers.verdict.seal import SEAL, UNSEALED, why_broken
from wrackline.errors import InputError
from wrackline.history.json_values import mapping, numeric, rows, texts, whole
from wrackline.history.model import RunInfo
from wrackline.history.store.folder import whole_file

__all__ = ("mapping", "numeric", "rows", "texts", "whole")
"""What others of the report take from here, too."""
KNOWN: Final = (
    "spec.yaml",
    "plan.json",
    "run.json",
    "history.parquet",
    "history.wal",
    "findings.parquet",
    "verdict.json",
    "metrics.json",
    "infrastructure.json",
    "harness.log",
)
TEXT_LIMIT: Final = 64 * 1024


class ReportError(InputError):
    """The error for a folder of which no report can be made. One line: what, where, how to mend."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A file or a part of the run that the report cannot show, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class RunFiles:
    directory: Path
    info: RunInfo | None
    verdict: Mapping[str, Any] | None
    others: Mapping[str, Mapping[str, Any]]
    """Contract -> the verdict of the same run judged by it (``verdict.<contract>.json``)."""
    metrics: Mapping[str, Any] | None
    plan_text: str | None
    spec_text: str | None
    configs: Mapping[str, str]
    """Host -> its effective configuration, as the node wrote it."""
    explanations: Explanations
    listing: tuple[tuple[str, int], ...]
    """Path relative to the run directory, bytes."""
    trouble: str | None = None
    """What failed on our side (``infrastructure.json``): hosts, SSH, deployment."""
    gaps: tuple[Gap, ...] = field(default=())

    @property
    def groups(self) -> tuple[Group, ...]:
        """The findings, by anomaly and partition."""
        return self.explanations.groups


def check_run(directory: Path) -> None:
    """Raises ReportError when the folder is no run at all."""
    if not directory.is_dir():
        raise ReportError(f"{directory}: no such run directory; `wrackline runs` lists the runs there are")
    if not any((directory / name).exists() for name in KNOWN):
        raise ReportError(
            f"{directory}: holds no file of a run ({', '.join(KNOWN[:4])}, ...); give a folder below results/"
        )


def read_run(directory: Path) -> RunFiles:
    """Reads everything of a run but its history. Raises ReportError when the folder is no run at all."""
    check_run(directory)
    gaps: list[Gap] = []
    info = _read_info(directory / "run.json", gaps)
    verdict = _read_verdict(directory / "verdict.json", "so there is no verdict", gaps)
    return RunFiles(
        directory=directory,
        info=info,
        verdict=verdict,
        others=_read_others(directory, gaps),
        metrics=_read_json(
            directory / "metrics.json", "so throughput, latency and availability are not known", gaps
        ),
        plan_text=_read_text(directory / "plan.json", "so the fault schedule is not known", gaps),
        spec_text=_read_text(directory / "spec.yaml", "so the specification is not known", gaps),
        configs=_read_configs(directory / "nodes", gaps),
        explanations=_read_explanations(directory / EXPLANATIONS_FILE, gaps),
        listing=_list_files(directory),
        trouble=_read_trouble(directory / "infrastructure.json", gaps),
        gaps=tuple(gaps),
    )


def _read_bytes(path: Path, loss: str, gaps: list[Gap]) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        gaps.append(Gap(path.name, f"missing, {loss}"))
    except OSError as wrong:
        gaps.append(Gap(path.name, f"not readable: {wrong.strerror}"))
    return None


def _read_json(path: Path, loss: str, gaps: list[Gap]) -> Mapping[str, Any] | None:
    content = _read_bytes(path, loss, gaps)
    if content is None:
        return None
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as wrong:
        gaps.append(Gap(path.name, f"not JSON: {wrong}"))
        return None
    if not isinstance(found, dict):
        gaps.append(Gap(path.name, f"not a JSON object but a {type(found).__name__}"))
        return None
    return found


def _read_verdict(path: Path, loss: str, gaps: list[Gap]) -> Mapping[str, Any] | None:
    """Returns the verdict; None too where something was changed after the run had been judged."""
    found = _read_json(path, loss, gaps)
    try:
        why = why_broken(path.parent, found or {})
    except OSError as wrong:
        why = f"its seal cannot be checked: {wrong.strerror or wrong}"
    if why:
        gaps.append(Gap(path.name, why))
        return None
    if found is not None and SEAL not in found:
        gaps.append(Gap(path.name, UNSEALED))
    return found


def _read_explanations(path: Path, gaps: list[Gap]) -> Explanations:
    """Returns the explanations that the judge wrote of its findings."""
    content = _read_bytes(path, "so the evidence behind the verdict cannot be shown", gaps)
    if content is None:
        return Explanations(VERSION)
    try:
        found = from_json(content)
    except ValueError as wrong:
        gaps.append(Gap(path.name, f"not readable: {first_line(wrong)}"))
        return Explanations(VERSION)
    gaps += [Gap(*what) for what in found.lacking]
    return found


def _read_trouble(path: Path, gaps: list[Gap]) -> str | None:
    found = _read_json(path, "", gaps) if path.exists() else None
    return str(found["error"]) if found is not None and found.get("error") else None


def _read_others(directory: Path, gaps: list[Gap]) -> dict[str, Mapping[str, Any]]:
    others = {}
    for path in sorted(directory.glob("verdict.*.json"))[:20]:
        found = _read_verdict(path, "", gaps)
        if found is not None:
            others[path.name.removeprefix("verdict.").removesuffix(".json")] = found
    return others


def _read_info(path: Path, gaps: list[Gap]) -> RunInfo | None:
    content = _read_bytes(path, "so the run's configuration is not known", gaps)
    if content is None:
        return None
    try:
        return RunInfo.from_json(content)
    except (ValueError, TypeError) as wrong:
        gaps.append(Gap(path.name, str(wrong)))
        return None


def _read_text(path: Path, loss: str, gaps: list[Gap]) -> str | None:
    content = _read_bytes(path, loss, gaps)
    return None if content is None else _cut(content)


def _cut(content: bytes) -> str:
    text = content[:TEXT_LIMIT].decode("utf-8", "replace")
    if len(content) > TEXT_LIMIT:
        text += f"\n… {len(content) - TEXT_LIMIT:,} more bytes in the file"
    return text


def _read_configs(nodes: Path, gaps: list[Gap]) -> dict[str, str]:
    configs: dict[str, str] = {}
    for path in sorted(nodes.glob("*/effective-config.toml"))[:32]:
        content = _read_bytes(path, "", gaps)
        if content is not None:
            configs[path.parent.name] = _cut(content)
    return configs


def _list_files(directory: Path, limit: int = 60) -> tuple[tuple[str, int], ...]:
    found = sorted(path for path in directory.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(directory)), path.stat().st_size) for path in found[:limit])


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all (``whole_file``). Raises OSError."""
    with whole_file(path) as part:
        part.write_bytes(content)
    return path


def first_line(wrong: BaseException) -> str:
    """The first line of an error: Arrow's messages have several, and the first one names the problem."""
    lines = str(wrong).splitlines()
    return lines[0] if lines else type(wrong).__name__

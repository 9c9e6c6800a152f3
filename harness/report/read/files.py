"""The files of a run directory. Each may be missing or broken, and then the report says so.

Nothing here raises for the content of a run: what cannot be read becomes a ``Gap`` that the report shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from wrackline.checkers.explain.model import EXPLANATIONS_FILE, VERSION, Explanations, Group, from_json
from wrackline.checkers.verdict.seal import SEAL, UNSEALED, why_broken
from wrackline.errors import InputError
from wrackline.history.json_values import mapping, numeric, rows, texts, whole
from wrackline.history.model import RunInfo
from wrackline.history.store.folder import whole_file

_T = TypeVar("_T")
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
CAMPAIGN: Final = "campaign.json"
"""In the folder of a campaign in virtual time, which has no history, and a report.html of its own."""
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
    files = _Files(directory)
    return RunFiles(
        directory=directory,
        info=files.read("run.json", "so the run's configuration is not known", RunInfo.from_json),
        verdict=files.read_verdict("verdict.json", "so there is no verdict"),
        others=_read_others(files),
        metrics=files.read(
            "metrics.json", "so throughput, latency and availability are not known", _parse_object
        ),
        plan_text=files.read("plan.json", "so the fault schedule is not known", _cut),
        spec_text=files.read("spec.yaml", "so the specification is not known", _cut),
        configs=_read_configs(files),
        explanations=_read_explanations(files),
        listing=_list_files(directory),
        trouble=_read_trouble(files),
        gaps=tuple(files.gaps),
    )


class _Files:
    """Reads the files of a run. What cannot be read becomes a gap."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.gaps: list[Gap] = []

    def read(self, name: str, loss: str, parse: Callable[[bytes], _T]) -> _T | None:
        """``loss``: what the report lacks without the file; ``parse`` may raise ValueError or TypeError."""
        path = self.directory / name
        try:
            return parse(path.read_bytes())
        except FileNotFoundError:
            self.gaps.append(Gap(path.name, f"missing, {loss}"))
        except OSError as error:
            self.gaps.append(Gap(path.name, f"not readable: {error.strerror}"))
        except (ValueError, TypeError) as error:
            self.gaps.append(Gap(path.name, str(error)))
        return None

    def read_verdict(self, name: str, loss: str) -> Mapping[str, Any] | None:
        """Returns the verdict; None too where something was changed after the run had been judged."""
        result = self.read(name, loss, _parse_object)
        try:
            why = why_broken(self.directory, result or {})
        except OSError as error:
            why = f"its seal cannot be checked: {error.strerror or error}"
        if why:
            self.gaps.append(Gap(name, why))
            return None
        if result is not None and SEAL not in result:
            self.gaps.append(Gap(name, UNSEALED))
        return result


def _parse_object(content: bytes) -> Mapping[str, Any]:
    try:
        result = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(result, dict):
        raise ValueError(f"not a JSON object but a {type(result).__name__}")
    return result


def _parse_explanations(content: bytes) -> Explanations:
    try:
        return from_json(content)
    except ValueError as error:
        raise ValueError(f"not readable: {first_line(error)}") from error


def _read_explanations(files: _Files) -> Explanations:
    """Returns the explanations that the judge wrote of its findings."""
    loss = "so the evidence behind the verdict cannot be shown"
    result = files.read(EXPLANATIONS_FILE, loss, _parse_explanations) or Explanations(VERSION)
    files.gaps += [Gap(*what) for what in result.lacking]
    return result


def _read_trouble(files: _Files) -> str | None:
    name = "infrastructure.json"
    result = files.read(name, "", _parse_object) if (files.directory / name).exists() else None
    return str(result["error"]) if result is not None and result.get("error") else None


def _read_others(files: _Files) -> dict[str, Mapping[str, Any]]:
    names = sorted(path.name for path in files.directory.glob("verdict.*.json"))[:20]
    result = {name: files.read_verdict(name, "") for name in names}
    return {
        name.removeprefix("verdict.").removesuffix(".json"): verdict
        for name, verdict in result.items()
        if verdict is not None
    }


def _cut(content: bytes) -> str:
    text = content[:TEXT_LIMIT].decode("utf-8", "replace")
    if len(content) > TEXT_LIMIT:
        text += f"\n… {len(content) - TEXT_LIMIT:,} more bytes in the file"
    return text


def _read_configs(files: _Files) -> dict[str, str]:
    hosts = sorted(path.parent.name for path in files.directory.glob("nodes/*/effective-config.toml"))[:32]
    result = {host: files.read(f"nodes/{host}/effective-config.toml", "", _cut) for host in hosts}
    return {host: text for host, text in result.items() if text is not None}


def _list_files(directory: Path, limit: int = 60) -> tuple[tuple[str, int], ...]:
    result = sorted(path for path in directory.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(directory)), path.stat().st_size) for path in result[:limit])


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all (``whole_file``). Raises OSError."""
    with whole_file(path) as part:
        part.write_bytes(content)
    return path


def first_line(wrong: BaseException) -> str:
    """The first line of an error: Arrow's messages have several, and the first one names the problem."""
    lines = str(wrong).splitlines()
    return lines[0] if lines else type(wrong).__name__

"""What a night has come to: a table for people, markdown for a code host, JUnit for a build server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.agenda import (
    REPEAT,
    SMALLEST,
    TWIN,
    Replayed,
    Saved,
    Smallest,
    as_yaml,
    smallest,
)
from wrackline.harness.nights.journal import Result, State
from wrackline.harness.nights.spec import Night
from wrackline.harness.report.files import replace_file
from wrackline.harness.report.junit import junit


@dataclass(frozen=True, slots=True)
class Account:
    """One run of the night's file, and what followed from it."""

    name: str
    result: Result | None
    """None: it was not made."""
    again: tuple[int, int]
    """Of so many runs with the same seed so many violated as well: (violations, runs)."""
    twin: Verdict | None
    smallest: Smallest | None
    shown: tuple[int, int]
    """As ``again``, of the smallest specification."""

    @property
    def follow_up(self) -> str:
        """``again in 3 of 3; its twin: pass; 4 faults to 1 in 11 runs, shown by 3 of 3``."""
        parts = []
        if self.again[1]:
            parts.append(f"again in {self.again[0]} of {self.again[1]}")
        if self.twin is not None:
            parts.append(f"its twin: {self.twin.value}")
        if (found := self.smallest) is not None:
            before, after = found.faults
            parts.append(f"{before} faults to {after} in {found.runs} runs")
            if self.shown[1]:
                parts.append(f"which shows in {self.shown[0]} of {self.shown[1]}")
            if found.note:
                parts.append(found.note)
        return "; ".join(parts)


def accounts(night: Night, cases: Sequence[Saved], state: State, replayed: Replayed) -> Iterator[Account]:
    """One for each run of the file, in its order."""
    for case in cases:
        result = state.results.get(case.name)
        twin = state.results.get(f"{case.name}~{TWIN}")
        found = None
        if result is not None and result.violates and night.shrink.runs:
            one = smallest(case, night, state, replayed)
            found = one if isinstance(one, Smallest) else None
        yield Account(
            case.name,
            result,
            _rate(state, f"{case.name}~{REPEAT}-"),
            twin.verdict if twin else None,
            found,
            _rate(state, f"{case.name}~{SMALLEST}-"),
        )


def _rate(state: State, prefix: str) -> tuple[int, int]:
    made = [one for name, one in state.results.items() if name.startswith(prefix)]
    return sum(one.violates for one in made), len(made)


def write(folder: Path, night: Night, told: Sequence[Account]) -> list[Path]:
    """The smallest specifications, summary.markdown, and junit.xml. Raises OSError, ReportError."""
    made = [_write_smallest(folder, each) for each in told if each.smallest and each.smallest.shows]
    made.append(replace_file(folder / "summary.markdown", markdown(night, told).encode()))
    runs = {folder / "runs" / each.result.run: each.name for each in told if each.result and each.result.run}
    runs = {path: name for path, name in runs.items() if path.is_dir()}
    made.append(junit(list(runs), folder / "junit.xml", names=runs))
    return made


def _write_smallest(folder: Path, each: Account) -> Path:
    assert each.smallest is not None
    path = folder / "smallest" / f"{each.name}.yaml"
    path.parent.mkdir(exist_ok=True)
    head = f"# {each.name}, made smaller: {each.follow_up}.\n"
    return replace_file(path, (head + as_yaml(each.smallest.raw)).encode())


def markdown(night: Night, told: Sequence[Account]) -> str:
    """As GitHub and GitLab show it in the summary of a job."""
    done = [each for each in told if each.result is not None]
    bad = [each for each in done if each.result and each.result.violates]
    lines = [
        f"## {night.name}: {len(bad)} violations in {len(done)} of {len(told)} runs",
        "",
        "| run | verdict | |",
        "|---|---|---|",
    ]
    for each in sorted(told, key=lambda one: one not in bad):
        if each.result is None:
            lines.append(f"| {each.name} | not made | |")
            continue
        mark = f"**{each.result.verdict.value}**" if each in bad else each.result.verdict.value
        said = "; ".join(part for part in (each.result.headline, each.follow_up) if part)
        lines.append(f"| {each.name} | {mark} | {_cell(said)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

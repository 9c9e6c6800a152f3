"""The summary of a night: for people, for a code host, for a build server."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from upath import UPath

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.journal import Result, Signature, State
from wrackline.harness.nights.queue import (
    REPEAT,
    SMALLEST,
    TWIN,
    Replayed,
    Saved,
    Smallest,
    as_yaml,
    smallest,
)
from wrackline.harness.nights.spec import Night
from wrackline.harness.notifications.codehost import code_quality, in_repository, markdown
from wrackline.harness.notifications.run_summary import RunSummary
from wrackline.harness.records import NotKnown, Record, known_incidents, night_of, record
from wrackline.harness.report.junit import junit
from wrackline.harness.report.read.files import replace_file


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
    file: str
    """The specification's; empty where it is not known."""

    @property
    def follow_up(self) -> str:
        """``again in 3 of 3; its twin: pass; 4 faults to 1 in 11 runs, shown by 3 of 3``."""
        parts = []
        if self.again[1]:
            parts.append(f"again in {self.again[0]} of {self.again[1]}")
        if self.twin is not None:
            parts.append(f"its twin: {self.twin.value}")
        if (result := self.smallest) is not None and result.runs:
            before, after = result.faults
            so_far = " so far" if result.wanted else ""
            parts.append(f"{before} faults to {after} in {result.runs} runs{so_far}")
            if self.shown[1]:
                parts.append(f"which shows in {self.shown[0]} of {self.shown[1]}")
            if result.note:
                parts.append(result.note)
        return "; ".join(parts)


def accounts(night: Night, cases: Sequence[Saved], state: State, replayed: Replayed) -> Iterator[Account]:
    """One for each run of the file, in its order."""
    for case in cases:
        result = state.results.get(case.name)
        twin = state.results.get(f"{case.name}~{TWIN}")
        found = None
        if result is not None and result.violates and night.shrink.runs and case.campaign is None:
            found = smallest(case, night, state, replayed)
        yield Account(
            case.name,
            result,
            _rate(state, f"{case.name}~{REPEAT}-"),
            twin.verdict if twin else None,
            found,
            _rate(state, f"{case.name}~{SMALLEST}-"),
            case.file,
        )


def _rate(state: State, prefix: str) -> tuple[int, int]:
    made = [one for name, one in state.results.items() if name.startswith(prefix)]
    return sum(one.violates for one in made), len(made)


def summarized(folder: Path, told: Sequence[Account], known: Container[Signature]) -> list[RunSummary]:
    """Returns the runs of a night as code hosts, metrics and chats need them. ``known``: signatures of
    violations that are not new."""
    night = night_of(UPath(folder))
    worked_on = _worked_on(folder.parents[1])
    made = []
    for each in told:
        result = each.result
        run = folder / "runs" / result.run if result and result.run else None
        found = record(run, night) if run and run.is_dir() else None
        report = run / "report.html" if run else None
        made.append(
            RunSummary(
                each.name,
                result.verdict if result else None,
                result.headline if result else "",
                each.follow_up,
                in_repository(each.file) if each.file else "",
                found,
                report if report and report.exists() else None,
                bool(result and result.violates and found and _is_news(found, known, worked_on)),
            )
        )
    return made


def _is_news(one: Record, known: Container[Signature], worked_on: Container[str]) -> bool:
    """Neither expected, nor told before, nor worked on by somebody."""
    if one.as_expected or one.signature in known:
        return False
    return not (one.incident_ids and all(each in worked_on for each in one.incident_ids))


def _worked_on(results: Path) -> Container[str]:
    """A list that cannot be read keeps nobody from being told; `wrackline site build` says what is wrong."""
    try:
        return known_incidents(results)
    except NotKnown:
        return ()


def write(folder: Path, night: Night, told: Sequence[Account], summaries: Sequence[RunSummary]) -> list[Path]:
    """The smallest specifications, summary.markdown, codequality.json and junit.xml. Raises OSError,
    ReportError."""
    made = [_write_smallest(folder, each) for each in told if each.smallest and each.smallest.shows]
    made.append(replace_file(folder / "summary.markdown", markdown(night.name, summaries).encode()))
    made.append(replace_file(folder / "codequality.json", code_quality(summaries)))
    names: dict[Path, str] = {}
    good: dict[Path, bool | None] = {}
    without: dict[str, str] = {}
    for each in summaries:
        if each.record is not None:
            folder_of_run = Path(str(each.record.folder))
            names[folder_of_run], good[folder_of_run] = each.name, each.record.good
        else:
            without[each.name] = each.headline if each.verdict else ""
    made.append(junit(list(names), folder / "junit.xml", names=names, without=without, good=good))
    return made


def _write_smallest(folder: Path, each: Account) -> Path:
    assert each.smallest is not None
    path = folder / "smallest" / f"{each.name}.yaml"
    path.parent.mkdir(exist_ok=True)
    head = f"# {each.name}, made smaller: {each.follow_up}.\n"
    return replace_file(path, (head + as_yaml(each.smallest.raw)).encode())

"""The judging of a run: from a recorded run to its verdict and report; and the verdict of a run that broke
down before it began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from wrackline.checkers.findings import EXIT_CODES, Verdict
from wrackline.checkers.inputs.broken import part_of_the_judge
from wrackline.checkers.inputs.runs import AnalysisError
from wrackline.checkers.verdict.seal import sealed, why_broken
from wrackline.harness.run.incidents.incident_logs import add_lines
from wrackline.history import read_info

if TYPE_CHECKING:
    from wrackline.checkers.analysis import Elsewhere
    from wrackline.harness.run.live.outcome import Outcome

# What judges and what draws takes half a second of the processor to import, for which neither
# `wrackline --help` nor the start of a run should wait. It is imported where it is used.

VERDICT_JSON = "verdict.json"
_NAMED = 3
"""Runs, in the line that says how they are judged."""
_WORST_FIRST = (
    Verdict.VIOLATION,
    Verdict.NOT_REPRODUCED,
    Verdict.INFRASTRUCTURE,
    Verdict.INCONCLUSIVE,
    Verdict.PASS,
    Verdict.REPRODUCED,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A run that was judged: its folder, its verdict, its report."""

    run_dir: Path
    verdict: Mapping[str, Any]
    """Content of verdict.json."""
    report: Path | None
    address: str = ""
    """Of the run, where it is not on this machine; its folder here is gone then."""

    @property
    def word(self) -> Verdict:
        return Verdict(self.verdict["verdict"])

    @property
    def line(self) -> str:
        """``violation     20260101T...-demo-acks-all-12ab  headline``."""
        return f"{self.word.value:<14} {self.run_dir.name}  {self.verdict.get('headline', '')}"

    @property
    def shown_report(self) -> str:
        """Returns the path of the report for a person; empty when there is none."""
        if self.report is None:
            return ""
        return f"{self.address}/{self.report.name}" if self.address else str(self.report)


def _silent(_line: str) -> None:
    pass


def prepare() -> None:
    """Import what judges and what draws, and compile the templates, before there is anything to judge."""
    import wrackline.checkers.analysis
    import wrackline.checkers.jvm.referee  # noqa: F401
    from wrackline.checkers.checks.registry import not_looked_for
    from wrackline.harness.report.render import TEMPLATES
    from wrackline.harness.run.invariants import import_simulator

    not_looked_for()  # it reads the sources of all checks, once
    TEMPLATES.compile_all()
    import_simulator()


def judge(
    run_dirs: Sequence[Path],
    *,
    contract: str | None = None,
    engine: str = "auto",
    master: str = "local[*]",
    properties: Mapping[str, str] = MappingProxyType({}),
    elsewhere: Elsewhere | None = None,
    around: Callable[[Path], AbstractContextManager[object]] = nullcontext,
    progress: Callable[[str], None] = _silent,
    status: Callable[[str], None] = _silent,
) -> list[Judged]:
    """Analyse runs together and write their reports. With a ``contract`` they are judged by that one for
    once: their own verdicts and reports stay as they are. ``engine``: a wrackline.checkers.analysis.Engine.
    ``properties``: Spark's own. ``elsewhere``:
    what is not in the runs' directories. ``around`` is entered with each run that was judged, while what
    others say of its findings is added and its report is written. ``status`` is told what is being judged and
    how far it is, ``progress`` what stays worth knowing.

    Raises HistoryError or AnalysisError for a history that cannot be judged, UnknownContract,
    SparkUnavailable. The verdicts of the others are reported to ``progress`` before, and their reports are
    written."""
    from wrackline.checkers.analysis import NOTHING_ELSEWHERE, analyze

    def reported(run_dir: Path, verdict: dict[str, Any], of: str) -> Judged:
        with around(run_dir):
            status(f"judging {run_dir.name} {of}: invariants, the nodes' logs, Knossos")
            _add_reasons(run_dir, verdict, contract, progress)
            status(f"writing the report of {run_dir.name} {of}")
            return Judged(run_dir, verdict, _report(run_dir, progress, explained=elsewhere is None))

    try:
        verdicts = analyze(
            list(run_dirs),
            contract=contract,
            engine=engine,
            master=master,
            properties=properties,
            elsewhere=elsewhere or NOTHING_ELSEWHERE,
            progress=progress,
            status=lambda line: status(f"judging {line}"),
        )
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(_not_judged(run_dirs)) from stopped
    except AnalysisError as error:
        for number, (run_dir, verdict) in enumerate(error.judged.items(), 1):
            progress(reported(run_dir, verdict, f"({number} of {len(error.judged)})").line)
        raise
    return [
        reported(run_dir, verdict, f"({number} of {len(run_dirs)})")
        for number, (run_dir, verdict) in enumerate(zip(run_dirs, verdicts, strict=True), 1)
    ]


def judge_with_progress(run_dirs: Sequence[Path], **arguments: Any) -> list[Judged]:
    """Judge as `judge` does, while standard error shows how far it is."""
    from wrackline.harness.run.live.progress import on_stderr

    with on_stderr() as progress:
        return judge(run_dirs, progress=progress.say, status=progress.status, **arguments)


def judge_outcomes(outcomes: Sequence[Outcome], **arguments: Any) -> list[Judged]:
    """Judge runs that were just made, together and in order; one that broke down is judged by its
    troubles."""
    driven = [each.run_dir for each in outcomes if each.driven]
    judged = judge_with_progress(driven, **arguments) if driven else []
    by_folder = {each.run_dir: each for each in judged}
    return [by_folder.get(each.run_dir) or broken_down(each.run_dir, each.troubles) for each in outcomes]


def _not_judged(run_dirs: Sequence[Path]) -> str:
    """Returns the message for a person who has stopped the judging."""
    named = " ".join(map(str, run_dirs[:_NAMED]))
    more = f", and {len(run_dirs) - _NAMED} more" if len(run_dirs) > _NAMED else ""
    return f"stopped while judging, and no verdict was written; `wrackline analyze {named}`{more} begins anew"


def _add_reasons(
    run_dir: Path, verdict: dict[str, Any], contract: str | None, progress: Callable[[str], None]
) -> None:
    """Adds to the verdict what others say of the findings: Knossos, where it is installed, of each witness;
    the nodes' own files, of the incidents; the invariants, of the nodes' traces."""
    from wrackline.checkers.jvm.referee import lines, referee, summary
    from wrackline.harness.report.read.files import replace_file
    from wrackline.harness.run.invariants import bound, invariants_of, reasons

    info = read_info(run_dir)
    with part_of_the_judge("the referee"):
        answers = referee(run_dir, run_dir / "findings.parquet", progress=progress)
    with part_of_the_judge("the nodes' lines of an incident"):
        lines_found = add_lines(run_dir, verdict, info.started_at, info.nodes)
    with part_of_the_judge("the invariants"):
        invariants = invariants_of(run_dir, info)
    if not answers and not lines_found and invariants is None:
        return
    if answers:
        verdict["referee"] = summary(answers)
    broken: list[str] = []
    if invariants is not None:
        verdict["invariants"] = invariants
        broken = reasons(invariants)
        if broken and info.invariants_bind and contract is None:
            verdict |= bound(verdict, invariants)
    verdict["reasons"] = [*verdict["reasons"], *broken, *lines(answers)]
    verdict |= sealed(run_dir, verdict)
    name = VERDICT_JSON if contract is None else f"verdict.{contract}.json"
    replace_file(run_dir / name, orjson.dumps(verdict, option=orjson.OPT_INDENT_2) + b"\n")


def _report(run_dir: Path, progress: Callable[[str], None], *, explained: bool = True) -> Path | None:
    """Writes the report; None when the run has no verdict of its own yet (it was judged by another contract
    only), or when its report could not be written: the verdict stands without it. ``explained``: false where
    the analysis did not have the history in the run's folder, as it is there now."""
    if read_verdict(run_dir) is None:
        return None
    from wrackline.checkers.explain.step import explain
    from wrackline.harness.report import ReportError, write_report

    try:
        if not explained:
            explain(run_dir)
        return write_report(run_dir)
    except (ReportError, OSError) as error:
        progress(f"{run_dir.name}: the report could not be written: {error}")
        return None


def broken_down(run_dir: Path, troubles: Sequence[str]) -> Judged:
    """The verdict of a run in which no operation was recorded, so there is nothing to analyse."""
    info = read_info(run_dir)
    verdict: dict[str, Any] = {
        "test_id": info.test_id,
        "name": info.name,
        "verdict": Verdict.INFRASTRUCTURE.value,
        "exit_code": EXIT_CODES[Verdict.INFRASTRUCTURE],
        "headline": troubles[0],
        "reasons": list(troubles),
        "contract": {"name": "none", "row": "", "promise": "nothing was tested", "because": []},
        "incidents": [],
        "incident_counts": {},
        "anomalies": [],
        "conditions": [],
        "faults": [],
        "counts": {
            "operations": 0,
            "ok": 0,
            "fail": 0,
            "info": 0,
            "acked_records": 0,
            "read_records": 0,
            "sends_by_error": {},
        },
        "engine": {"name": "", "seconds": 0.0},
    }
    metrics: dict[str, Any] = {
        "seconds": [],
        "availability": [],
        "latency": {},
        "longest_gap_ms": None,
        "phases": [],
    }
    (run_dir / "metrics.json").write_bytes(orjson.dumps(metrics) + b"\n")
    verdict = sealed(run_dir, verdict)
    (run_dir / VERDICT_JSON).write_bytes(orjson.dumps(verdict, option=orjson.OPT_INDENT_2) + b"\n")
    return Judged(run_dir, verdict, _report(run_dir, _silent))


def read_verdict(run_dir: Path) -> dict[str, Any] | None:
    """A run's verdict.json, or None when it was not judged yet (or the file cannot be read, or something was
    changed since)."""
    try:
        verdict = orjson.loads((run_dir / VERDICT_JSON).read_bytes())
        if not isinstance(verdict, dict) or why_broken(run_dir, verdict):
            return None
    except (OSError, orjson.JSONDecodeError):
        return None
    return verdict if verdict.get("verdict") in set(Verdict) else None


def exit_code(words: Iterable[Verdict]) -> int:
    """The exit code of several runs is that of the worst."""
    result = set(words)
    return next((EXIT_CODES[word] for word in _WORST_FIRST if word in result), 0)

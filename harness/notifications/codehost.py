"""Runs as GitHub and GitLab show them: a summary in markdown, annotations, code quality.

GitHub takes annotations as lines on standard output (docs.github.com, "Workflow commands"), and the summary
in the file that GITHUB_STEP_SUMMARY names. GitLab takes a code quality report (Code Climate's format).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson

from wrackline.checkers.findings import Verdict
from wrackline.harness.notifications.run_summary import RunSummary

SUMMARY_BYTES = 1 << 20
"""GitHub refuses the summary of a step that is larger."""
_SEVERITIES = {
    Verdict.VIOLATION: "blocker",
    Verdict.NOT_REPRODUCED: "critical",
    Verdict.INFRASTRUCTURE: "major",
    Verdict.INCONCLUSIVE: "minor",
}
_LONGEST = 4000


def tell(title: str, summaries: Sequence[RunSummary], say: Callable[[str], None]) -> None:
    """Writes annotations by ``say`` and the summary where a job of GitHub Actions runs. Elsewhere nothing."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in workflow_commands(summaries):
            say(line)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary).open("ab") as file:
                room = SUMMARY_BYTES - file.tell()
                file.write(markdown(title, summaries).encode()[: max(room, 0)])
        except OSError as error:
            say(f"{summary}: the summary could not be written: {error.strerror or error}")


def workflow_commands(summaries: Sequence[RunSummary]) -> Iterator[str]:
    """Annotations for GitHub, the worst first: it shows ten of each kind for a step."""
    for each in worst_first(summaries):
        if each.verdict is None or each.good:
            continue
        kind = "error" if each.bad or each.verdict is Verdict.INFRASTRUCTURE else "warning"
        title = f"{each.verdict.value}: {each.name}"
        file = f"file={_property(each.file)},line=1," if each.file else ""
        yield f"::{kind} {file}title={_property(title)}::{_data(each.said[:_LONGEST])}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def code_quality(summaries: Sequence[RunSummary]) -> bytes:
    """Returns the JSON that GitLab shows beside a merge request. An issue keeps its fingerprint as long as
    a run shows the same anomalies, so GitLab knows which are new and which are gone."""
    issues = []
    for each in worst_first(summaries):
        if each.verdict is None or each.good:
            continue
        shown = each.record.violations if each.record else ()
        told = orjson.dumps([each.name, each.verdict, *shown])
        issues.append(
            {
                "description": f"{each.name}: {each.verdict.value}: {each.said}"[:_LONGEST],
                "check_name": "+".join(shown) or each.verdict.value,
                "fingerprint": hashlib.sha256(told).hexdigest(),
                "severity": _SEVERITIES.get(each.verdict, "critical"),
                "location": {"path": each.file or each.name, "lines": {"begin": 1}},
            }
        )
    return orjson.dumps(issues, option=orjson.OPT_INDENT_2) + b"\n"


def markdown(title: str, summaries: Sequence[RunSummary]) -> str:
    """Returns the Markdown that GitHub and GitLab show in the summary of a job: bad runs first."""
    done = [each for each in summaries if each.verdict is not None]
    bad = sum(each.violates for each in done)
    lines = [
        f"## {title}: {bad} violation{'' if bad == 1 else 's'} in {len(done)} of {len(summaries)} runs",
        "",
        "| run | verdict | |",
        "|---|---|---|",
    ]
    for each in worst_first(summaries):
        mark = f"**{each.word}**{' (new)' if each.new else ''}" if each.bad else each.word
        lines.append(f"| {each.name} | {mark} | {_cell(each.said)} |")
    return "\n".join(lines) + "\n"


def worst_first(summaries: Sequence[RunSummary]) -> list[RunSummary]:
    """Bad, then broken down or undecided, then the rest; each in its order."""

    def rank(one: RunSummary) -> int:
        if one.bad:
            return 0
        return 2 if one.verdict is None or one.good else 1

    return sorted(summaries, key=rank)


def in_repository(file: str | Path) -> str:
    """A file as code hosts name it: relative to the checkout, which is where the job runs unless it says so
    otherwise. Empty where it lies elsewhere."""
    top = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or Path.cwd()
    try:
        return Path(file).resolve().relative_to(Path(top).resolve()).as_posix()
    except ValueError:
        return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

"""The report of a run as one HTML file that needs no network, and its JUnit file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import jinja2
import orjson

from harness.report import text
from harness.report.junit import junit
from harness.report.model import Report, build
from harness.report.summary import verdict_class

_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("harness.report", "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    seconds=text.seconds,
    duration=text.duration,
    milliseconds=text.milliseconds,
    number=text.number,
    size=text.size,
    value_label=text.value_label,
    printable=text.printable,
    verdict_class=verdict_class,
)
_ENVIRONMENT.globals.update(plural=text.plural)


def write_report(run_dir: Path) -> Path:
    """Write ``report.html``, ``explanations.json`` and ``junit.xml`` into a run directory from the files in it; the
    path of the first.

    Raises ReportError when the folder is no run, OSError when it cannot be written to.
    """
    report = build(run_dir)
    html = render(report)
    junit([run_dir], run_dir / "junit.xml")
    (run_dir / "explanations.json").write_bytes(
        orjson.dumps(explanations(report), option=orjson.OPT_INDENT_2) + b"\n"
    )
    return _replace(run_dir / "report.html", html)


def explanations(report: Report) -> list[dict[str, Any]]:
    """Why the findings that the report draws are contradictions, as data: operations, edges, facts."""
    return [
        {
            "anomaly": item.finding.anomaly,
            "topic": item.finding.topic,
            "partition": item.finding.partition,
            "offset": item.finding.offset,
            "value": item.finding.value,
            "sentence": item.finding.explanation,
            **item.explained.plain(),
        }
        for _, groups in report.evidence
        for group in groups
        for item in group.items
        if item.explained is not None
    ]


def render(report: Report) -> str:
    # Jinja escapes markup; characters that no HTML may carry can come in through any text of a run
    return text.printable(_ENVIRONMENT.get_template("report.html.j2").render(report=report))


def _replace(path: Path, content: str) -> Path:
    """A reader never sees half a report."""
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_text(content, encoding="utf-8", errors="replace")
    return partial.replace(path)

"""The report of a run as one HTML file that needs no network, and its JUnit file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import jinja2
import orjson
from markupsafe import Markup

from wrackline.harness.report import text
from wrackline.harness.report.junit import junit
from wrackline.harness.report.model import Report, build
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.files import replace_file
from wrackline.harness.report.summary import verdict_class
from wrackline.pages import policy

_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("wrackline.harness.report", "templates"),
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
_INLINE: Final = ("look.html.j2", "style.html.j2", "script.html.j2")
"""What the page brings along; nothing of a run is in it."""


def write_report(run_dir: Path) -> Path:
    """Write ``report.html``, ``explanations.json`` and ``junit.xml`` into a run directory from the files in
    it. Returns the path of the first.

    Raises ReportError when the folder is no run, OSError when it cannot be written to.
    """
    report = build(run_dir)
    why = orjson.dumps(explanations(report), option=orjson.OPT_INDENT_2) + b"\n"
    html = render(report).encode("utf-8", "replace")
    junit([run_dir], run_dir / "junit.xml")
    replace_file(run_dir / "explanations.json", why)
    return replace_file(run_dir / "report.html", html)


def explanations(report: Report) -> list[dict[str, Any]]:
    """Why findings are contradictions, as data. Each has its sentence, the operations that prove it, the
    edges between them or what each of them shows, the faults around it, and what each log and reader has
    around its offset."""
    return [
        {
            "anomaly": item.finding.anomaly,
            "topic": item.finding.topic,
            "partition": item.finding.partition,
            "offset": item.finding.offset,
            "value": item.finding.value,
            "where": item.finding.where,
            "sentence": item.finding.explanation,
            **item.explained.plain(),
            "faults": [_fault(fault) for fault in item.faults],
            "neighbourhood": item.grid.plain() if item.grid is not None else None,
        }
        for _, groups in report.evidence
        for group in groups
        for item in group.items
        if item.explained is not None
    ]


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "id": fault.id,
        "fault": fault.name,
        "targets": list(fault.targets),
        "role": fault.role,
        "begin_ns": fault.begin_ns,
        "ended_ns": fault.ended_ns,
        "proved": fault.proved,
    }


def render(report: Report) -> str:
    # Jinja escapes markup; characters that no HTML may carry can come in through any text of a run
    with text.labels_of(report.system):
        page = _ENVIRONMENT.get_template("report.html.j2").render(report=report, policy=_policy())
        return text.printable(page)


def _policy() -> Markup:
    loader = _ENVIRONMENT.loader
    assert loader is not None
    return policy("".join(loader.get_source(_ENVIRONMENT, name)[0] for name in _INLINE))

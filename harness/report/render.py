"""The report of a run as one HTML file that needs no network, and its JUnit file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import jinja2

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
    """Write ``report.html`` and ``junit.xml`` into a run directory from the files in it; the former's path.

    Raises ReportError when the folder is no run, OSError when it cannot be written to.
    """
    html = render(build(run_dir))
    junit([run_dir], run_dir / "junit.xml")
    return _replace(run_dir / "report.html", html)


def render(report: Report) -> str:
    # Jinja escapes markup; characters that no HTML may carry can come in through any text of a run
    return text.printable(_ENVIRONMENT.get_template("report.html.j2").render(report=report))


def _replace(path: Path, content: str) -> Path:
    """A reader never sees half a report."""
    partial = path.with_suffix(path.suffix + ".part")
    partial.write_text(content, encoding="utf-8", errors="replace")
    return partial.replace(path)

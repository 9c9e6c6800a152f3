"""The report of a run as one HTML file that needs no network, and its JUnit file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from markupsafe import Markup

from wrackline.harness.report.junit import junit
from wrackline.harness.report.model import Report, build
from wrackline.harness.report.read.files import replace_file
from wrackline.harness.report.summary import verdict_class
from wrackline.history import wording as text
from wrackline.pages.template import environment, policy, source

_ENVIRONMENT: Final = environment("wrackline.harness.report", "wrackline.pages")
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
    """Write ``report.html`` and ``junit.xml`` into a run directory from the files in it. Returns the path of
    the first.

    Raises ReportError when the folder is no run, OSError when it cannot be written to.
    """
    report = build(run_dir)
    html = render(report).encode("utf-8", "replace")
    junit([run_dir], run_dir / "junit.xml")
    return replace_file(run_dir / "report.html", html)


def compile_templates() -> None:
    """Those that a report is made of; they stay in memory."""
    for name in _ENVIRONMENT.list_templates():
        _ENVIRONMENT.get_template(name)


def render(report: Report) -> str:
    # Jinja escapes markup; characters that no HTML may carry can come in through any text of a run
    with text.labels_of(report.system):
        page = _ENVIRONMENT.get_template("report.html.j2").render(report=report, policy=_policy())
        return text.printable(page)


def _policy() -> Markup:
    return policy("".join(source(_ENVIRONMENT, name) for name in _INLINE))

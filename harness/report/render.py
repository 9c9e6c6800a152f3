"""The report of a run as one HTML file that needs no network, and its JUnit file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wrackline.harness.report.junit import junit
from wrackline.harness.report.model import Report, build
from wrackline.harness.report.read.files import CAMPAIGN, ReportError, replace_file
from wrackline.harness.report.summary import verdict_class
from wrackline.history.wording import labels_of, value_label
from wrackline.pages.template import Templates

TEMPLATES: Final = Templates("wrackline.harness.report", value_label=value_label, verdict_class=verdict_class)


def write_report(run_dir: Path) -> Path:
    """Write ``report.html`` and ``junit.xml`` into a run directory from the files in it. Returns the path of
    the first.

    Raises ReportError when the folder is no run, OSError when it cannot be written to.
    """
    if (run_dir / CAMPAIGN).exists():
        raise ReportError(
            f"{run_dir}: a campaign in virtual time, whose report.html no run's report replaces"
        )
    report = build(run_dir)
    html = render(report).encode("utf-8", "replace")
    junit([run_dir], run_dir / "junit.xml")
    return replace_file(run_dir / "report.html", html)


def render(report: Report) -> str:
    with labels_of(report.system):
        return TEMPLATES.render("report.html.j2", report=report)

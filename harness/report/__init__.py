"""The report: what a run showed, for a person (HTML) and for a build server (JUnit)."""

from harness.report.files import ReportError
from harness.report.junit import junit
from harness.report.render import write_report

__all__ = ["ReportError", "junit", "write_report"]

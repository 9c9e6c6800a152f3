"""The report: what a run showed, for a person (HTML) and for a build server (JUnit)."""

from wrackline.harness.report.junit import junit
from wrackline.harness.report.read.files import ReportError
from wrackline.harness.report.render import write_report

__all__ = ["ReportError", "junit", "write_report"]

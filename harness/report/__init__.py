"""The report: what a run showed, for a person (HTML) and for a build server (JUnit)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wrackline.harness.report.read.files import ReportError
    from wrackline.harness.report.render import write_report

__all__ = ["ReportError", "write_report"]


def __getattr__(name: str) -> Any:
    """Late: pages of many runs take words and readers from here, and draw no report."""
    if name == "ReportError":
        from wrackline.harness.report.read.files import ReportError

        return ReportError
    if name == "write_report":
        from wrackline.harness.report.render import write_report

        return write_report
    raise AttributeError(name)

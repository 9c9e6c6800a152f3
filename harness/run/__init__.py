"""One run: plan, deploy, drive, break, heal, read, judge (DESIGN.md section 6)."""

from harness.run.judge import Judged, judge
from harness.run.runner import Interrupted, Options, Outcome, run

__all__ = ["Interrupted", "Judged", "Options", "Outcome", "judge", "run"]

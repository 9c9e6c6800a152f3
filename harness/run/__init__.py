"""One run: plan, deploy, drive, break, heal, read, judge (docs/architecture.md section 6)."""

from wrackline.harness.run.judge import Judged, judge
from wrackline.harness.run.outcome import CannotRecord, Interrupted, Options, Outcome
from wrackline.harness.run.runner import run

__all__ = ["CannotRecord", "Interrupted", "Judged", "Options", "Outcome", "judge", "run"]

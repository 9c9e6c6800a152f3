"""Groups and offsets (docs/anomalies.md section 5): what consumers committed, what members of groups were
given, and where their generations began. One walk over a run's events finds all of it."""

from wrackline.checkers.anomalies.groups.anomalies import GROUPS
from wrackline.checkers.anomalies.groups.walk import KINDS

__all__ = ["GROUPS", "KINDS"]

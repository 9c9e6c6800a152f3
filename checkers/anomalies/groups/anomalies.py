"""What the walk over groups finds (docs/anomalies.md section 5)."""

from __future__ import annotations

from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER, By, ExplainedBy, FurtherRows
from wrackline.checkers.anomalies.groups.walk import KINDS, READ, find, parts
from wrackline.checkers.anomalies.registry import found_by
from wrackline.checkers.anomalies.walks import Walk
from wrackline.checkers.verdict.anomaly import Family, Promise

GROUPS = Walk(name="groups", needs=KINDS, reads=READ, find=find, parts=parts)

found_by(
    GROUPS,
    "commit-regression",
    Family.GROUPS,
    "–",
    "a committed offset goes back, and no consumer had sought back",
    breaks=Promise.ALWAYS,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "commit-beyond-end",
    Family.GROUPS,
    "–",
    "an offset was committed past the end of the log",
    breaks=Promise.CONSUMERS_GET_ALL,
    explained_by=ExplainedBy(By.FACTS, further_rows=FurtherRows.FINAL_READ),
)
found_by(
    GROUPS,
    "zombie-commit",
    Family.GROUPS,
    "–",
    "the commit of a member that its group had fenced took effect",
    breaks=Promise.ALWAYS,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "group-skip",
    Family.GROUPS,
    "–",
    "a group committed past a record that no member of it was given",
    breaks=Promise.CONSUMERS_GET_ALL,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "position-skip",
    Family.GROUPS,
    "–",
    "a member of a group went past a record that it was not given, and was given nothing behind it",
    breaks=Promise.CONSUMERS_GET_ALL,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "forgotten-commit",
    Family.GROUPS,
    "–",
    "a generation of a group begins before what the group had committed",
    breaks=Promise.CONSUMERS_GET_ALL,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "uncommitted-start",
    Family.GROUPS,
    "–",
    "a generation of a group begins past what the group had committed",
    breaks=Promise.CONSUMERS_GET_ALL,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "phantom-commit",
    Family.GROUPS,
    "–",
    "an answer names a committed offset that nobody committed",
    breaks=Promise.ALWAYS,
    explained_by=IN_ANY_ORDER,
)
found_by(
    GROUPS,
    "double-owner",
    Family.GROUPS,
    "–",
    "a partition is owned by two members of a group at once",
    breaks=Promise.ALWAYS,
    explained_by=IN_ANY_ORDER,
)

"""Groups and offsets (docs/anomalies.md section 5): what consumers committed, what members of groups were
given, and where their generations began. One walk over a run's events finds all of it."""

from __future__ import annotations

from wrackline.checkers.anomalies.groups.walk import KINDS, READ, find, parts
from wrackline.checkers.checks.explained_by import By, ExplainedBy, FurtherRows
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk
from wrackline.checkers.verdict.anomaly import Family, Promise

GROUPS = Walk(name="groups", needs=KINDS, reads=READ, find=find, parts=parts)
ALWAYS, GET_ALL = Promise.ALWAYS, Promise.CONSUMERS_GET_ALL
PAST_THE_END = ExplainedBy(By.FACTS, further_rows=FurtherRows.FINAL_READ)

found_by(
    GROUPS,
    Family.GROUPS,
    {
        "commit-regression": WalkAnomaly(
            "a committed offset goes back, and no consumer had sought back", ALWAYS
        ),
        "deposed-answer": WalkAnomaly(
            "a coordinator that had been replaced answered with an older committed offset",
            Promise.CURRENT_COORDINATOR,
        ),
        "hidden-commit": WalkAnomaly(
            "a present coordinator answered without a commit that had succeeded, and knew it later",
            ALWAYS,
        ),
        "vanished-commit": WalkAnomaly(
            "a commit that had succeeded is not there, and no later answer shows it", GET_ALL
        ),
        "commit-beyond-end": WalkAnomaly(
            "an offset was committed past the end of the log", GET_ALL, PAST_THE_END
        ),
        "zombie-commit": WalkAnomaly("the commit of a member that its group had fenced took effect", ALWAYS),
        "group-skip": WalkAnomaly("a group committed past a record that no member of it was given", GET_ALL),
        "position-skip": WalkAnomaly(
            "a member of a group went past a record that it was not given, and was given nothing behind it",
            GET_ALL,
        ),
        "forgotten-commit": WalkAnomaly(
            "a generation of a group begins before what the group had committed", GET_ALL
        ),
        "uncommitted-start": WalkAnomaly(
            "a generation of a group begins past what the group had committed", GET_ALL
        ),
        "phantom-commit": WalkAnomaly("an answer names a committed offset that nobody committed", ALWAYS),
        "double-owner": WalkAnomaly("a partition is owned by two members of a group at once", ALWAYS),
    },
)

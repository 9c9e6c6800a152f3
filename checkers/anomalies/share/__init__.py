"""Share groups (docs/anomalies.md section 5, KIP-932): what their members were given and acknowledged, and
how far the groups came. One walk over a run's events finds all of it."""

from __future__ import annotations

from wrackline.checkers.anomalies.share.walk import KINDS, READ, find
from wrackline.checkers.checks.explained_by import By, ExplainedBy, FurtherRows
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk
from wrackline.checkers.verdict.anomaly import Family, Promise

SHARE_GROUPS = Walk(name="share groups", needs=KINDS, reads=READ, find=find)
GET_ALL, MEMORY = Promise.CONSUMERS_GET_ALL, Promise.LEADERS_MEMORY
IN_THE_LOG = ExplainedBy(By.FACTS, further_rows=FurtherRows.FINAL_READ)

found_by(
    SHARE_GROUPS,
    Family.SHARE_GROUPS,
    {
        "final-redelivery": WalkAnomaly(
            "a share group was given a record that it had accepted or rejected before", GET_ALL
        ),
        "double-final": WalkAnomaly(
            "a record was accepted or rejected twice, each time within its own lock", MEMORY
        ),
        "delivery-count": WalkAnomaly(
            "a delivery count is past the limit, or has forgotten a delivery that was released", GET_ALL
        ),
        "delivery-regression": WalkAnomaly(
            "a delivery count is less than that of an earlier delivery to the group", MEMORY
        ),
        "lock-overlap": WalkAnomaly(
            "a record was given to a member while another one had it, within the lock of that", MEMORY
        ),
        "lost-renewal": WalkAnomaly(
            "a member renewed the lock of a record, polled on, and was not given the record again",
            Promise.ALWAYS,
        ),
        "share-skip": WalkAnomaly(
            "a share group went past a record that is neither final nor out of deliveries",
            GET_ALL,
            IN_THE_LOG,
        ),
        "share-lag": WalkAnomaly(
            "a share group that is given nothing more has records left after healing", GET_ALL
        ),
        "archived-unrefused": WalkAnomaly(
            "a share group is done with a record that nobody accepted or rejected: its deliveries are used "
            "up, or may be"
        ),
    },
)

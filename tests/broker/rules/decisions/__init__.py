"""The real rules behind the golden tables: for each table a function that asks the rule by a row's facts."""

from __future__ import annotations

from collections.abc import Callable

from tests.broker.rules.decisions import (
    cluster,
    elections,
    features,
    isr,
    logs,
    quorum,
    reassignment,
    requests,
    zookeeper,
)
from tests.broker.rules.golden_tables import Decide, Row
from wrackline.broker.rules.profile import Rules

TABLES: dict[str, Decide] = {
    **logs.TABLES,
    **isr.TABLES,
    **requests.TABLES,
    **elections.TABLES,
    **reassignment.TABLES,
    **cluster.TABLES,
    **quorum.TABLES,
    **features.TABLES,
    **zookeeper.TABLES,
}
PROFILES = ("kip966", "kraft35", "kip101", "zk08")
SWITCHES = "profile.switches"
"""The one table whose rows ask every profile."""


def decided(row: Row, rules: Callable[[str], Rules]) -> object:
    """What the rules of the row's profile decide; ``rules`` makes those of a profile."""
    if row.name == SWITCHES:
        return [getattr(rules(profile).switches, row.facts["switch"]) for profile in PROFILES]
    return TABLES[row.name](rules(row.profile), row.facts)

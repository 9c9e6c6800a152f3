"""The moments of an incident, as clients and the cluster's own history show them."""

from __future__ import annotations

from tests.checkers.verdict.test_mechanism import LAST_KNOWN_LEADER, leaders
from wrackline.checkers.verdict.incidents.moments import Kind, Moment, merged, moments_of_history

SECOND = 1_000_000_000


def test_moments_are_in_the_order_of_time() -> None:
    [change] = leaders(*LAST_KNOWN_LEADER).changes
    found = moments_of_history("log-0", "offsets 3 to 5", 8 * SECOND, change)
    assert [(one.at_ns / SECOND, one.node, one.kind, one.words) for one in found] == [
        (8, "", Kind.SEEN, "offsets 3 to 5 of log-0 last seen"),
        (9, "", Kind.VACANT, "nobody leads log-0"),
        (10, "n2", Kind.LEFT, "n2 left the ELR"),
        (12, "n1", Kind.LEFT, "n1 left the ELR"),
        (12.5, "n1", Kind.LEADER, "n1 leads log-0, elected uncleanly"),
    ]


def test_what_nobody_knows_is_no_moment() -> None:
    assert moments_of_history("log-0", "offsets 3 to 5", None, None) == ()
    assert moments_of_history("log-0", "", SECOND, None) == ()


def test_a_moment_that_is_known_twice_is_one() -> None:
    one, other = (
        Moment(2, "n3", Kind.LEADER, "n3 leads log-0"),
        Moment(1, "n3", Kind.CUT, "n3 cut log-0 at 7"),
    )
    once = [{"at_ns": 1, "node": "n3", "kind": "cut", "words": "n3 cut log-0 at 7"}, one.to_json()]
    assert merged([one.to_json()], [other, one]) == once

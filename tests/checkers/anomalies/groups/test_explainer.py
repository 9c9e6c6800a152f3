"""The walk beside the explainer: of histories that a coordinator can have answered it says nothing, and most
of the others it calls. What it misses are chains: where it takes several answers to prove which commits took
effect, and where a member begins anew in what it had before."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.checkers.anomalies.groups.explainer import Step, can_be, disturbed, drawn, events_of
from tests.checkers.anomalies.groups.walked import findings_of
from tests.checkers.histories import info

PROTOCOLS = ("eager", "cooperative", "consumer")


def called(steps: list[Step], protocol: str) -> list[str]:
    """What it says of the coordinator: that a client commits less, of its own accord, is no word of that."""
    found = findings_of(events_of(steps, protocol), info())
    return [one["anomaly"] for one in found if one["where"] != "commit" and one["anomaly"] != "double-owner"]


@pytest.mark.parametrize("seeds", [600, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_what_can_be_is_no_finding_and_what_cannot_be_is_one(seeds: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(seeds):
        protocol, base = PROTOCOLS[seed % 3], drawn(seed, PROTOCOLS[seed % 3])
        assert can_be(base, protocol), seed
        assert not called(base, protocol), seed
        if other := disturbed(base, random.Random(seed)):
            is_possible, found = can_be(other, protocol), called(other, protocol)
            assert not (is_possible and found), (seed, found)
            seen["possible" if is_possible else "called" if found else "missed"] += 1
            seen.update(set(found))
    assert seen["possible"] > 300
    assert seen["missed"] * 4 < seen["called"]
    assert all(seen[one] > 3 for one in ("forgotten-commit", "phantom-commit", "zombie-commit"))
    assert all(seen[one] > 3 for one in ("commit-regression", "uncommitted-start"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_explainer_knows_right_from_wrong(protocol: str) -> None:
    begun, commit = Step("told", "A", 1, 0), Step("commit", "A", 1, 1, 0)
    ok, unknown = Step("ok", number=0), Step("info", number=0)
    ask = Step("ask", number=1)
    one, nothing = (Step("answer", number=1, offset=offset) for offset in (1, None))
    at_0, at_1 = (Step("told", "B", 2, offset) for offset in (0, 1))
    assert can_be([begun, commit, ok, ask, one], protocol)
    assert not can_be([begun, commit, ok, ask, nothing], protocol)
    assert can_be([begun, commit, ask, ok, nothing], protocol)
    assert can_be([begun, commit, unknown, at_0, ask, nothing], protocol)
    assert not can_be([begun, commit, unknown, at_0, ask, one], protocol)
    assert can_be([begun, commit, at_1, ok], protocol)
    assert not can_be([begun, commit, at_0, ok], protocol)

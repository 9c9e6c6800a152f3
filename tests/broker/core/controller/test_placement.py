"""Placement and growth obey these laws (docs/protocol.md Z05, Z06, Z08, Z09, 2.16, C10)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.rules.placement.growth import plan_growth
from wrackline.broker.rules.placement.placement import PlacementRules

RULES = PlacementRules()


def test_the_followers_of_one_broker_spread_over_all_others() -> None:
    """Z05 and Z06: five brokers, fifteen partitions, three replicas."""
    placed = RULES.place(range(5), 15, 3)
    assert [replicas[0] for replicas in placed] == [p % 5 for p in range(15)]
    for broker in range(5):
        heirs = {replicas[1] for replicas in placed if replicas[0] == broker}
        backups = {b for replicas in placed if replicas[0] == broker for b in replicas[1:]}
        assert len(heirs) == 3
        assert backups == set(range(5)) - {broker}
    turns = ["012 123 234 340 401", "023 134 240 301 412", "034 140 201 312 423"]
    assert ["".join(map(str, replicas)) for replicas in placed] == " ".join(turns).split()


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 40), st.data())
@settings(deadline=None)
def test_placing_more_later_is_placing_all_at_once(
    brokers: int, first: int, more: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, brokers))
    together = RULES.place(range(brokers), first + more, factor)
    assert RULES.place(range(brokers), more, factor, first=first) == together[first:]
    racks = {b: f"r{b % 3}" for b in range(brokers)}
    striped = RULES.place_striped(racks, first + more, factor)
    assert RULES.place_striped(racks, more, factor, first=first) == striped[first:]


racked = st.dictionaries(
    st.integers(1, 30), st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=12
)


@given(racked, st.integers(1, 40), st.data())
@settings(deadline=None)
def test_no_two_replicas_share_a_rack_while_there_are_enough(
    racks: dict[int, str | None], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    placed = RULES.place_striped(racks, partitions, factor)
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas) <= set(racks)
        assert len({racks[b] or "" for b in replicas}) == min(
            factor, len({rack or "" for rack in racks.values()})
        )


@pytest.mark.parametrize(("per_rack", "names"), [(1, 3), (2, 3), (3, 3), (2, 2), (4, 1)])
def test_equal_racks_carry_equal_loads(per_rack: int, names: int) -> None:
    racks: dict[int, str | None] = {n: f"r{n % names}" for n in range(per_rack * names)}
    partitions = 6 * per_rack * names
    placed = RULES.place_striped(racks, partitions, min(3, len(racks)))
    leading = Counter(replicas[0] for replicas in placed)
    held = Counter(b for replicas in placed for b in replicas)
    assert max(leading.values()) - min(leading.values()) == 0
    assert max(held.values()) - min(held.values()) <= 1


def test_more_replicas_than_brokers() -> None:
    with pytest.raises(ValueError, match="3 replicas on 2 brokers"):
        RULES.place_striped({1: None, 2: None}, 1, 3)
    with pytest.raises(ValueError, match="4 replicas on 3 brokers"):
        RULES.place([1, 2, 3], 1, 4)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 60), st.data())
@settings(deadline=None)
def test_growth_moves_the_least_there_can_be(
    old: int, new: int, partitions: int, data: st.DataObject
) -> None:
    """Z09: existing level with added to within one; what moves goes to a new broker, none between old
    ones."""
    factor = data.draw(st.integers(1, old))
    existing, added = list(range(old)), list(range(old, old + new))
    placed = RULES.place(existing, partitions, factor)
    before = {TopicPartition("t", p): replicas for p, replicas in enumerate(placed)}
    moves = plan_growth(before, added, existing)
    after = {**before, **{move.tp: move.after for move in moves}}
    held = Counter(dict.fromkeys([*existing, *added], 0))
    held.update(b for replicas in after.values() for b in replicas)
    # Elders give and added take: no gap wider than one is left that a move could narrow. Between two
    # existing nothing moves, so the whole is balanced only where no elder began below the fair share.
    assert all(held[elder] - held[newcomer] <= 1 for elder in existing for newcomer in added)
    fair = -(-partitions * factor // (old + new))
    first_load = Counter(b for replicas in placed for b in replicas)
    if all(first_load[b] >= fair for b in existing):
        assert max(held.values()) - min(held.values()) <= 1
    assert sum(move.copied for move in moves) == sum(held[b] for b in added)
    for move in moves:
        assert set(move.after) - set(move.before) <= set(added)
        assert len(set(move.after)) == len(move.after) == factor
        assert set(move.before) - set(move.after), "an order alone is no reason to touch a partition"
    assert plan_growth(after, added, existing) == (), "a second time there is nothing left to do"


def test_new_brokers_take_their_share_of_leading() -> None:
    before = {TopicPartition("t", p): r for p, r in enumerate(RULES.place([1, 2, 3], 30, 3))}
    moves = plan_growth(before, [4, 5])
    after = {**before, **{move.tp: move.after for move in moves}}
    leading = Counter(replicas[0] for replicas in after.values())
    assert dict(leading) == {1: 6, 2: 6, 3: 6, 4: 6, 5: 6}


def test_growth_keeps_racks_apart() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "a"}
    before = {
        TopicPartition("t", p): r for p, r in enumerate(RULES.place_striped({1: "a", 2: "b", 3: "c"}, 12, 3))
    }
    moves = plan_growth(before, [4], racks=racks)
    for move in moves:
        assert len({racks[b] for b in move.after}) == 3
    assert {b for move in moves for b in set(move.before) - set(move.after)} == {1}, "only its own rack's"

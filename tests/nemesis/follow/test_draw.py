"""What follows is drawn from the seed and from what was reached before; pairs that were not come first."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from wrackline.nemesis.follow.coverage import merged, summary
from wrackline.nemesis.follow.draw import Draw, name_of
from wrackline.nemesis.schedule import Plan, plan
from wrackline.nemesis.spec import FollowSpec, SpecError, load
from wrackline.nemesis.targets.states import Occurrence

FAULTS = ["kill", "pause", {"fault": "power-cut", "target": "subject"}]


def spec(**more: object) -> FollowSpec:
    given = {"states": ["isr-of-one", "new-leader"], "faults": FAULTS, **more}
    here = load({"follow": given}).with_usual(lambda _: None).follow
    assert here is not None
    return here


def test_the_same_seed_and_coverage_draw_the_same() -> None:
    first, again, other = Draw(spec(), 7), Draw(spec(), 7), Draw(spec(), 8)
    drawn = [first.episode() for _ in range(20)]
    assert [again.episode() for _ in range(20)] == drawn
    assert [other.episode() for _ in range(20)] != drawn
    assert json.dumps(drawn[0].to_dict())


def test_a_pair_that_was_reached_comes_after_those_that_were_not() -> None:
    reached = {name_of("isr-of-one", one): 1 for one in spec().faults[:2]}
    draw = Draw(spec(states=["isr-of-one"], reached=reached), 1)
    assert {name_of("isr-of-one", draw.episode().fault) for _ in range(30)} == {
        "isr-of-one > power-cut subject"
    }
    draw.coverage.pairs["isr-of-one > power-cut subject"] += 1
    assert len({name_of("isr-of-one", draw.episode().fault) for _ in range(60)}) == 3
    draw.coverage.missed["isr-of-one > kill one"] += 1
    assert "isr-of-one > kill one" not in {name_of("isr-of-one", draw.episode().fault) for _ in range(60)}


def test_a_state_that_does_not_come_is_drawn_less_until_it_has_come() -> None:
    draw = Draw(spec(), 3)
    for _ in range(40):
        draw.came("isr-of-one", came=False)
    assert Counter(draw.episode().state for _ in range(100))["new-leader"] > 85
    draw.came("isr-of-one", came=True)
    assert Counter(draw.episode().state for _ in range(100))["isr-of-one"] > 40


def test_a_second_fault_is_drawn_for_what_is_there_and_what_was_tried_least_comes_first() -> None:
    there = [Occurrence("new-leader", ("log", 0), (2,)), Occurrence("isr-of-one", ("log", 1), (3,))]
    draw = Draw(spec(), 1)
    draw.coverage.pairs["new-leader > kill one"] += 1
    order = list(draw.second(there))
    assert Counter(one.state for one, _ in order) == {"new-leader": 3, "isr-of-one": 3}
    assert [fault.fault for one, fault in order if one.state == "new-leader"][-1] == "kill"


@pytest.mark.parametrize(("then", "most"), [(0.0, 0), (0.5, 3), (1.0, 3)])
def test_a_chain_of_faults_is_as_long_as_it_is_drawn(then: float, most: int) -> None:
    draw = Draw(spec(then=then), 1)
    lengths = {draw.episode().then for _ in range(60)}
    assert lengths == ({most} if then in (0, 1) else {0, 1, 2, 3})


def test_a_fault_beside_the_usual_ones_follows_its_states_alone() -> None:
    usual = load({"follow": {}}).with_usual(lambda _: None).follow
    assert usual is not None
    pairs = {
        name_of(state, Draw(usual.model_copy(update={"states": (state,)}), seed).episode().fault)
        for state in ("isr-of-one", "new-leader")
        for seed in range(200)
    }
    assert "new-leader > messages leader (Fetch)" in pairs
    assert "isr-of-one > messages leader (Fetch)" not in pairs


def test_coverages_are_added_up_and_told_in_a_line() -> None:
    one = {
        "states": {"a": 1},
        "pairs": {"a > kill": 2},
        "missed": {},
        "of": {"states": ["a", "b"], "pairs": ["a > kill"]},
    }
    other = {**one, "states": {}, "of": {"states": ["a"], "pairs": ["a > kill", "a > pause", "b > kill"]}}
    both = merged([one, other, {}])
    assert (both["states"], both["pairs"]) == ({"a": 1}, {"a > kill": 4})
    assert summary(both) == "1 of 2 states, 1 of 3 pairs"
    assert summary(merged([{}])) == summary({}) == ""


def test_a_draw_says_all_that_there_is_to_be_reached() -> None:
    assert Draw(spec(), 1).to_dict()["of"]["pairs"] == [
        f"{state} > {fault}"
        for state in ("isr-of-one", "new-leader")
        for fault in ("kill one", "pause one", "power-cut subject")
    ]


def test_a_plan_with_what_follows_survives_json() -> None:
    for given in ({}, {"faults": FAULTS, "openers": {"fenced": ["kill"]}}):
        chosen = plan(load({"follow": given}).with_usual(lambda _: None), 3, 60.0)
        assert Plan.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_what_is_not_possible_is_left_out_of_the_usual() -> None:
    here = load({"follow": {}}).with_usual(lambda one: "no power" if one.fault != "kill" else None).follow
    assert here is not None
    assert {one.fault for one in here.every_fault} == {"kill"}
    assert "moving" not in here.states
    assert "isr-of-one" in here.states


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"states": ["isr-of-two"]}, "no state 'isr-of-two'"),
        ({"openers": {"isr-of-two": ["kill"]}}, "no state 'isr-of-two'"),
        ({"faults": ["add-broker"]}, "add-broker uses a spare host up"),
        ({"duration_s": [3, 1]}, "the smaller number comes first"),
    ],
)
def test_a_mistake_is_one_line(given: dict[str, object], line: str) -> None:
    with pytest.raises(SpecError, match=line):
        load({"follow": given})

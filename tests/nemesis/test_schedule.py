"""The same specification and seed give the same plan, and mistakes are reported by name."""

from __future__ import annotations

import itertools
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.presets import PRESETS
from wrackline.nemesis.schedule import Plan, PlannedFault, plan
from wrackline.nemesis.spec import NemesisSpec, SpecError, load

RANDOM: dict[str, Any] = {
    "random": {
        "faults": [
            "kill",
            "pause",
            {"fault": "partition", "shape": "halves"},
            {"fault": "power-cut", "target": "leader"},
        ],
        "every_s": [1, 3],
        "duration_s": [2, 4],
    }
}


@settings(deadline=None)  # the machine may be busy
@given(st.integers(0, 2**63), st.floats(10, 300), st.booleans())
def test_a_plan_depends_on_nothing_but_its_inputs_and_survives_json(
    seed: int, duration_s: float, overlap: bool
) -> None:
    spec = load({"random": {**RANDOM["random"], "overlap": overlap}})
    first = plan(spec, seed, duration_s)
    assert plan(spec, seed, duration_s) == first
    assert Plan.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    assert first.ends_s <= duration_s - 2.0
    assert all(2 <= fault.duration_s <= 4 for fault in first.faults)
    gaps = [
        after.at_s - before.at_s - before.duration_s for before, after in itertools.pairwise(first.faults)
    ]
    if not overlap:
        assert all(gap >= 0.99 for gap in gaps)


def test_seeds_differ_and_a_short_run_meets_every_kind_of_fault() -> None:
    spec = load(RANDOM)
    assert plan(spec, 1, 60) != plan(spec, 2, 60)
    for seed in range(30):
        kinds = [fault.spec.fault for fault in plan(spec, seed, 60).faults]
        assert set(kinds[:4]) == {"kill", "pause", "partition", "power-cut"}


def test_overlapping_faults_do_overlap() -> None:
    spec = load({"random": {**RANDOM["random"], "overlap": True}})
    faults = plan(spec, 3, 60).faults
    assert any(b.at_s < a.at_s + a.duration_s for a, b in itertools.pairwise(faults))


def test_an_explicit_schedule_is_numbered_by_time() -> None:
    spec = load(
        {
            "schedule": [
                {"at_s": 9, "duration_s": 1, "fault": "kill", "target": "controller"},
                {"at_s": 2, "duration_s": 5, "fault": "partition", "shape": "link", "target": "n1,n2"},
            ]
        }
    )
    found = plan(spec, 1, 20)
    assert [(one.id, one.at_s, one.spec.fault, one.spec.target) for one in found.faults] == [
        ("f1", 2, "partition", "n1,n2"),
        ("f2", 9, "kill", "controller"),
    ]
    assert found.ends_s == 10


def test_nothing_asked_for_is_nothing_planned() -> None:
    assert plan(load(None), 1, 10).faults == ()
    assert plan(load({"guided": "power-cut-lossy"}), 1, 10).guided is not None


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        (
            {"randm": {}},
            r"unknown key 'randm'; did you mean 'random'\? known keys: follow, guided, lanes, .*schedule",
        ),
        (
            {"randm": {}, "gided": "x"},
            r"'randm' and 'gided'; did you mean 'random'\? known keys: follow, guided, lanes, .*schedule",
        ),
        ({"random": {"faults": ["kil"]}}, r"nemesis.random.faults\[0\].*'kil'.*'kill', .*'partition'"),
        (
            {"random": {"faults": [{"fault": "kill", "shape": "x"}]}},
            "unknown key 'shape'; known keys: fault, target",
        ),
        ({"random": {"faults": []}}, "nemesis.random.faults: .*at least 1 item"),
        ({"random": {"faults": ["kill"], "every_s": [5, 2]}}, "the smaller number comes first"),
        (
            {"random": {"faults": ["kill"], "every_s": [0, 2]}},
            r"nemesis.random.every_s\[0\]: .*greater than 0",
        ),
        ({"schedule": [{"at_s": 1, "fault": "kill"}]}, r"nemesis.schedule\[0\].duration_s: Field required"),
        (
            {"schedule": [{"at_s": 1, "duration_s": 1, "fault": "kill", "target": "boss"}]},
            "target 'boss' is no role: use one, ",
        ),
        (
            {
                "schedule": [
                    {"at_s": 1, "duration_s": 1, "fault": "partition", "shape": "link", "target": "n1"}
                ]
            },
            "shape link needs two hosts",
        ),
        ({"guided": "b01"}, "no guided schedule 'b01'; did you mean 'b01-truncate-to-hw'\\?"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(
    given: dict[str, Any], mistake: str
) -> None:
    with pytest.raises(SpecError, match=mistake):
        load(given)


def test_a_fault_that_does_not_fit_in_the_run_is_refused() -> None:
    spec = load({"schedule": [{"at_s": 8, "duration_s": 5, "fault": "kill"}]})
    with pytest.raises(SpecError, match="kill ends at 13 s, but the run lasts 10 s"):
        plan(spec, 1, 10)


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(SpecError, match="not a nemesis plan"):
        Plan.from_dict({"seed": 1})


def lane(*faults: str, **more: Any) -> dict[str, Any]:
    return {"faults": list(faults), "every_s": [1, 2], "duration_s": [3, 4], **more}


def overlapping(one: PlannedFault, other: PlannedFault) -> bool:
    return one.at_s < other.at_s + other.duration_s and other.at_s < one.at_s + one.duration_s


def test_lanes_overlap_each_other_and_not_themselves() -> None:
    spec = load({"lanes": {"net": lane("partition"), "db": lane("kill", "pause")}})
    faults = plan(spec, 3, 120.0).faults
    net = [one for one in faults if one.spec.fault == "partition"]
    nodes = [one for one in faults if one.spec.fault != "partition"]
    for row in (net, nodes):
        assert len(row) > 10
        assert not any(overlapping(one, other) for one, other in pairwise(row))
    assert any(overlapping(one, other) for one in net for other in nodes)
    alone = plan(load({"lanes": {"db": lane("kill", "pause")}}), 3, 120.0).faults
    assert [(one.at_s, one.spec) for one in alone] == [(one.at_s, one.spec) for one in nodes]


def test_a_weight_says_how_often_a_fault_comes() -> None:
    spec = load({"random": lane("kill", "pause", weights={"kill": 3})})
    drawn = [one.spec.fault for one in plan(spec, 1, 600.0).faults]
    rounds = [drawn[at : at + 4] for at in range(0, len(drawn) - 3, 4)]
    assert len(rounds) > 20
    assert all(sorted(each) == ["kill", "kill", "kill", "pause"] for each in rounds)
    with pytest.raises(SpecError, match="weights: partition is none of the faults; there are kill, pause"):
        load({"random": lane("kill", "pause", weights={"partition": 3})})


def test_no_fault_is_in_force_where_it_shall_be_quiet() -> None:
    quiet = [{"at_s": 20, "duration_s": 15}, {"at_s": 60, "duration_s": 5}]
    spec = load({"random": lane("kill", overlap=True), "lanes": {"net": lane("partition")}, "quiet": quiet})
    for seed in range(20):
        faults = plan(spec, seed, 100.0).faults
        assert not [one for one in faults if one.at_s < 35 and one.at_s + one.duration_s > 20]
        assert not [one for one in faults if one.at_s < 65 and one.at_s + one.duration_s > 60]
        assert any(one.at_s > 65 for one in faults)
    scheduled = {"schedule": [{"at_s": 18, "duration_s": 3, "fault": "kill"}], "quiet": quiet}
    with pytest.raises(SpecError, match="kill from 18 to 21 s would be in force from 20 to 35 s"):
        plan(load(scheduled), 1, 100.0)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_lanes_that_can_be_read_and_leaves_out_what_is_not_possible(name: str) -> None:
    spec = load({"preset": {"name": name, "interval_s": 4}})
    whole, nothing = spec.without_preset(lambda _fault: None)
    assert nothing == []
    assert list(whole.lanes) == list(PRESETS[name].lanes)
    assert plan(whole, 1, 120.0).faults
    assert NemesisSpec.model_validate(whole.model_dump()) == whole
    rest, left_out = spec.without_preset(lambda fault: "no way" if fault.fault == "kill" else None)
    assert not [one for row in rest.lanes.values() for one in row.faults if one.fault == "kill"]
    assert left_out == (["no way"] if any(one.fault == "kill" for one in _faults(whole)) else [])


def _faults(spec: NemesisSpec) -> list[FaultSpec]:
    return [one for row in spec.lanes.values() for one in row.faults]


def test_a_preset_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        SpecError, match=r"no preset 'jepson'; did you mean 'jepsen'\? there are jepsen, .*power"
    ):
        load({"preset": "jepson"})

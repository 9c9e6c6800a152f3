"""The forecast of a plan says whom it will hit, and the nemesis then hits the same."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.nemesis.doubles import NODES, FakeFleet, FakeSystem, Recorded, cast, cluster, node, partition
from wrackline.nemesis import stage
from wrackline.nemesis.guided.catalogue import NEEDS, SCHEDULES
from wrackline.nemesis.guided.steps import Inject
from wrackline.nemesis.preview import foreseen, guided_steps
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import GuidedSpec, load

SPARE = replace(node("n4", 4, 14), spare=True)


def scheduled(*faults: dict[str, Any], guided: str | None = None, seed: int = 1) -> dict[str, Any]:
    spec = load({"schedule": list(faults), "guided": guided})
    return dict(foreseen(plan(spec, seed, 600.0), (*NODES[:3], SPARE, NODES[3])))


def at(at_s: float, fault: str, target: str, duration_s: float = 4) -> dict[str, Any]:
    return {"at_s": at_s, "duration_s": duration_s, "fault": fault, "target": target}


@pytest.mark.parametrize("seed", range(3))
def test_the_nemesis_hits_whom_the_plan_foresaw(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault takes a node and keeps it, so the next one must choose among the others."""
    monkeypatch.setattr(stage, "UNDO_PAUSE_S", 0.0)
    fleet, recorded = FakeFleet(), Recorded()
    spec = load(
        {
            "schedule": [
                at(0, "partition", "minority", 40),
                at(0, "pause", "one", 40),
                at(0.4, "kill", "one", 40),
                at(0.8, "kill", "one", 40),
                at(0.8, "partition", "half", 40),
            ]
        }
    )
    chosen = plan(spec, seed, 60.0)
    nemesis = Nemesis(chosen, fleet, FakeSystem(fleet, cluster(partition(0))), recorded, topics=("log",))
    nemesis.start()
    recorded.wait_for(lambda: all("active" in recorded.phases(one.id) for one in chosen.faults), timeout_s=30)
    nemesis.stop_and_heal(timeout_s=30)
    hit = {one.id: tuple(recorded.ended(one.id)["targets"]) for one in chosen.faults}  # type: ignore[arg-type]
    assert foreseen(chosen, NODES) == hit
    assert {hosts for fault, hosts in hit.items() if fault in ("f2", "f3", "f4")} == {
        ("n1",),
        ("n2",),
        ("n3",),
    }


def test_roles_that_the_cluster_gives_are_left_to_the_run() -> None:
    assert scheduled(
        at(1, "kill", "leader(log-0)"), at(20, "kill", "controller"), at(40, "pause", "elr")
    ) == {
        "f1": None,
        "f2": None,
        "f3": None,
    }


def test_the_clients_of_hosts_are_foreseen_as_these_are() -> None:
    faults = at(1, "partition", "clients"), at(9, "partition", "clients of n2,n1")
    assert scheduled(*faults, at(20, "partition", "clients of leader(log-0)")) == {
        "f1": ("n1", "n2", "n3"),
        "f2": ("n2", "n1"),
        "f3": None,
    }


def test_hosts_by_name_and_all_brokers_are_who_they_are() -> None:
    assert scheduled(at(1, "kill", "n3,n1"), at(20, "power-cut", "all")) == {
        "f1": ("n3", "n1"),
        "f2": ("n1", "n2", "n3"),
    }


def test_a_target_is_not_foreseen_while_another_fault_holds_an_unknown_node() -> None:
    held = at(1, "kill", "leader(log-0)", 10)
    assert scheduled(held, at(5, "kill", "one"))["f2"] is None
    assert scheduled(held, at(12, "kill", "one"))["f2"] is None  # it may still be on its way back
    assert scheduled(held, at(20, "kill", "one"))["f2"] is not None
    assert scheduled(held, at(5, "partition", "one"))["f2"] is not None  # it takes no node
    assert scheduled(at(1, "partition", "leader(log-0)", 10), at(5, "kill", "one"))["f2"] is not None


def test_a_guided_schedule_leaves_the_choices_after_it_open() -> None:
    faults = at(1, "kill", "one"), at(20, "kill", "one"), at(30, "partition", "one")
    found = scheduled(*faults, guided="power-cut-lossy")
    assert [hosts is None for hosts in found.values()] == [False, True, False]


def test_a_spare_host_is_hit_by_name_only_until_its_broker_has_joined() -> None:
    found = scheduled(at(10, "add-broker", "spare"), at(30, "power-cut", "all"))
    assert found == {"f1": ("n4",), "f2": ("n1", "n2", "n3", "n4")}
    assert scheduled(at(1, "power-cut", "all"), at(20, "add-broker", "spare"))["f1"] == ("n1", "n2", "n3")
    assert scheduled(at(10, "add-broker", "spare"), at(11, "power-cut", "all"))["f2"] is None


def test_a_spare_controller_and_a_spare_broker_are_of_two_kinds() -> None:
    spare = replace(node("c2", 102, 22, controller=True), spare=True)
    spec = load(
        {
            "schedule": [
                at(10, "add-controller", "spare-controller"),
                at(20, "add-broker", "spare"),
                at(40, "power-cut", "half"),
            ]
        }
    )
    found = foreseen(plan(spec, 1, 600.0), (*NODES[:3], SPARE, NODES[3], spare))
    assert (found["f1"], found["f2"]) == (("c2",), ("n4",))
    assert len(found["f3"] or ()) == 3, "half of the six that have joined"


def test_the_same_plan_foresees_the_same_and_seeds_differ() -> None:
    faults = [at(20 * number, "kill", "one") for number in range(8)]
    assert scheduled(*faults) == scheduled(*faults)
    assert scheduled(*faults) != scheduled(*faults, seed=2)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_guided_schedule_can_be_shown(name: str) -> None:
    nodes = tuple(cast(NEEDS[name]).values())
    steps = guided_steps(GuidedSpec(name=name, partition=1), nodes, "log", max(3, NEEDS[name].replicas))
    faults = [step for step in steps if isinstance(step, Inject)]
    assert faults
    assert {host for fault in faults for host in fault.hosts} <= {one.host.name for one in nodes}


def test_a_fault_whose_beginning_takes_long_may_have_its_host_for_longer() -> None:
    stale = {**at(0, "power-cut", "n1", 2), "disk": "stale", "age_s": 30}
    assert scheduled(at(0, "power-cut", "n1", 2), at(20, "kill", "all"))["f2"] == ("n1", "n2", "n3")
    assert scheduled(stale, at(20, "kill", "all"))["f2"] is None
    assert scheduled(stale, at(40, "kill", "all"))["f2"] == ("n1", "n2", "n3")


def test_many_thousand_faults_are_foreseen_as_their_first_hundred_alone_are() -> None:
    """Each of them asks only for those around it: with each asking for all others a week takes hours."""
    given = {"random": {"faults": ["kill", "pause", "partition", "restart"], "overlap": True}}
    whole = plan(load(given), 1, 5 * 86_400.0)
    assert len(whole.faults) > 60_000
    began = time.process_time()
    said = foreseen(whole, NODES)
    assert time.process_time() - began < 25
    few = foreseen(replace(whole, faults=whole.faults[:100]), NODES)
    assert few == {name: said[name] for name in few}

"""Faults follow the state of a cluster in memory, at the look that shows it, and all of them are undone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded, cluster, partition
from wrackline.nemesis import restoration
from wrackline.nemesis import stage as stages
from wrackline.nemesis.follow.looks import Deeds, Looks
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import FAULT, load
from wrackline.nemesis.targets.states import Occurrence
from wrackline.systems.base import ClusterState

KILL_ONE = {"fault": "kill", "target": "1 of bystanders"}


class Living(FakeSystem):
    """Its partition's ISR are the brokers whose nodes run; the first of them leads, once the leader is
    gone."""

    def __init__(self, fleet: FakeFleet) -> None:
        super().__init__(fleet)
        self._leader, self._epoch = 1, 1

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        del timeout_s
        alive = tuple(one for one in (1, 2, 3) if one in self.pids)
        if self._leader not in alive:
            self._leader, self._epoch = (alive or (-1,))[0], self._epoch + 1
        one = partition(leader=self._leader, isr=alive, epoch=self._epoch)
        return replace(cluster(one), brokers=alive)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "UNDO_PAUSE_S", 0.0)
    monkeypatch.setattr(restoration, "WAIT_S", 0.0)


@pytest.fixture
def living(fleet: FakeFleet) -> FakeSystem:
    return Living(fleet)


def follow(fleet: FakeFleet, system: FakeSystem, recorded: Recorded, seconds: float, **given: Any) -> Nemesis:
    usual = {"patience_s": 5, "duration_s": [0.2, 0.4], "start_s": 0, "tail_s": 0, "then": 0}
    spec = load({"follow": {**usual, **given}}).with_usual(lambda _: None)
    nemesis = Nemesis(plan(spec, 1, seconds), fleet, system, recorded, topics=("log",))
    nemesis.start()
    return nemesis


def rows(recorded: Recorded, phase: str) -> Iterator[dict[str, Any]]:
    for event in recorded.events:
        if event.f == "follow" and event.extra is not None and event.extra["phase"] == phase:
            yield dict(event.extra)


def test_the_state_is_brought_about_and_hit_when_it_is_there(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded
) -> None:
    kill = {"fault": "kill", "target": "bystanders"}
    given = {
        "states": ["isr-of-one"],
        "faults": [{"fault": "pause", "target": "subject"}],
        "openers": {"isr-of-one": [kill]},
    }
    nemesis = follow(fleet, living, recorded, 4.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    first, *_ = rows(recorded, "reached")
    assert (first["state"], first["fault"], first["place"]) == ("isr-of-one", "pause subject", "log-0")
    opener, second = recorded.ended("s1"), recorded.ended("s2")
    assert (opener["targets"], opener["role"]) == (["n2", "n3"], "bystanders, to begin with")
    assert (second["targets"], second["role"]) == (["n1"], "subject, isr-of-one")
    recorded.assert_proved("s1")
    recorded.assert_proved("s2")
    [coverage] = rows(recorded, "coverage")
    assert coverage["pairs"]["isr-of-one > pause subject"] >= 1
    assert coverage["states"] == {"isr-of-one": coverage["states"]["isr-of-one"]}


def test_a_state_that_does_not_come_is_given_up_and_what_is_there_is_hit(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded
) -> None:
    given = {
        "states": ["moving", "new-leader"],
        "faults": [{"fault": "pause", "target": "subject"}],
        "openers": {"moving": [{"fault": "kill", "target": "subject"}], "new-leader": []},
        "patience_s": 1,
    }
    nemesis = follow(fleet, living, recorded, 5.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    assert any(
        one["state"] == "moving" and one["why"] == "it did not come" for one in rows(recorded, "missed")
    )
    assert any(one["state"] == "new-leader" for one in rows(recorded, "reached"))


def test_a_second_fault_is_timed_by_the_effect_of_the_first(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded
) -> None:
    given = {
        "states": ["left-isr"],
        "faults": [{"fault": "kill", "target": "leader"}],
        "openers": {"left-isr": [{"fault": "kill", "target": "1 of bystanders"}]},
        "then": 1,
        "duration_s": [1, 2],
    }
    nemesis = follow(fleet, living, recorded, 4.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    targets = [recorded.ended(one)["targets"] for one in ("s1", "s2", "s3")]
    assert sorted(map(str, targets)) == ["['n1']", "['n2']", "['n3']"], "all three, one after the other"


def test_a_fault_that_would_hit_nobody_is_passed_over_for_the_next(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.nemesis.follow.draw._APART", 0.0)
    given = {
        "states": ["left-isr"],
        "faults": [{"fault": "power-cut", "target": "replicas"}, {"fault": "pause", "target": "leader"}],
        "openers": {"left-isr": [{"fault": "power-cut", "target": "bystanders"}, KILL_ONE]},
    }
    nemesis = follow(fleet, living, recorded, 3.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    names = {event.f for event in recorded.events if event.extra and "targets" in event.extra}
    assert names == {"kill", "pause"}, "three replicas may not lose their bytes, nor two"
    assert not list(rows(recorded, "missed"))


def test_a_power_cut_of_one_of_several_is_aimed_at_who_may_lose_bytes(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded
) -> None:
    nemesis = follow(fleet, living, recorded, 1.0, states=["left-isr"])
    assert nemesis.wait(60)
    nemesis._losses.begin(living.describe(), {3})
    about = Occurrence("new-leader", ("log", 0), (1,))
    one_of = FAULT.validate_python({"fault": "power-cut", "target": "1 of bystanders"})
    for pick in range(20):
        assert nemesis._hosts_of(one_of, about, pick, living.describe()) == ("n3",)
    subject = FAULT.validate_python({"fault": "power-cut", "target": "subject"})
    assert not nemesis.can(subject, about, 1, living.describe())


def test_each_bystander_may_be_hit_by_an_opener_of_its_own(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.nemesis.follow.draw._APART", 1.0)
    given = {
        "states": ["isr-of-one"],
        "faults": [{"fault": "pause", "target": "subject"}],
        "openers": {"isr-of-one": [{"fault": one, "target": "bystanders"} for one in ("kill", "power-cut")]},
    }
    nemesis = follow(fleet, living, recorded, 3.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    assert sorted(str(recorded.ended(one)["targets"]) for one in ("s1", "s2")) == ["['n2']", "['n3']"]
    begun = [event.f for event in recorded.events if event.extra and event.extra.get("phase") == "begin"]
    assert sorted(begun[:2]) == ["kill", "power-cut"]


@pytest.mark.parametrize("ends", ["openers", "faults", "time"])
def test_what_comes_back_when_the_openers_end_is_hit_in_the_same_episode(
    ends: str, fleet: FakeFleet, living: FakeSystem, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.nemesis.follow.draw._ENDS", (ends,))
    given = {
        "states": ["isr-of-one", "rejoined"],
        "faults": [{"fault": "pause", "target": "subject"}],
        "openers": {one: [{"fault": "kill", "target": "bystanders"}] for one in ("isr-of-one", "rejoined")},
        "then": 1,
        "patience_s": 1,
    }
    nemesis = follow(fleet, living, recorded, 8.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    course = [event.extra for event in recorded.events if event.f == "follow" and event.extra is not None]
    course = [one for one in course if one["phase"] in ("drawn", "reached")]
    begins = [number for number, one in enumerate(course) if one["phase"] == "drawn"]
    episodes = [course[begin:end] for begin, end in itertools.pairwise(begins)]
    hit = [
        [one["state"] for one in episode[1:]] for episode in episodes if episode[0]["state"] == "isr-of-one"
    ]
    assert hit
    assert any("rejoined" in states for states in hit) == (ends == "openers")


def test_the_faults_may_be_over_before_the_openers(
    fleet: FakeFleet, living: FakeSystem, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.nemesis.follow.draw._ENDS", ("faults",))
    given = {
        "states": ["isr-of-one"],
        "faults": [{"fault": "pause", "target": "subject"}],
        "openers": {"isr-of-one": [{"fault": "kill", "target": "bystanders"}]},
        "duration_s": [0.1, 2],
    }
    nemesis = follow(fleet, living, recorded, 8.0, **given)
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    ended = [event.f for event in recorded.events if event.extra and event.extra.get("phase") == "ended"]
    assert ended[:2] == ["pause", "kill"]


def test_stopping_ends_what_is_under_way(fleet: FakeFleet, living: FakeSystem, recorded: Recorded) -> None:
    given = {
        "states": ["isr-of-one"],
        "faults": [{"fault": "pause", "target": "subject"}],
        "openers": {"isr-of-one": [{"fault": "kill", "target": "bystanders"}]},
        "duration_s": [30, 40],
    }
    nemesis = follow(fleet, living, recorded, 100.0, **given)
    recorded.wait_for(lambda: "active" in recorded.phases("s2"), timeout_s=60)
    assert nemesis.stop_and_heal(timeout_s=60) == []
    assert recorded.phases("s2") == ["begin", "active", "undo", "ended"]
    assert len(list(rows(recorded, "coverage"))) == 1


def test_what_became_true_too_long_ago_has_not_just_become_true(monkeypatch: pytest.MonkeyPatch) -> None:
    async def describe() -> ClusterState:
        return cluster()

    looks = Looks(describe, Deeds, ("isr-of-one", "new-leader"), ("log",))
    looks.take(cluster())
    looks.take(cluster(partition(leader=2, isr=(2,), epoch=2)))
    assert [one.state for one in looks.since(1)] == ["new-leader", "isr-of-one"]
    assert looks.since(2) == []
    looks.take(cluster(partition(leader=2, isr=(2,), epoch=2)))
    assert [one.state for one in looks.there] == ["isr-of-one"], "it still is; the leader is not new any more"
    monkeypatch.setattr("wrackline.nemesis.follow.looks.FRESH_S", -1.0)
    assert looks.since(0) == []


def test_partitions_of_other_topics_are_not_followed() -> None:
    async def describe() -> ClusterState:
        return cluster()

    looks = Looks(describe, Deeds, ("isr-of-one",), ("log",))
    for isr in ((1, 2, 3), (1,)):
        looks.take(cluster(partition(topic="__consumer_offsets", isr=isr)))
    assert looks.there == []
    assert asyncio.run(looks.next(0.01)) is False

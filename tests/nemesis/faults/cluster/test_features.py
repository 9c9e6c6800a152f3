"""A feature gets a higher level, or is refused it while a node does not support it."""

from __future__ import annotations

import json

import pytest

from tests.nemesis.doubles import FakeFleet, FakeSystem, cluster, context, partition
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.executor import StepExecutor
from wrackline.nemesis.faults import admin_steps
from wrackline.nemesis.faults.cluster import admin_executor
from wrackline.nemesis.faults.cluster.features import UpdateFeature, UpdateFeatureSpec
from wrackline.nemesis.faults.steps import FaultError, ProbeLog, StepResult
from wrackline.systems.base import DeployError
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.wrackline.spec import WracklineSpec

STEP = admin_steps.UpdateFeature("n1", "metadata.version", 23, 5.0)


class LevelledSystem(FakeSystem):
    """Refuses a level as often as it is told to."""

    refusals = 0
    level = 11
    unsafe = False
    silences = 0
    lag = 0
    """So many answers name the level before the last one."""
    former = 11

    def levels(self, *, timeout_s: float) -> dict[str, int]:
        del timeout_s
        if self.level != self.former and self.lag:
            self.lag -= 1
            return {"metadata.version": self.former}
        return {"metadata.version": self.level}

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:
        del feature, timeout_s
        self.unsafe = unsafe
        if self.silences:
            self.silences -= 1
            raise DeployError("nobody answers")
        if self.refusals:
            self.refusals -= 1
            return "Broker 3 only supports versions 11 to 11."
        self.level = level
        return ""


def carried_out(step: admin_steps.UpdateFeature, refusals: int) -> StepResult:
    fleet = FakeFleet()
    system = LevelledSystem(fleet, cluster(partition()))
    system.refusals = refusals
    return StepExecutor(fleet, system, ("log",)).carry_out(step)


def test_it_is_asked_again_until_the_cluster_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_executor, "POLL_S", 0.01)
    done = carried_out(STEP, refusals=3)
    assert json.loads(done.output) == {"before": 11, "after": 23, "refusal": ""}
    assert UpdateFeature("metadata.version", 23).prove(context("n1"), ProbeLog(do=[done])).proved
    too_early = UpdateFeature("metadata.version", 23, refused=True).prove(context("n1"), ProbeLog(do=[done]))
    assert not too_early.proved
    assert "and done" in too_early.text


def test_a_cluster_that_is_silent_for_a_while_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_executor, "POLL_S", 0.01)
    system = LevelledSystem(FakeFleet(), cluster(partition()))
    executor = StepExecutor(FakeFleet(), system, ("log",))
    system.silences = 2
    done = executor.carry_out(STEP)
    assert json.loads(done.output) == {"before": 11, "after": 23, "refusal": ""}
    system.silences = 1
    with pytest.raises(DeployError, match="nobody answers"):
        executor.carry_out(admin_steps.UpdateFeature("n1", "metadata.version", 11, 0.0))


def test_a_refusal_that_is_wanted_is_asked_for_once() -> None:
    [step] = UpdateFeature("metadata.version", 23, refused=True).commands(context("n1")).do
    assert isinstance(step, admin_steps.UpdateFeature)
    done = carried_out(step, refusals=1)
    assert (
        UpdateFeature("metadata.version", 23, refused=True).prove(context("n1"), ProbeLog(do=[done])).proved
    )
    late = UpdateFeature("metadata.version", 23).prove(context("n1"), ProbeLog(do=[done]))
    assert not late.proved
    assert "Broker 3 only supports versions 11 to 11." in late.text


def test_a_level_is_raised_or_lowered() -> None:
    def proof(before: int | None, after: int) -> str:
        done = StepResult(STEP, json.dumps({"before": before, "after": after, "refusal": ""}))
        proved = UpdateFeature("metadata.version", after).prove(context("n1"), ProbeLog(do=[done]))
        assert proved.proved
        return proved.text

    assert proof(11, 23) == "metadata.version was raised from 11 to 23"
    assert proof(23, 11) == "metadata.version was lowered from 23 to 11"
    assert proof(None, 1) == "metadata.version was raised from 0 to 1"
    assert proof(1, 0) == "metadata.version was lowered from 1 to 0"


def test_an_unsafe_downgrade_is_asked_for_as_one() -> None:
    system = LevelledSystem(FakeFleet(), cluster(partition()))
    executor = StepExecutor(FakeFleet(), system, ("log",))
    for unsafe in (True, False):
        spec = UpdateFeatureSpec(fault="update-feature", feature="f", level=0, unsafe=unsafe)
        [step] = spec.build().commands(context("n1")).do
        executor.carry_out(step)
        assert system.unsafe is unsafe


def test_a_level_that_was_there_before_proves_nothing() -> None:
    there = StepResult(STEP, json.dumps({"before": 23, "after": 23, "refusal": ""}))
    assert not UpdateFeature("metadata.version", 23).prove(context("n1"), ProbeLog(do=[there])).proved
    assert not UpdateFeature("metadata.version", 23).prove(context("n1"), ProbeLog()).proved


def test_a_broker_that_learns_of_the_level_late_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_executor, "POLL_S", 0.01)
    fleet = FakeFleet()
    system = LevelledSystem(fleet, cluster(partition()))
    system.lag = 3
    done = StepExecutor(fleet, system, ("log",)).carry_out(STEP)
    assert json.loads(done.output) == {"before": 11, "after": 23, "refusal": ""}


def test_a_level_that_no_broker_comes_to_name_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_executor, "POLL_S", 0.01)
    monkeypatch.setattr(admin_executor, "SEEN_S", 0.05)
    fleet = FakeFleet()
    system = LevelledSystem(fleet, cluster(partition()))
    system.lag = 1_000
    done = StepExecutor(fleet, system, ("log",)).carry_out(STEP)
    assert json.loads(done.output) == {"before": 11, "after": 11, "refusal": ""}


def test_a_system_without_levels_is_refused_it() -> None:
    fleet = FakeFleet()
    with pytest.raises(FaultError, match="have no levels"):
        StepExecutor(fleet, FakeSystem(fleet, cluster(partition())), ("log",)).carry_out(STEP)
    spec = UpdateFeatureSpec(fault="update-feature", feature="metadata.version", level=23)
    assert spec.refusal(NetnsSpec(), WracklineSpec(profile="kraft35")) is None
    assert spec.refusal(NetnsSpec(), KafkaSpec(version="4.1.1")) is None
    assert "Kafka 1.1.1 on ZooKeeper" in str(spec.refusal(NetnsSpec(zookeeper=1), KafkaSpec(version="1.1.1")))

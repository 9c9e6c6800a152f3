"""What an administrator does to a running cluster, as faults; librdkafka's own client looks from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.nemesis.doubles import Recorded
from tests.nemesis.load import started
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.cluster.admin import ChangeConfigSpec
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import TopicSpec
from wrackline.systems.wrackline.system import WracklineSystem

HOSTS = ("n1", "n2", "n3")
T = TypeVar("T")


class Watcher:
    """Sees the cluster as any client does, and knows nothing of faults."""

    def __init__(self, fleet: NetnsFleet, bootstrap: str) -> None:
        with fleet.entered():  # its threads are in the fleet's network from now on
            self.client = AdminClient({"bootstrap.servers": bootstrap})
            self.client.list_topics(timeout=10)

    def leaders(self) -> list[int]:
        topic = self.client.list_topics("log", timeout=10).topics["log"]
        return [topic.partitions[number].leader for number in sorted(topic.partitions)]

    def topics(self) -> set[str]:
        return set(self.client.list_topics(timeout=10).topics)

    def config(self, name: str) -> str | None:
        resource = ConfigResource(ResourceType.TOPIC, "log")
        [found] = self.client.describe_configs([resource], request_timeout=10).values()
        setting = found.result().get(name)
        return None if setting is None else str(setting.value)

    def awaits(self, question: Callable[[], T], wanted: Callable[[T], bool]) -> T:
        deadline = time.monotonic() + 10
        while not wanted(seen := question()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return seen


@pytest.fixture(scope="module")
def system(bundle_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WracklineSystem]:
    folder = tmp_path_factory.mktemp("fleet")
    topic = TopicSpec("log", 3, 3, {"min.insync.replicas": "2"})
    with (
        NetnsFleet(f"admin-{os.getpid()}", HOSTS, state_dir=folder, disk_mb=64) as fleet,
        started(fleet, bundle_cache, topic, brokers=HOSTS, controllers=HOSTS) as system,
    ):
        yield system


@pytest.fixture(scope="module")
def watcher(system: WracklineSystem) -> Watcher:
    assert isinstance(system.fleet, NetnsFleet)
    return Watcher(system.fleet, system.bootstrap())


class Going:
    """Faults in force, until the end of the block."""

    def __init__(self, system: WracklineSystem, *faults: dict[str, Any]) -> None:
        scheduled = [{"at_s": 0.0, "duration_s": 60.0, **fault} for fault in faults]
        self.recorded = Recorded()
        chosen = plan(load({"schedule": scheduled}), 1, 90.0)
        self.nemesis = Nemesis(chosen, system.fleet, system, self.recorded, topics=("log",))
        self.ids = [one.id for one in chosen.faults]

    def __enter__(self) -> Going:
        self.nemesis.start()
        self.recorded.wait_for(
            lambda: all("active" in self.recorded.phases(one) for one in self.ids), timeout_s=40
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.nemesis.stop_and_heal() == []

    def proof(self, fault_id: str = "f1") -> Mapping[str, Any]:
        return self.recorded.ended(fault_id)


def test_leadership_is_transferred_and_given_back(system: WracklineSystem, watcher: Watcher) -> None:
    before = watcher.awaits(watcher.leaders, lambda seen: -1 not in seen)
    with Going(system, {"fault": "transfer-leadership", "target": "leader(log-0)"}) as going:
        during = watcher.awaits(watcher.leaders, lambda seen: before[0] not in seen)
    assert before[0] not in during
    assert watcher.awaits(watcher.leaders, lambda seen: seen == before) == before
    going.recorded.assert_proved("f1")
    assert f"log-0 from {before[0]} to {during[0]}" in going.proof()["proof"]


def test_preferred_leaders_are_elected(system: WracklineSystem, watcher: Watcher) -> None:
    """After a transfer whose new order stands: the undo of the first fault comes after the election."""
    before = watcher.leaders()
    node = next(one for one in system.brokers if one.node_id == before[0])
    system.stop(node)
    watcher.awaits(watcher.leaders, lambda seen: before[0] not in seen)
    system.start(node)
    system.wait_ready()

    def in_sync() -> bool:
        return all(one.full_isr for one in system.describe().partitions if one.topic == "log")

    assert watcher.awaits(in_sync, bool)
    assert watcher.leaders() != before
    with Going(system, {"fault": "elect-preferred"}) as going:
        assert watcher.awaits(watcher.leaders, lambda seen: seen == before) == before
    going.recorded.assert_proved("f1")
    assert "the first replica leads 3 of 3 partitions; 1 changed their leader" in going.proof()["proof"]


def test_settings_change_and_come_back_in_any_order(system: WracklineSystem, watcher: Watcher) -> None:
    """Two faults that overlap: the one that ends first leaves what the other wants."""
    name = "min.insync.replicas"
    first = {"fault": "change-config", "configs": {name: 1, "flush.messages": 5}, "duration_s": 3.0}
    second = {"fault": "change-config", "configs": {name: 3}, "at_s": 1.0}
    with Going(system, first, second) as going:
        assert watcher.config(name) == "3"
        assert watcher.config("flush.messages") == "5"
        going.recorded.wait_for(lambda: "ended" in going.recorded.phases("f1"), timeout_s=20)
        assert watcher.config(name) == "3"
        assert watcher.config("flush.messages") in (None, str((1 << 63) - 1))
    assert watcher.config(name) == "2"
    going.recorded.assert_proved("f2")
    assert "topic: min.insync.replicas 2 to 3; afterwards min.insync.replicas 2" in going.proof("f2")["proof"]
    assert going.proof("f1")["proved"] is False, "somebody else had changed its setting before it ended"
    assert going.proof("f1")["restored"] is None, "what was before is what the other fault will restore"
    assert going.proof("f2")["restored"] is True
    assert going.recorded.restored("f1") is True


def test_a_setting_of_all_brokers_changes(system: WracklineSystem, watcher: Watcher) -> None:
    name = "follower.replication.throttled.rate"
    with Going(system, {"fault": "change-config", "entity": "brokers", "configs": {name: 999_000}}) as going:
        assert system.admin.cluster_settings(timeout_s=5) == {name: "999000"}
    assert system.admin.cluster_settings(timeout_s=5) == {}
    going.recorded.assert_proved("f1")
    assert watcher.topics() == {"log"}


def test_a_topic_goes_and_comes_beside_the_runs_own(system: WracklineSystem, watcher: Watcher) -> None:
    with Going(system, {"fault": "recreate-topic"}) as going:
        assert "log-beside-f1" in watcher.topics()
        now = system.admin.topic_id("log-beside-f1", timeout_s=5)
    assert watcher.awaits(watcher.topics, lambda seen: seen == {"log"}) == {"log"}
    going.recorded.assert_proved("f1")
    assert going.proof()["proof"].endswith(f"made again with the id {now}")


def test_another_controller_becomes_active(system: WracklineSystem) -> None:
    before = system.describe().controller
    with Going(system, {"fault": "controller-failover"}) as going:
        after = system.describe().controller
    assert after not in (before, -1)
    going.recorded.assert_proved("f1")
    assert f"controller {before} was stopped until {after} was active" in going.proof()["proof"]
    for node in system.nodes:
        stat = f"cut -d ' ' -f 3 /proc/{system.pid(node)}/stat"
        assert system.fleet.remote(node.host).run(stat).stdout.strip() in "RSD", "woken up again"


def test_a_senseless_setting_is_refused() -> None:
    with pytest.raises(ValueError, match=r"min.insync.replicas is a number from 1 on, not 0"):
        ChangeConfigSpec(fault="change-config", configs={"min.insync.replicas": 0})

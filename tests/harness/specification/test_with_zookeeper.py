"""Specifications with ZooKeeper servers: which hosts there are, and what is refused in one line."""

from __future__ import annotations

import pytest

from wrackline.harness.specification.spec import Spec, SpecError, parse

OLD = "system: {kind: apache-kafka, version: 1.1.1}"
MISTAKES = [
    (
        "name: x\nfleet: {controllers: 0}",
        "x.yaml: fleet.controllers: 0 goes with fleet.zookeeper: give 1, 3 or 5",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}",
        "x.yaml: fleet.zookeeper is 1, and profile kip966 has controllers: leave it out, or take profile "
        "zk08",
    ),
    (
        "name: x\nsystem: {profile: zk08}",
        "x.yaml: profile zk08 keeps its metadata in ZooKeeper: say how many servers of it there are, "
        "fleet.zookeeper: 1 or 3",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\nsystem: {profile: zk08}\n"
        "nemesis: {schedule: [{at_s: 2, duration_s: 1, fault: rolling-upgrade, to: kip101}]}",
        "x.yaml: nemesis.schedule[0]: rolling-upgrade to kip101: there is no controller that could take over "
        "from ZooKeeper: say fleet.controllers: 1",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\n"
        "system: {profile: zk08, config: {zookeeper_session_timeout_ms: 12s}}",
        "x.yaml: system.config.zookeeper_session_timeout_ms: 12000; the servers grant 1000 to 10000",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\nsystem: {profile: zk08}\nworkload: {idempotence: true}",
        "x.yaml: workload.name log needs idempotence, which system.kind wrackline as it is set here lacks; "
        "`wrackline list parts` lists other workloads and systems",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\nsystem: {profile: zk08}\nnemesis: {guided: fast-fail-over}",
        "x.yaml: nemesis.guided fast-fail-over: elect-preferred cannot be done to profile zk08: its brokers "
        "serve no such request of an administrator",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\nsystem: {profile: zk08}\n"
        "nemesis: {schedule: [{at_s: 1, duration_s: 1, fault: elect-preferred}]}",
        "x.yaml: nemesis.schedule[0]: elect-preferred cannot be done to profile zk08: its brokers serve no "
        "such request of an administrator",
    ),
    (
        "name: x\nfleet: {zookeeper: 1, controllers: 3}\nsystem: {kind: apache-kafka, version: 1.1.1}",
        "x.yaml: fleet: zookeeper: 3 controllers with ZooKeeper: there brokers elect one of themselves the "
        "controller; leave it out, or say controllers: 1 for a broker that has no replicas and is the first "
        "controller",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\nsystem: {kind: apache-kafka, version: 1.1.1}\n"
        "nemesis: {guided: fast-fail-over}",
        "x.yaml: nemesis.guided fast-fail-over needs the controller on a host of its own: fleet.controllers "
        "must be 1",
    ),
    (
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 1, fault: expire-session}]}",
        "x.yaml: nemesis.schedule[0]: expire-session needs ZooKeeper: fleet.zookeeper is 0",
    ),
    (
        "name: x\nfleet: {zookeeper: 1}\nsystem: {kind: apache-kafka, version: 1.1.1}\n"
        "nemesis: {schedule: [{at_s: 1, duration_s: 1, fault: partition, target: clients of z1}]}",
        "x.yaml: nemesis.schedule[0]: partition: clients ask brokers and no ZooKeeper, so 'clients of z1' is "
        "nobody",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said[:50] for _, said in MISTAKES])
def test_a_mistake_is_one_line(text: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(text, "x.yaml")
    assert str(refused.value).splitlines() == [said]


@pytest.mark.parametrize(
    ("fleet", "hosts"),
    [
        ("{brokers: 2, zookeeper: 1}", ("n1", "n2", "z1")),
        ("{brokers: 1, zookeeper: 3}", ("n1", "z1", "z2", "z3")),
        ("{brokers: 2, zookeeper: 1, controllers: 1}", ("n1", "n2", "c1", "z1")),
        ("{kind: process, brokers: 1, zookeeper: 1, spares: 1}", ("n1", "n2", "z1")),
    ],
)
def test_its_servers_have_hosts_of_their_own_and_controllers_are_asked_for(
    fleet: str, hosts: tuple[str, ...]
) -> None:
    topic = "topic: {replication_factor: 1, min_insync_replicas: 1}"
    spec = parse(f"name: x\nfleet: {fleet}\n{OLD}\n{topic}", "x")
    assert spec.fleet.hosts == hosts
    again = parse(spec.to_yaml(), "x")
    assert again.fleet == spec.fleet


def spec_of(version: str, config: str = "{}") -> Spec:
    system = f"{{kind: apache-kafka, version: {version}, config: {config}}}"
    return parse(f"name: x\nfleet: {{zookeeper: 1}}\nsystem: {system}", "x")


def test_the_contract_knows_that_unclean_election_was_on_by_default() -> None:
    def unclean(version: str, config: str = "{}") -> bool:
        return spec_of(version, config).system.configured().unclean_election

    assert unclean("0.10.2.2")
    assert not unclean("0.11.0.3")
    assert not unclean("0.10.2.2", "{unclean.leader.election.enable: false}")


def test_clients_of_0_8_and_0_9_are_told_the_version() -> None:
    told = spec_of("0.8.2.2").system.client_settings()
    assert told == {"api.version.request": "false", "broker.version.fallback": "0.8.2.2"}
    assert spec_of("1.1.1").system.client_settings() == {}

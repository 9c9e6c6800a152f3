"""Specifications with ZooKeeper servers: which hosts there are, and what is refused in one line."""

from __future__ import annotations

import pytest

from wrackline.harness.specification.spec import Spec, parse

OLD = "system: {kind: apache-kafka, version: 1.1.1}"


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

"""The configuration of Kafka's nodes, whole, by version and role.

After a change on purpose: `GOLDEN=write pytest tests/systems/kafka/test_properties.py`, and look at the
difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.systems.listening import Listening
from wrackline.fleets.base import Host
from wrackline.kafka_client.model import Setting
from wrackline.systems.common.nodes import nodes_on
from wrackline.systems.jvm.property_file import text
from wrackline.systems.kafka.properties import OURS, properties, properties_of
from wrackline.systems.kafka.releases import artifacts, parsed

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = ("4.4.0", "4.0.0", "3.9.2")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "controllers", "at"),
    [("combined", ("n1", "n2"), 0), ("broker", ("c1",), 1), ("controller", ("c1",), 2)],
)
def test_the_whole_configuration(version: str, name: str, controllers: tuple[str, ...], at: int) -> None:
    nodes = nodes_on(Listening(), brokers=("n1", "n2"), controllers=controllers, one_id=True)
    config = {"replica.lag.time.max.ms": 1500, "unclean.leader.election.enable": False}
    made = text(properties(version, nodes, nodes.all[at], config))
    file = GOLDEN / f"{version}-{name}.properties"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(made)
    assert made == file.read_text()


def test_in_a_quorum_that_changes_voters_are_found_by_asking() -> None:
    fleet = Listening()
    fleet.hosts = (*fleet.hosts, Host("c2", "198.18.0.22"))
    nodes = nodes_on(fleet, brokers=("n1", "n2"), controllers=("c1",), one_id=True, spare_controllers=("c2",))
    spare = nodes.all[-1]
    assert (spare.node_id, spare.roles, spare.spare) == (102, {"controller"}, True)
    assert spare not in (*nodes.started, *nodes.spares, *nodes.controllers)
    config = {"controller.quorum.auto.join.enable": True}
    broker, controller = (
        properties("4.4.0", nodes, node, config, dynamic=True) for node in (nodes.all[0], spare)
    )
    for made in (broker, controller):
        assert "controller.quorum.voters" not in made
        assert made["controller.quorum.bootstrap.servers"] == "198.18.0.21:9093,198.18.0.22:9093"
    assert controller["controller.quorum.auto.join.enable"] == "true"
    assert "controller.quorum.auto.join.enable" not in broker, "a broker does not start with it"
    assert nodes.voter_list() == ["101@198.18.0.21:9093"], "the spare votes later"


def test_a_broker_has_the_rack_of_its_host_and_a_controller_none() -> None:
    nodes = nodes_on(Listening(), brokers=("n1", "n2"), controllers=("c1",), one_id=True)
    racks = [properties("4.4.0", nodes, node, {}, rack="a").get("broker.rack") for node in nodes.all]
    assert racks == ["a", "a", None]
    assert "broker.rack" not in properties("4.4.0", nodes, nodes.all[0], {})
    assert OURS["broker.rack"] == "give it as system.racks, host by host"


def test_a_combined_node_has_one_id() -> None:
    nodes = nodes_on(Listening(), brokers=("n1", "n2"), controllers=("n2", "c1"), one_id=True)
    assert [(node.host.name, node.node_id) for node in nodes.all] == [("n1", 1), ("n2", 2), ("c1", 102)]
    assert nodes.voter_list() == ["2@198.18.0.12:9093", "102@198.18.0.21:9093"]


def test_a_value_is_read_as_it_was_written() -> None:
    assert text({"a": "C:\\x\ny"}) == "a=C:\\\\x\\ny\n"


def test_what_a_node_was_given_comes_first() -> None:
    said = [
        Setting("b", "2", source=5),
        Setting("c", "3", source=4),
        Setting("secret", None, source=4),
    ]
    assert properties_of(said) == "# given\nc=3\nsecret=\n\n# by default\nb=2\n"


@pytest.mark.parametrize("version", ["3.6.2", "0.11.3", "0.8.1.1", "4.4", "2.8.2.1", "newest", ""])
def test_a_version_that_cannot_run_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=r"no version of Apache Kafka|older than 0\.8\.2|is between those"):
        parsed(version)


def test_each_version_line_has_what_it_needs_to_log_and_nothing_that_was_never_published() -> None:
    def said(version: str) -> list[str]:
        return [f"{one.name}{' without tools-api' if one.without else ''}" for one in artifacts(version)]

    assert said("4.4.0") == ["kafka_2.13 without tools-api", "log4j-slf4j-impl"]
    assert said("4.0.2") == [
        "kafka_2.13 without tools-api",
        *("log4j-slf4j-impl", "log4j-api", "log4j-core"),
    ]
    assert said("3.9.2") == ["kafka_2.13", "slf4j-reload4j"]


def test_versions_on_zookeeper_have_what_java_17_does_not_bring() -> None:
    def said(version: str) -> list[str]:
        return [f"{one.name} {one.version}" for one in artifacts(version)]

    log4j, client = "slf4j-reload4j 1.7.36", "zookeeper 3.4.10"
    assert said("2.8.2") == ["kafka_2.13 2.8.2", log4j]
    assert said("2.0.1") == ["kafka_2.12 2.0.1", log4j, client]
    assert said("1.1.1") == ["kafka_2.12 1.1.1", log4j, client]
    assert said("0.11.0.3") == ["kafka_2.12 0.11.0.3", "jaxb-api 2.3.1"]
    assert said("0.10.2.2") == ["kafka_2.12 0.10.2.2", "jaxb-api 2.3.1"]
    assert said("0.8.2.2") == ["kafka_2.11 0.8.2.2"]

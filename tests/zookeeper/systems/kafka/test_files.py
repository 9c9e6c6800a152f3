"""The files that brokers and ZooKeeper servers are given, whole, by version.

After a change on purpose: `GOLDEN=write pytest tests/zookeeper/systems/kafka/test_files.py`, and look at
the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.systems.listening import Listening
from wrackline.systems.common.nodes import BROKER_PORT, Nodes, nodes_on
from wrackline.systems.jvm.property_file import text
from wrackline.zookeeper.systems.kafka.properties import broker_properties
from wrackline.zookeeper.systems.servers.server import config, server_id
from wrackline.zookeeper.systems.servers.session import SUPER_SECRET, password_of

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = ("2.8.2", "1.1.1", "0.10.2.2", "0.8.2.2")


def nodes(*zookeepers: str, controllers: tuple[str, ...] = ("c1",)) -> Nodes:
    return nodes_on(
        Listening(*zookeepers),
        brokers=("n1", "n2"),
        controllers=controllers,
        zookeepers=zookeepers,
        controller_port=BROKER_PORT,
    )


def compare(name: str, made: str) -> None:
    file = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        file.write_text(made)
    assert made == file.read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_whole_configuration_of_a_broker(version: str) -> None:
    placed = nodes("z1")
    settings = {"replica.lag.time.max.ms": 1500, "unclean.leader.election.enable": False}
    made = broker_properties(version, placed, placed.brokers[1], settings)
    compare(f"{version}.properties", text(made))


def test_the_first_controller_is_a_broker_with_an_id_and_a_port_of_its_own() -> None:
    placed = nodes("z1", "z2", "z3")
    [controller] = placed.controllers
    made = broker_properties("1.1.1", placed, controller, {})
    assert (made["broker.id"], made["listeners"]) == ("101", "PLAINTEXT://198.18.0.21:9092")
    assert made["zookeeper.connect"] == "198.18.0.31:2181,198.18.0.32:2181,198.18.0.33:2181"
    assert controller not in placed.brokers
    assert "198.18.0.21" not in placed.bootstrap()


def test_the_whole_configuration_of_a_server_that_is_alone_and_of_one_among_three() -> None:
    alone, three = nodes("z1").zookeepers, nodes("z1", "z2", "z3").zookeepers
    compare("alone.cfg", config("/data/broker", alone[0].host.address, alone))
    compare("three.cfg", config("/data/broker", three[1].host.address, three))
    assert [(one.node_id, server_id(one), one.port) for one in three] == [
        (201, 1, 2181),
        (202, 2, 2181),
        (203, 3, 2181),
    ]


def test_the_password_of_a_session_is_what_java_makes_of_its_id() -> None:
    """The id that seeds java.util.Random with 0, whose first numbers everybody knows; what a real server
    gives is looked at in test_system.py."""
    first = (-1155484576, -723955400, 1033096058, -1690734402)
    assert password_of(SUPER_SECRET) == b"".join(
        number.to_bytes(4, "little", signed=True) for number in first
    )

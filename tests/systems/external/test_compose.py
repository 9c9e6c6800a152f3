"""The example for docker compose. Docker cannot run where the tests do, so what is looked at is what would be
run: the commands as they become for each broker, and whether they fit the compose file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from wrackline.fleets.base import Host
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import Spec
from wrackline.systems.base import Node
from wrackline.systems.external.commands.operations import UNDOES, BrokerCommand, Command
from wrackline.systems.external.commands.runner import Commander, Known
from wrackline.systems.external.spec import ExternalSpec

FOLDER = Path(__file__).parents[3] / "docs" / "examples" / "external-compose"


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_checked(FOLDER / "wrackline.yaml")


def external(spec: Spec) -> ExternalSpec:
    assert isinstance(spec.system, ExternalSpec)
    return spec.system


def test_the_names_and_ports_are_those_of_the_compose_file(spec: Spec) -> None:
    services: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    system = external(spec)
    assert {name: one.node for name, one in system.hosts.items()} == {
        name: one["environment"]["KAFKA_NODE_ID"] for name, one in services.items()
    }
    published = [one["ports"][0].removesuffix(":9094") for one in services.values()]
    assert list(system.bootstrap) == published
    for name, one in services.items():
        assert one["container_name"] == f"wrackline-{name}"
        inside = one["networks"]["inside"]["aliases"]
        assert inside == [f"inside-{one['environment']['KAFKA_NODE_ID']}"]
        advertised = one["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        assert advertised == f"INSIDE://{inside[0]}:9092,OUTSIDE://{one['ports'][0].removesuffix(':9094')}"


def test_every_fault_that_a_container_can_have_has_its_commands(spec: Spec) -> None:
    without_power = {BrokerCommand.POWER_OFF, BrokerCommand.POWER_ON}
    assert set(external(spec).commands) == set(BrokerCommand) - without_power
    assert {one.inject.fault for one in spec.nemesis.schedule} == {"kill", "partition", "pause", "restart"}


def docker(folder: Path) -> Path:
    """A stand-in that says what it was asked."""
    folder.mkdir()
    (folder / "docker").write_text('#!/bin/sh\necho "docker $*" >>"$DOCKER_SAID"\n')
    (folder / "docker").chmod(0o755)
    return folder


def test_the_commands_ask_docker_for_the_right_container(
    spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    monkeypatch.setenv("DOCKER_SAID", str(said))
    monkeypatch.setenv("PATH", f"{docker(tmp_path / 'bin')}:/usr/bin:/bin")
    system = external(spec)
    hosts = {one.node: Known(name, one.node, None, one.values) for name, one in system.hosts.items()}
    commands = {BrokerCommand(name): Command(one.run, one.probe) for name, one in system.commands.items()}
    second = Node(2, Host("kafka-2", "127.0.0.1"), frozenset({"broker"}), 19092)
    commander = Commander(commands, hosts, "test", lambda text: text)
    for order in UNDOES:
        if order in commands:
            commander.do(second, (), order)
            commander.probe(second, (), order)
            commander.do(second, (), UNDOES[order])
    running = "docker inspect --format {{.State.Running}} wrackline-kafka-2"
    paused = "docker inspect --format {{.State.Paused}} wrackline-kafka-2"
    assert said.read_text().splitlines() == [
        "docker kill --signal KILL wrackline-kafka-2",
        running,
        "docker start wrackline-kafka-2",
        "docker stop --time 25 wrackline-kafka-2",
        running,
        "docker start wrackline-kafka-2",
        "docker pause wrackline-kafka-2",
        paused,
        "docker unpause wrackline-kafka-2",
        "docker network disconnect wrackline-inside wrackline-kafka-2",
        "docker exec wrackline-kafka-2 timeout 3 bash -c exec 3<>/dev/tcp/inside-3/9092",
        "docker network connect --alias inside-2 wrackline-inside wrackline-kafka-2",
    ]


def test_the_shell_understands_each_of_them(spec: Spec) -> None:
    for name, one in external(spec).commands.items():
        for text in filter(None, (one.run, one.probe)):
            checked = subprocess.run(["/bin/sh", "-n", "-c", text], capture_output=True, text=True)
            assert checked.returncode == 0, f"{name}: {checked.stderr}"

"""The examples for clusters that run already. Neither Kubernetes nor a managed service is here, so what is
looked at is what would be run: whether it is accepted, and what the shell makes of the commands."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from wrackline.fleets.base import Host
from wrackline.harness.specification.access import access_of
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import Spec
from wrackline.plugins.acls import Resource
from wrackline.systems.base import Node
from wrackline.systems.external.commands.operations import UNDOES, BrokerCommand, Command
from wrackline.systems.external.commands.runner import Commander, Known
from wrackline.systems.external.spec import ExternalSpec

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
FILES = sorted(
    file
    for file in EXAMPLES.rglob("*.yaml")
    if "\nsystem:" in file.read_text() and "wrackline-ex" not in str(file)
)
"""Specifications; those of the example of a plug-in are looked at in tests/plugins/test_example.py."""
STRIMZI = EXAMPLES / "external-strimzi"
_STAND_IN = """#!/bin/sh
[ "$*" = "-n kafka apply -f -" ] || [ "$*" = "apply -f -" ] && cat >>"$SAID"
echo "kubectl $*" | tr '\\n' ' ' | sed 's/ $/\\n/' >>"$SAID"
case "$*" in *jsonpath*) echo True;; esac
"""


@pytest.fixture(autouse=True)
def _with_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate and passwords such as the examples take from elsewhere."""
    made = ("-keyout", "key.pem", "-out", "ca.pem", "-subj", "/CN=theirs", "-days", "1")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_USER", "wrackline")
    monkeypatch.setenv("KAFKA_PASSWORD", "not-a-secret")


def external(spec: Spec) -> ExternalSpec:
    assert isinstance(spec.system, ExternalSpec)
    return spec.system


def test_docker_strimzi_and_a_managed_service_are_there() -> None:
    assert {file.parent.name for file in FILES} == {"external-compose", "external-msk", "external-strimzi"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_example_is_accepted_and_the_shell_understands_its_commands(file: Path) -> None:
    system = external(load_checked(file))
    assert system.hosts
    for name, one in system.commands.items():
        for text in filter(None, (one.run, one.probe)):
            checked = subprocess.run(["/bin/sh", "-n", "-c", text], capture_output=True, text=True)
            assert checked.returncode == 0, f"{name}: {checked.stderr}"


def test_strimzis_user_and_the_script_for_the_managed_service_grant_what_a_run_needs() -> None:
    [user] = [one for one in documents("kafka.yaml") if one["kind"] == "KafkaUser"]
    granted = {
        one["resource"]["type"]: set(one["operations"]) for one in user["spec"]["authorization"]["acls"]
    }
    needed = access_of(load_checked(STRIMZI / "wrackline.yaml"))
    assert all(granted[one.resource] >= set(one.operations) for one in needed)
    script = (EXAMPLES / "external-msk" / "rights.sh").read_text()
    for one in access_of(load_checked(EXAMPLES / "external-msk" / "wrackline.yaml")):
        [line] = [each for each in script.replace("\\\n", "").splitlines() if f"--{one.resource}" in each]
        assert set(one.operations) <= set(line.split()), line
        assert ("--resource-pattern-type prefixed" in line) == (one.resource is not Resource.CLUSTER)


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((STRIMZI / name).read_text()))


def test_the_hosts_of_strimzi_are_the_pods_of_its_pool() -> None:
    [pool] = [one for one in documents("kafka.yaml") if one["kind"] == "KafkaNodePool"]
    name = f"{pool['metadata']['labels']['strimzi.io/cluster']}-{pool['metadata']['name']}"
    hosts = external(load_checked(STRIMZI / "wrackline.yaml")).hosts
    assert {host: one.node for host, one in hosts.items()} == {
        f"{name}-{number}": number for number in range(pool["spec"]["replicas"])
    }


def test_kubectl_is_asked_about_the_right_pod_and_chaos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for kubectl. What Chaos Mesh is given names the pod, and what is undone was done."""
    said, programs = tmp_path / "said", tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").write_text(_STAND_IN)
    (programs / "kubectl").chmod(0o755)
    monkeypatch.setenv("SAID", str(said))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    system = external(load_checked(STRIMZI / "wrackline.yaml"))
    monkeypatch.chdir(STRIMZI)
    known = {one.node: Known(name, one.node, None, one.values) for name, one in system.hosts.items()}
    commands = {BrokerCommand(name): Command(one.run, one.probe) for name, one in system.commands.items()}
    commander = Commander(commands, known, "test", lambda text: text)
    second = Node(1, Host("theirs-node-1", "127.0.0.1"), frozenset({"broker"}), 9094)
    for order, kind in (
        (BrokerCommand.KILL, "podchaos/failure"),
        (BrokerCommand.PARTITION, "networkchaos/partition"),
    ):
        said.write_text("")
        commander.do(second, (), order)
        assert commander.probe(second, (), order).in_force
        commander.do(second, (), UNDOES[order])
        lines = said.read_text()
        [chaos] = [
            yaml.safe_load(lines.partition("apiVersion")[2].join(("apiVersion", "")).partition("kubectl")[0])
        ]
        assert chaos["metadata"]["name"] == f"{kind.rpartition('/')[2]}-theirs-node-1"
        assert chaos["spec"]["selector"]["pods"] == {"kafka": ["theirs-node-1"]}
        assert f"{kind}-theirs-node-1" in lines
        assert f"delete {kind.replace('/', ' ')}-theirs-node-1" in lines
    assert "kubectl -n kafka exec theirs-node-1 -c kafka -- sh -c for one" not in lines  # of the partition

"""The user's commands are filled in safely and end in time with all that they started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.broker.clients.loopback import wait_for
from wrackline.fleets.base import Host
from wrackline.systems.base import DeployError, Node
from wrackline.systems.external.commands.operations import (
    BrokerCommand,
    Command,
    carry_out,
    placeholders,
    render,
    unsafe,
)
from wrackline.systems.external.commands.runner import Commander, Known

NODES = tuple(
    Node(number, Host(f"kafka-{number}", f"10.0.0.{number}"), frozenset({"broker"}), 9092)
    for number in (1, 2, 3)
)


def commander(**commands: Command) -> Commander:
    known = {2: Known("kafka-2", 2, "10.9.9.2", {"instance": "i-0abc"})}
    by_order = {BrokerCommand(name.replace("_", "-")): command for name, command in commands.items()}
    return Commander(by_order, known, "test-1", lambda text: text.replace("hunter2", "[secret]"))


def done(text: str) -> str:
    """What a command became, as the shell said it."""
    return commander(kill=Command(f"echo {text}")).do(NODES[1], (NODES[0], NODES[2]), BrokerCommand.KILL)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("{host} {node} {address} {port}", "kafka-2 2 10.9.9.2 9092"),
        ("{others}", "10.0.0.1 10.0.0.3"),
        ("{instance} {test}", "i-0abc test-1"),
        ("'{{node}} ${HOME}'", "{node} ${HOME}"),
        ("'{{.State.Running}}'", "{{.State.Running}}"),
        ("'{print $1}' '{A..B}'", "{print $1} {A..B}"),
    ],
)
def test_placeholders_stand_for_the_brokers_own_and_other_braces_are_the_shells(
    written: str, becomes: str
) -> None:
    assert done(written).endswith(f"exit code 0: {becomes}")


def test_braces_are_found_and_left() -> None:
    assert placeholders("a {host} {{host}} ${host} {Host} {host}") == ("host",)
    assert render("{a}{{b}}{a}", {"a": "1"}) == "1{b}1"


def test_values_that_a_shell_would_not_take_as_one_word_are_found() -> None:
    assert unsafe(["10.0.0.1 n-2.example.org", "[::1]", "$(reboot)", "a;b", ""]) == [
        "[::1]",
        "$(reboot)",
        "a;b",
        "",
    ]


def test_a_command_that_fails_is_told_with_its_last_line_and_without_secrets() -> None:
    failing = commander(start=Command("echo first; echo no such container hunter2 >&2; exit 3"))
    with pytest.raises(DeployError) as refused:
        failing.do(NODES[0], (), BrokerCommand.START)
    assert str(refused.value).startswith("kafka-1: start: `echo first; ")
    assert str(refused.value).endswith("exit code 3: no such container [secret]")
    assert "hunter2" not in str(refused.value)


def test_a_value_that_a_host_lacks_is_told() -> None:
    with pytest.raises(DeployError, match=r"kafka-1: \{instance\} has no value for it in `stop {instance}`"):
        commander(stop=Command("stop {instance}")).do(NODES[0], (), BrokerCommand.STOP)


def test_a_command_without_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    said = carry_out(f"sleep 60 & echo $! >{tmp_path}/pid; echo waiting; wait", 0.5)
    assert time.monotonic() - began < 30
    assert (said.exit_code, said.output) == (None, "waiting")
    child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/status")
    wait_for("its end", lambda: not child.exists() or "\nState:\tZ" in child.read_text(), 10)


def test_what_a_command_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    assert carry_out(f"sleep 20 & echo $! >{tmp_path}/pid", 15).exit_code == 0
    assert time.monotonic() - began < 15
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_probe_that_does_not_end_is_no_answer() -> None:
    slow = commander(kill=Command("true", probe="sleep 5", timeout_s=0.2))
    with pytest.raises(DeployError, match=r"the probe of kill: `sleep 5`: it did not end in time of 0.2 s"):
        slow.probe(NODES[0], (), BrokerCommand.KILL)
    assert (
        commander(kill=Command("true", probe="false")).probe(NODES[0], (), BrokerCommand.KILL).in_force
        is False
    )

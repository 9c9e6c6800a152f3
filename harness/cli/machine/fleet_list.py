"""The fleets that are on this machine, whatever their kind: who owns them, how to get in, how to end them;
and ``wrackline fleet inventory``, the same as an inventory of Ansible's."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from wrackline.cache import cache_folder
from wrackline.fleets.base import Host
from wrackline.fleets.local import clean as namespaces
from wrackline.fleets.local.network import relay
from wrackline.fleets.local.network.namespaces import find_tool
from wrackline.fleets.local.state import FleetFolder, FleetState
from wrackline.fleets.process import state as processes
from wrackline.fleets.process.fleet import ProcessFleet, environment
from wrackline.harness.cli.options import WrongInput, print_json, state_dir_option

SSH_OPTIONS = {
    "GlobalKnownHostsFile": "/dev/null",
    "StrictHostKeyChecking": "yes",
    "IdentitiesOnly": "yes",
    "ConnectTimeout": "10",
    "LogLevel": "ERROR",
}

ROLES = {"n": "brokers", "c": "controllers", "z": "zookeeper"}
"""What the first letter of a host's name says it carries."""


@dataclass(frozen=True, slots=True)
class FleetEntry:
    """A fleet."""

    name: str
    kind: str
    life: str
    """``owned by pid N``, ``detached`` or ``dead``."""
    hosts: Mapping[str, Mapping[str, str | int]]
    """By name, what Ansible calls the variables of a host: ``ansible_host`` and how to get in."""
    namespace: str
    """The network namespace in which the hosts' addresses are; empty: this machine's own."""
    end: Callable[[], None]
    """Raises FleetError when a run owns it."""
    enter: Callable[[str, Sequence[str]], None]
    """Become a shell, or a command, on a host."""

    def as_json(self) -> dict[str, Any]:
        facts = ("name", "kind", "life", "namespace", "hosts")
        return {fact: getattr(self, fact) for fact in facts}

    @property
    def addresses(self) -> dict[str, str]:
        return {name: str(variables["ansible_host"]) for name, variables in self.hosts.items()}


def list_fleets(state_dir: Path) -> list[FleetEntry]:
    """Returns the fleets whose state is in this folder; only root sees fleets of namespaces. Raises
    FleetError."""
    root = state_dir.resolve()
    result = (
        [_of_namespaces(root, state, life) for state, life in namespaces.survey(root)]
        if os.geteuid() == 0
        else []
    )
    below = root / processes.BELOW
    return [*result, *(_of_processes(root, state, life) for state, life in processes.survey(below))]


def clean(state_dir: Path) -> list[str]:
    """End what killed runs left; the names. Raises FleetError."""
    root = state_dir.resolve()
    removed = namespaces.clean(root) if os.geteuid() == 0 else []
    return [*removed, *processes.clean(root / processes.BELOW)]


def _of_namespaces(root: Path, state: FleetState, life: str) -> FleetEntry:
    folder = FleetFolder(root, state.name)
    known = {**SSH_OPTIONS, "UserKnownHostsFile": str(folder.known_hosts)}
    options = [word for option, value in known.items() for word in ("-o", f"{option}={value}")]
    addresses = dict(zip(state.hosts, state.addresses, strict=True))

    def enter(host: str, command: Sequence[str]) -> None:
        program, ssh = find_tool("ip"), find_tool("ssh")
        there = [ssh, "-F", "none", "-i", str(folder.key), *options, f"root@{addresses[host]}", *command]
        os.execv(program, [program, "netns", "exec", state.control, *there])

    def variables(address: str) -> dict[str, str | int]:
        return {
            "ansible_host": address,
            "ansible_port": 22,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(folder.key),
            "ansible_ssh_common_args": " ".join(["-F none", *options]),
            "ansible_python_interpreter": "/usr/bin/python3",
        }

    return FleetEntry(
        state.name,
        state.kind,
        life,
        {name: variables(address) for name, address in addresses.items()},
        state.control,
        lambda: namespaces.end_detached(folder),
        enter,
    )


def _of_processes(root: Path, state: processes.ProcessState, life: str) -> FleetEntry:
    hosts = {host.name: host for host in ProcessFleet(state.name, state.hosts, state_dir=root).hosts}
    folder = processes.ProcessFolder(root / processes.BELOW, state.name)

    def enter(name: str, command: Sequence[str]) -> None:
        host: Host = hosts[name]
        os.chdir(host.root)
        words = ["sh", "-c", " ".join(command)] if command else ["sh", "-i"]
        os.execve("/bin/sh", words, environment(folder.path, host))

    return FleetEntry(
        state.name,
        "process",
        life,
        {name: {"ansible_host": host.address, "ansible_connection": "local"} for name, host in hosts.items()},
        "",
        lambda: processes.end_detached(folder),
        enter,
    )


@click.command("inventory")
@click.option("--list", "as_list", is_flag=True, help="Print the inventory itself, as Ansible asks for it.")
@click.option("--host", "host", hidden=True, help="Ansible's other question; --list has answered it.")
@state_dir_option
def inventory_command(as_list: bool, host: str | None, state_dir: Path) -> None:
    """Print the path of a program that Ansible takes for an inventory: the fleets that are up.

    \b
      sudo wrackline fleet up mine
      wrackline fleet inventory
      ansible-playbook -i $(wrackline fleet inventory) ansible/hosts.yml --limit mine

    There is a group for each fleet, by its name, and the groups `brokers`, `controllers` and `zookeeper`.
    Hosts are reached through the fleet's own network.
    """
    if host is not None:
        click.echo("{}")
    elif as_list:
        alive = [entry for entry in list_fleets(state_dir) if entry.life != "dead"]
        print_json(inventory(alive))
    else:
        click.echo(_program(state_dir))


def inventory(fleets: Sequence[FleetEntry]) -> dict[str, Any]:
    """Returns the inventory of the fleets in the JSON form that `ansible-inventory` reads. A host of
    several fleets that are up has its fleet's name before its own."""
    groups: dict[str, dict[str, list[str]]] = {}
    variables: dict[str, dict[str, str | int]] = {}
    for entry in fleets:
        for name, known in entry.hosts.items():
            called = name if len(fleets) == 1 else f"{entry.name}-{name}"
            variables[called] = {**known, **_way_in(entry, known)}
            for group in (entry.name.replace("-", "_"), ROLES.get(name[0], "others")):
                groups.setdefault(group, {"hosts": []})["hosts"].append(called)
    return {"_meta": {"hostvars": variables}, **groups}


def _way_in(entry: FleetEntry, known: Any) -> dict[str, str | int]:
    if not entry.namespace:
        return {}
    into = ["ip", "netns", "exec", entry.namespace, "/usr/bin/python3", str(Path(relay.__file__).resolve())]
    arguments = f"{known['ansible_ssh_common_args']} -o ProxyCommand='{shlex.join(into)} %h %p'"
    return {"ansible_ssh_common_args": arguments}


def _program(state_dir: Path) -> Path:
    """Raises WrongInput."""
    file = cache_folder() / "inventory" / "fleets.sh"
    ask = [sys.executable, "-m", "wrackline.harness.cli.main", "fleet", "inventory"]
    ask += ["--state-dir", str(state_dir.resolve())]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        half_written = file.with_suffix(".new")
        half_written.write_text(f'#!/bin/sh\nexec {shlex.join(ask)} "$@"\n')
        half_written.chmod(0o755)
        half_written.replace(file)
    except OSError as error:
        raise WrongInput(f"{file} cannot be written: {error.strerror}") from error
    return file

"""The fleets that are on this machine, whatever their kind: who owns them, how to get in, how to end them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrackline.fleets.base import Host
from wrackline.fleets.local import clean as namespaces
from wrackline.fleets.local.namespaces import find_tool
from wrackline.fleets.local.state import FleetFolder
from wrackline.fleets.process import state as processes
from wrackline.fleets.process.fleet import ProcessFleet, environment

SSH_OPTIONS = {
    "GlobalKnownHostsFile": "/dev/null",
    "StrictHostKeyChecking": "yes",
    "IdentitiesOnly": "yes",
    "ConnectTimeout": "10",
    "LogLevel": "ERROR",
}


@dataclass(frozen=True, slots=True)
class Seen:
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


def see(state_dir: Path) -> list[Seen]:
    """Those whose state is in this folder; of namespaces only root sees any. Raises FleetError."""
    root = state_dir.resolve()
    found = [_of_namespaces(root, one) for one in namespaces.survey(root)] if os.geteuid() == 0 else []
    below = root / processes.BELOW
    return [*found, *(_of_processes(root, state, life) for state, life in processes.survey(below))]


def clean(state_dir: Path) -> list[str]:
    """End what killed runs left; the names. Raises FleetError."""
    root = state_dir.resolve()
    removed = namespaces.clean(root) if os.geteuid() == 0 else []
    return [*removed, *processes.clean(root / processes.BELOW)]


def _of_namespaces(root: Path, seen: namespaces.FleetSeen) -> Seen:
    state, folder = seen.state, FleetFolder(root, seen.state.name)
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

    return Seen(
        state.name,
        state.kind,
        seen.life,
        {name: variables(address) for name, address in addresses.items()},
        state.control,
        lambda: namespaces.end_detached(folder),
        enter,
    )


def _of_processes(root: Path, state: processes.ProcessState, life: str) -> Seen:
    hosts = {host.name: host for host in ProcessFleet(state.name, state.hosts, state_dir=root).hosts}
    folder = processes.ProcessFolder(root / processes.BELOW, state.name)

    def enter(name: str, command: Sequence[str]) -> None:
        host: Host = hosts[name]
        os.chdir(host.root)
        words = ["sh", "-c", " ".join(command)] if command else ["sh", "-i"]
        os.execve("/bin/sh", words, environment(folder.path, host))

    return Seen(
        state.name,
        "process",
        life,
        {name: {"ansible_host": host.address, "ansible_connection": "local"} for name, host in hosts.items()},
        "",
        lambda: processes.end_detached(folder),
        enter,
    )

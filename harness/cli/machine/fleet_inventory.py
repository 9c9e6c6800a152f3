"""``wrackline fleet inventory``: the fleets that are up as an inventory of Ansible's."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from wrackline.cache import cache_folder
from wrackline.fleets.local import relay
from wrackline.harness.cli.machine.fleet_list import Seen, see
from wrackline.harness.cli.options import WrongInput, print_json, state_dir_option

ROLES = {"n": "brokers", "c": "controllers", "z": "zookeeper"}
"""What the first letter of a host's name says it carries."""


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
        alive = [seen for seen in see(state_dir) if seen.life != "dead"]
        print_json(inventory(alive))
    else:
        click.echo(_program(state_dir))


def inventory(fleets: Sequence[Seen]) -> dict[str, Any]:
    """As `ansible-inventory` reads it. A host of several fleets that are up has its fleet's name before its
    own."""
    groups: dict[str, dict[str, list[str]]] = {}
    variables: dict[str, dict[str, str | int]] = {}
    for seen in fleets:
        for name, known in seen.hosts.items():
            called = name if len(fleets) == 1 else f"{seen.name}-{name}"
            variables[called] = {**known, **_way_in(seen, known)}
            for group in (seen.name.replace("-", "_"), ROLES.get(name[0], "others")):
                groups.setdefault(group, {"hosts": []})["hosts"].append(called)
    return {"_meta": {"hostvars": variables}, **groups}


def _way_in(seen: Seen, known: Any) -> dict[str, str | int]:
    if not seen.namespace:
        return {}
    into = ["ip", "netns", "exec", seen.namespace, "/usr/bin/python3", str(Path(relay.__file__).resolve())]
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
    except OSError as wrong:
        raise WrongInput(f"{file} cannot be written: {wrong.strerror}") from wrong
    return file

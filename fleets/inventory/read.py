"""An Ansible inventory, read by Ansible itself: INI, YAML, a folder of both, or a program."""

from __future__ import annotations

import functools
import getpass
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from socket import gaierror, gethostbyname
from typing import Any

READ_S = 60.0
"""A program may ask a cloud for its hosts."""
USUAL_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_JUMP = re.compile(r"(?:([^@,\s]+)@)?([A-Za-z0-9_.-]+)(?::(\d+))?")
_HARMLESS = ("connecttimeout", "identitiesonly", "loglevel", "globalknownhostsfile", "userknownhostsfile")
_HARMLESS_TOO = (
    "serveraliveinterval",
    "serveralivecountmax",
    "controlmaster",
    "controlpersist",
    "controlpath",
)
_STRICT = ("yes", "true", "ask")


class InventoryError(ValueError):
    """The inventory cannot be read, or a host in it not be reached as it says. One line."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory before hosts are chosen from it."""

    variables: Mapping[str, Mapping[str, Any]]
    """By host, in the inventory's order."""
    groups: Mapping[str, tuple[str, ...]]
    """Hosts of each group, those of its children included."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A host on the way to another."""

    user: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Login:
    """The login of one host: address, user, key, jumps."""

    alias: str
    """Its name in the inventory."""
    address: str
    """IPv4, where its nodes listen, for each other and for clients."""
    ssh_address: str
    port: int
    user: str
    key_file: Path
    jumps: tuple[Jump, ...]
    """On the way to it, the first that is met first."""
    python: str
    variables: Mapping[str, Any]


def read(path: Path) -> Inventory:
    """Raises InventoryError."""
    if not path.exists():
        raise InventoryError(f"{path}: no such file or folder")
    return _read(path.resolve(), path.stat().st_mtime_ns)


@functools.cache
def _read(path: Path, _changed_ns: int) -> Inventory:
    command = [_program(), "--inventory", str(path), "--list"]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "ANSIBLE_NOCOWS": "1", "ANSIBLE_NOCOLOR": "1"}
    # Else a file that no plug-in can read is an empty inventory and a warning.
    environment["ANSIBLE_INVENTORY_UNPARSED_FAILED"] = "true"
    environment["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "true"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=READ_S, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InventoryError(f"{path}: ansible-inventory: {error}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        told = next((line for line in said if "ERROR" in line), said[-1] if said else "no reason given")
        raise InventoryError(f"{path}: Ansible cannot read it: {' '.join(told.split())}")
    try:
        listed = json.loads(done.stdout)
        variables = listed["_meta"]["hostvars"]
    except (ValueError, KeyError, TypeError) as error:
        raise InventoryError(f"{path}: ansible-inventory printed no inventory") from error
    groups = {name: tuple(dict.fromkeys(_members(listed, name))) for name in listed if name != "_meta"}
    everybody = dict.fromkeys(
        host for members in (groups.get("all", ()), *groups.values()) for host in members
    )
    return Inventory({host: variables.get(host, {}) for host in everybody}, groups)


def _members(listed: Mapping[str, Any], group: str) -> Sequence[str]:
    about = listed.get(group, {})
    below = [host for child in about.get("children", ()) for host in _members(listed, child)]
    return [*about.get("hosts", ()), *below]


def _program() -> str:
    beside = Path(sys.executable).with_name("ansible-inventory")
    result = str(beside) if beside.exists() else shutil.which("ansible-inventory")
    if result is None:
        raise InventoryError("ansible-inventory is not installed: pip install ansible-core")
    return result


def login(alias: str, variables: Mapping[str, Any]) -> Login:
    """Raises InventoryError."""

    def text(*names: str) -> str | None:
        for name in names:
            if (value := variables.get(name)) is not None:
                if "{{" in str(value):
                    raise InventoryError(f"host {alias}: {name}: templates are not resolved here: {value}")
                return str(value)
        return None

    if (how := text("ansible_connection")) not in (None, "ssh", "smart", "paramiko", "paramiko_ssh"):
        raise InventoryError(f"host {alias}: ansible_connection is {how}, and hosts are reached by SSH only")
    if text("ansible_password", "ansible_ssh_pass") is not None:
        raise InventoryError(f"host {alias}: passwords are not taken: give ansible_ssh_private_key_file")
    ssh_address = text("ansible_host", "ansible_ssh_host") or alias
    python = text("ansible_python_interpreter")
    return Login(
        alias,
        _resolved(alias, text("wrackline_address") or ssh_address),
        ssh_address,
        _port(alias, text("ansible_port", "ansible_ssh_port")),
        text("ansible_user", "ansible_ssh_user") or getpass.getuser(),
        _key(alias, text("ansible_ssh_private_key_file", "ansible_private_key_file")),
        _jumps(
            alias, " ".join(filter(None, map(text, ("ansible_ssh_common_args", "ansible_ssh_extra_args"))))
        ),
        "/usr/bin/python3" if python is None or python.startswith("auto") else python,
        variables,
    )


def _resolved(alias: str, address: str) -> str:
    try:
        return str(IPv4Address(address))
    except AddressValueError:
        pass
    try:
        return gethostbyname(address)
    except (gaierror, UnicodeError) as error:
        raise InventoryError(
            f"host {alias}: nobody knows the address of {address!r}; give ansible_host, or wrackline_address "
            "where nodes listen elsewhere than SSH does"
        ) from error


def _port(alias: str, given: str | None) -> int:
    if given is not None and not given.isdigit():
        raise InventoryError(f"host {alias}: ansible_port {given!r} is no number")
    return int(given) if given else 22


def _key(alias: str, given: str | None) -> Path:
    candidates = [Path(given).expanduser()] if given else [Path.home() / ".ssh" / one for one in USUAL_KEYS]
    for file in candidates:
        if file.is_file():
            return file
    what = f"the key {candidates[0]} is not there" if given else "no key is named, and none of yours is usual"
    raise InventoryError(f"host {alias}: {what}; ansible_ssh_private_key_file names one")


def _jumps(alias: str, arguments: str) -> tuple[Jump, ...]:
    """Returns the jumps in OpenSSH's arguments; arguments without a meaning here are left out."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise InventoryError(f"host {alias}: its SSH arguments: {error}") from error
    named = ""
    while words:
        word = words.pop(0)
        option = word[2:] or (words.pop(0) if words else "")
        key, _, value = option.replace("=", " ", 1).strip().partition(" ")
        key, value = key.lower(), value.strip()
        if word.startswith("-J"):
            named = option
        elif word.startswith("-F") and option in ("none", "/dev/null"):
            continue
        elif word.startswith("-o") and key == "proxyjump":
            named = value
        elif word.startswith("-o") and key == "stricthostkeychecking" and value.lower() in _STRICT:
            continue
        elif word.startswith("-o") and key == "stricthostkeychecking":
            raise InventoryError(
                f"host {alias}: StrictHostKeyChecking={value} would take any key; leave it out, and put the "
                "host's key into known_hosts"
            )
        elif not (word.startswith("-o") and key in (*_HARMLESS, *_HARMLESS_TOO)):
            raise InventoryError(
                f"host {alias}: the SSH argument {word if word == option else f'{word} {option}'.strip()!r} "
                "means nothing here; a jump host is named by -o ProxyJump=USER@HOST:PORT"
            )
    return tuple(_jump(alias, one) for one in named.split(",") if one and named.lower() != "none")


def _jump(alias: str, named: str) -> Jump:
    match = _JUMP.fullmatch(named.removeprefix("ssh://"))
    if match is None:
        raise InventoryError(f"host {alias}: ProxyJump {named!r}: give it as USER@HOST:PORT")
    return Jump(match[1] or getpass.getuser(), match[2], int(match[3] or 22))

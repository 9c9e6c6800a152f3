"""Reading Ansible's inventories, and what is refused of them before any host is spoken to."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Become, Host
from wrackline.fleets.become import COMMANDS, carried, sudo_rule
from wrackline.fleets.inventory import prepare
from wrackline.fleets.inventory.power import PowerSpec, words
from wrackline.fleets.inventory.read import InventoryError, Jump, login, read
from wrackline.fleets.inventory.spec import InventorySpec
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.network import iptables

NEVER = {
    Ability.SWAPPED_DISK,
    Ability.PAGE_CACHE,
    Ability.THROTTLE,
    Ability.HYPERVISOR,
    Ability.CLIENTS,
}
INI = """
[brokers]
a ansible_host=192.0.2.1 bmc=10.0.0.1
b ansible_host=192.0.2.2 bmc=10.0.0.2
[quorum]
c ansible_host=192.0.2.3
[controllers:children]
quorum
[all:vars]
ansible_user=root
"""
YAML = """
all:
  vars: {ansible_user: root}
  children:
    brokers:
      hosts: {a: {ansible_host: 192.0.2.1, bmc: 10.0.0.1}, b: {ansible_host: 192.0.2.2, bmc: 10.0.0.2}}
    controllers: {children: {quorum: {hosts: {c: {ansible_host: 192.0.2.3}}}}}
"""
PROGRAM = """#!/bin/sh
cat <<END
{"_meta": {"hostvars": {"a": {"ansible_host": "192.0.2.1", "ansible_user": "root", "bmc": "10.0.0.1"},
 "b": {"ansible_host": "192.0.2.2", "ansible_user": "root", "bmc": "10.0.0.2"},
 "c": {"ansible_host": "192.0.2.3", "ansible_user": "root"}}},
 "brokers": {"hosts": ["a", "b"]}, "quorum": {"hosts": ["c"]}, "controllers": {"children": ["quorum"]}}
END
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a key, what known_hosts has of three hosts, and an inventory that Ansible reads once."""
    folder = tmp_path_factory.mktemp("inventory")
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=20)
    words = key.with_suffix(".pub").read_text().split()[:2]
    known = "".join(f"192.0.2.{last} {' '.join(words)}\n" for last in (1, 2, 3))
    (folder / "known_hosts").write_text(known)
    for user in ("root", "wl"):
        text = INI.replace("ansible_user=root", f"ansible_user={user}")
        write(folder, f"{text}ansible_ssh_private_key_file={key}\n", f"of-{user}")
    return folder


@pytest.fixture(scope="module")
def key(folder: Path) -> Path:
    return folder / "key"


def write(folder: Path, text: str, name: str = "hosts") -> Path:
    file = folder / name
    file.write_text(text)
    if text.startswith("#!"):
        file.chmod(0o755)
    return file


@pytest.mark.parametrize(("text", "name"), [(INI, "hosts"), (YAML, "hosts.yaml"), (PROGRAM, "hosts.sh")])
def test_every_kind_of_inventory_says_the_same(text: str, name: str, tmp_path: Path) -> None:
    found = read(write(tmp_path, text, name))
    assert list(found.variables) == ["a", "b", "c"]
    assert found.groups["brokers"] == ("a", "b")
    assert found.groups["controllers"] == ("c",)
    assert found.variables["b"]["bmc"] == "10.0.0.2"


def test_what_is_no_inventory_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="no such file"):
        read(tmp_path / "none")
    with pytest.raises(InventoryError, match=r"Ansible cannot read it: .*ERROR"):
        read(write(tmp_path, "{nonsense: [", "bad.yaml"))


def spec(folder: Path, user: str = "root", **more: Any) -> InventorySpec:
    usual = {
        "inventory": str(folder / f"of-{user}"),
        "known_hosts": str(folder / "known_hosts"),
        "brokers": 2,
    }
    return InventorySpec(**{**usual, **more})


def test_groups_say_who_is_who(folder: Path) -> None:
    hosts = spec(folder).build("run", folder).hosts
    assert [(host.name, host.alias, host.address) for host in hosts] == [
        ("n1", "a", "192.0.2.1"),
        ("n2", "b", "192.0.2.2"),
        ("c1", "c", "192.0.2.3"),
    ]
    assert {str(host.root) for host in hosts} == {"/"}


def test_without_groups_hosts_are_taken_in_order(folder: Path, key: Path) -> None:
    hosts = "".join(
        f"{name} ansible_host=192.0.2.{last} ansible_user=wl ansible_ssh_private_key_file={key}\n"
        for last, name in enumerate("xyz", 1)
    )
    found = spec(folder, inventory=str(write(folder, hosts, "ungrouped"))).build("run", folder).hosts
    assert [(host.name, host.alias) for host in found] == [("n1", "x"), ("n2", "y"), ("c1", "z")]
    assert {str(host.root) for host in found} == {"/home/wl/.wrackline"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"brokers": 3}, "3 hosts are wanted for brokers, and its group brokers has 2"),
        (
            {"power": {"off": "ipmitool -H {bmc} power off", "on": "x", "state": "x {rack}"}},
            "power: host a has no variable rack in the inventory",
        ),
        ({"power": {"off": "x"}}, "give off, on and state, or sysrq: true alone"),
        ({"power": {"off": "x {a.b}", "on": "x", "state": "x"}}, "a field is the plain name of a variable"),
        ({"data_dir": "/data; rm -rf /"}, "give a whole path"),
        ({"known_hosts": "/nowhere/known_hosts"}, "/nowhere/known_hosts cannot be read: No such file"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], said: str, folder: Path) -> None:
    with pytest.raises(ValidationError) as refused:
        spec(folder, **settings)
    assert said in str(refused.value)


def test_a_host_whose_key_nobody_knows_is_refused(folder: Path, tmp_path: Path) -> None:
    two = (folder / "known_hosts").read_text().splitlines(keepends=True)[:2]
    (tmp_path / "known_hosts").write_text("".join(two))
    with pytest.raises(ValidationError, match=r"host c: .*known_hosts has no key of 192\.0\.2\.3"):
        spec(folder, known_hosts=str(tmp_path / "known_hosts"))


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ansible_host": "{{ ip }}"}, "templates are not resolved here"),
        ({"ansible_connection": "local"}, "hosts are reached by SSH only"),
        ({"ansible_password": "secret"}, "passwords are not taken"),
        ({"ansible_port": "ssh"}, "ansible_port 'ssh' is no number"),
        ({"ansible_ssh_private_key_file": "/nowhere"}, "the key /nowhere is not there"),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=no"}, "would take any key"),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=accept-new"}, "would take any key"),
        ({"ansible_ssh_common_args": "-o ProxyCommand='nc %h %p'"}, "means nothing here"),
        ({"ansible_ssh_common_args": "-o 'ProxyJump=a b'"}, "give it as USER@HOST:PORT"),
    ],
)
def test_logins_that_we_cannot_use_are_refused(variables: dict[str, str], said: str, key: Path) -> None:
    usual = {"ansible_host": "192.0.2.1", "ansible_ssh_private_key_file": str(key)}
    with pytest.raises(InventoryError, match="host a: ") as refused:
        login("a", {**usual, **variables})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    ["-J ops@gate:2222,inner", "-o ProxyJump=ops@gate:2222,inner", "-oProxyJump=ops@gate:2222,inner -F none"],
)
def test_jump_hosts(arguments: str, key: Path) -> None:
    variables = {"ansible_host": "192.0.2.1", "ansible_ssh_private_key_file": str(key), "ansible_user": "wl"}
    found = login("a", {**variables, "ansible_ssh_common_args": arguments})
    assert found.jumps[0] == Jump("ops", "gate", 2222)
    assert (found.jumps[1].address, found.jumps[1].port) == ("inner", 22)


def test_no_shell_sees_what_a_variable_holds() -> None:
    assert words("ipmitool -H {bmc} 'power {what}'", {"bmc": "x; rm -rf / $(id)", "what": "off"}) == [
        "ipmitool",
        "-H",
        "x; rm -rf / $(id)",
        "power off",
    ]
    assert PowerSpec(sysrq=True).commands == ("", "", "")


@pytest.mark.parametrize(
    ("user", "become", "lacks"),
    [
        ("root", "nobody", {*NEVER, Ability.POWER}),
        ("wl", "root", {*NEVER, Ability.POWER}),
        (
            "wl",
            "named",
            {*NEVER, Ability.POWER, Ability.ROOT, Ability.KERNEL},
        ),
        ("wl", "nobody", {*Ability} - {Ability.DISK}),
    ],
)
def test_it_lacks_what_its_user_may_not(user: str, become: str, lacks: set[Ability], folder: Path) -> None:
    made = spec(folder, user, become=Become(become))
    assert {ability for ability in Ability if made.lacks(ability)} == lacks
    assert made.untested
    powered = made.model_copy(update={"power": PowerSpec(sysrq=True)})
    assert not powered.untested
    assert powered.model_copy(update={"data_disk": "shared"}).untested


def test_the_rule_has_the_named_commands_and_nothing_else() -> None:
    assert sudo_rule("wl") == "wl ALL=(root) NOPASSWD: /usr/sbin/iptables, /usr/sbin/iptables-restore"
    host = Host("n1", "192.0.2.1", user="wl", become=Become.NAMED)
    assert carried(host, "id").startswith("exec sh -c 'PATH=$HOME/.wrackline-become:")
    assert all(path.startswith("/usr/sbin/iptables") for path in COMMANDS)
    assert carried(Host("n1", "192.0.2.1", user="wl", become=Become.ROOT), "id", "timeout 3") == (
        "exec sudo -n timeout 3 sh -c id"
    )


def test_what_is_ended_of_a_killed_run_is_what_faults_make() -> None:
    assert prepare.CHAINS == iptables.PREFIX
    assert prepare.PROGRAMS == programs.FOLDER

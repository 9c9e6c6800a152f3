"""Hosts of a netns fleet as somebody's machines, to be reached by plain SSH through an Ansible inventory:
with a user who is not root, a sudo rule, a jump host, and a power command.

The power command is a program like `ipmitool`; the switch that it turns is the netns fleet's, in the process
of the test, at the end of a socket.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrackline.fleets.become import sudo_rule
from wrackline.fleets.inventory.fleet import InventoryFleet
from wrackline.fleets.inventory.spec import InventorySpec
from wrackline.fleets.netns.fleet import NetnsFleet

USER = "wl"
OPEN = "chmod 755 /etc/wrackline-fleet && chmod 644 /etc/wrackline-fleet/authorized_keys"
"""The key that opens root's account opens the user's too; his sshd reads it with his rights."""
SWITCH = """
import socket, sys
switch = socket.socket(socket.AF_UNIX)
switch.connect(sys.argv[1])
switch.sendall(" ".join(sys.argv[2:]).encode() + b"\\n")
print(switch.makefile().readline().strip())
"""


def make_user(fleet: NetnsFleet, *names: str) -> None:
    """A user with the fleet's key, the rule for the named commands, and a data disk of his own."""
    for host in fleet.hosts:
        if host.name in names:
            fleet.remote(host).run(
                f"{OPEN} && useradd -m -s /bin/sh {USER} && usermod -p '*' {USER} && chown {USER} /data && "
                f"echo '{sudo_rule(USER)}' >/etc/sudoers.d/{USER} && chmod 440 /etc/sudoers.d/{USER}"
            )


@contextmanager
def switch_of(fleet: NetnsFleet, folder: Path) -> Iterator[str]:
    """The beginning of a command line: ``... off n1``, ``on n1``, ``state n1``."""
    program, path = folder / "switch.py", folder / "switch"
    program.write_text(SWITCH)
    hosts = {host.name: host for host in fleet.hosts}
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(path))
    door.listen()

    def serve() -> None:
        while True:
            try:
                caller, _ = door.accept()
            except OSError:
                return
            with caller:
                what, name = caller.makefile().readline().split()
                power, host = fleet.power, hosts[name]
                if what == "off":
                    power.cut(host)
                elif what == "on":
                    power.on(host)
                    fleet.remote(host).run(OPEN)
                caller.sendall(f"Chassis Power is {'on' if power.is_on(host) else 'off'}\n".encode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"{sys.executable} {program} {path}"
    finally:
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        thread.join(5)


def inventory(fleet: NetnsFleet, folder: Path, *, user: str, through: str = "") -> Path:
    """An INI inventory of n1 and n2, n2 behind the host ``through``."""
    addresses = {host.name: host.address for host in fleet.hosts}
    lines = ["[brokers]"]
    for number in (1, 2):
        jump = ""
        if through and number == 2:
            jump = f" ansible_ssh_common_args='-o ProxyJump={USER}@{addresses[through]}'"
        lines.append(f"kafka-{number} ansible_host={addresses[f'n{number}']} outlet=n{number}{jump}")
    lines += ["[all:vars]", f"ansible_user={user}", f"ansible_ssh_private_key_file={fleet.folder.key}"]
    file, text = folder / f"hosts-{user}.ini", "\n".join(lines) + "\n"
    if not file.exists():  # Ansible reads it once, while it stays as it is
        file.write_text(text)
    return file


@dataclass(frozen=True, slots=True)
class Machines:
    """What an administrator would have."""

    fleet: NetnsFleet
    folder: Path
    power: str

    def spec(self, *, user: str = USER, **more: Any) -> InventorySpec:
        file = inventory(self.fleet, self.folder, user=user, through="j1" if user == USER else "")
        known = str(self.fleet.folder.known_hosts)
        usual = {"brokers": 2, "controllers": 1, "combined": True, "known_hosts": known, "become": "named"}
        power = {what: f"{self.power} {what} {{outlet}}" for what in ("off", "on", "state")}
        return InventorySpec.model_validate(
            {
                "inventory": str(file),
                "power": power,
                **usual,
                **({} if user == USER else {"become": "nobody"}),
                **more,
            }
        )

    def build(self, name: str, **more: Any) -> InventoryFleet:
        made = self.spec(**more).build(name, self.folder)
        assert isinstance(made, InventoryFleet)
        return made

    def as_root(self, host: str, command: str) -> str:
        """By the netns fleet itself: what is really on the host."""
        [one] = [one for one in self.fleet.hosts if one.name == host]
        return self.fleet.remote(one).run(command, timeout_s=60).stdout


@contextmanager
def made_machines(name: str, state_root: Path, folder: Path) -> Iterator[Machines]:
    """Two hosts, and a third on the way to the second."""
    with (
        NetnsFleet(name, ["n1", "n2", "j1"], state_dir=state_root, disk_mb=64) as fleet,
        switch_of(fleet, folder) as power,
    ):
        make_user(fleet, "n1", "n2", "j1")
        yield Machines(fleet, folder, power)

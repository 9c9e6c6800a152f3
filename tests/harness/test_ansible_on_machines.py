"""Ansible's roles, applied twice to virtual machines whose first process is systemd: units are started, start
again after they were killed, and are there after a power cut.

Guests have no way to Debian's archive, so their image has the packages that the roles want, but for one: that
lies in a small archive on each host, and a task really installs it. What the roles promise is looked for on
the hosts and through their network, not asked of Ansible.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.harness.playbooks import ANSIBLE, HERE, apply, environment, fleets_up
from tests.systems.kafka.conftest import installed
from wrackline.fleets.local.keys import public
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.image.store import Store
from wrackline.fleets.qemu.settings import Hardware

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.timeout(7200),
    pytest.mark.skipif("ID=debian" not in Path("/etc/os-release").read_text(), reason="no Debian"),
]

KAFKA = "3.9.2"
BOOT_S, PLAY_S, UNIT_S = 400.0, 3000.0, 300.0
"""What a machine keeps whose processors a dozen others want too; a quiet one is five times as quick."""
CLOCK = "systemd-timesyncd"
ZOOKEEPER = "wrackline-zookeeper"
MODE = r"Mode: (leader|follower)"
INSTALLED = "sudo"
"""The package that the image has not."""
ARCHIVE = "/srv/archive"
DISK = "/dev/vdc"


def defaults(role: str) -> dict[str, object]:
    read: dict[str, object] = yaml.safe_load((ANSIBLE / "roles" / role / "defaults/main.yml").read_text())
    return read


def packages() -> list[str]:
    """What the roles install, what Ansible's module for packages is written in, and a service that sets the
    clock, which the role is there to stop."""
    wanted = defaults("host")["host_packages"]
    assert isinstance(wanted, list)
    there = [name for name in wanted if name != INSTALLED]
    assert len(there) == len(wanted) - 1
    return [*there, str(defaults("kafka")["kafka_java_package"]), "python3-apt", CLOCK]


def archive(folder: Path) -> dict[str, bytes]:
    """Files of an archive with one package, from where this machine's apt has its own."""
    subprocess.run(
        ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", INSTALLED],
        cwd=folder,
        check=True,
        timeout=360,
    )
    [package] = folder.glob("*.deb")
    said = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True, check=True).stdout
    content = package.read_bytes()
    digest, name = hashlib.sha256(content).hexdigest(), f"{INSTALLED}.deb"
    listed = f"{said.strip()}\nFilename: ./{name}\nSize: {len(content)}\nSHA256: {digest}\n"
    return {name: content, "Packages": listed.encode()}


@pytest.fixture(scope="module")
def fleet(state_root: Path) -> Iterator[QemuFleet]:
    made = QemuFleet(
        f"am-{os.getpid()}",
        ["n1", "n2"],
        state_dir=state_root,
        hardware=Hardware(memory_mb=768),
        accel="tcg",
        boot_s=BOOT_S,
        packages=packages(),
        init="systemd",
    )
    made.prepare(print)
    began = time.monotonic()
    with made:
        print(f"two hosts with systemd answer SSH after {time.monotonic() - began:.1f} s")
        yield made


def on(fleet: QemuFleet, number: int, command: str, *, check: bool = True) -> str:
    return fleet.remote(fleet.hosts[number - 1]).run(command, timeout_s=120, check=check).stdout.strip()


def unit(fleet: QemuFleet, number: int, name: str) -> list[str]:
    """``active`` or what it is, and ``enabled`` or what it is."""
    asked = f"systemctl is-active {name}; systemctl is-enabled {name}"
    return on(fleet, number, asked, check=False).split()


def until(what: Callable[[], str], wanted: str) -> str:
    """What it says as soon as the regular expression is found in it."""
    deadline = time.monotonic() + UNIT_S
    while not re.search(wanted, said := what()):
        assert time.monotonic() < deadline, f"no {wanted!r} within {UNIT_S:g} s; last: {said}"
        time.sleep(0.5)
    return said


def asked(fleet: QemuFleet, number: int, word: str) -> str:
    """What ZooKeeper says to one of its four-letter words, over the hosts' network."""
    try:
        with (
            fleet.entered(),
            socket.create_connection((fleet.hosts[number - 1].address, 2181), timeout=10) as connection,
        ):
            connection.sendall(word.encode())
            return connection.makefile().read()
    except OSError as wrong:
        return str(wrong)


def main_pid(fleet: QemuFleet, number: int) -> str:
    """Of ZooKeeper, as systemd knows it; 0 while there is none."""
    return on(fleet, number, f"systemctl show -p MainPID --value {ZOOKEEPER}")


@pytest.fixture(scope="module")
def site(fleet: QemuFleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of whoever has these machines: n2's data disk is one that nobody has formatted."""
    installed(KAFKA)
    packed = archive(tmp_path_factory.mktemp("archive"))
    for number in (1, 2):
        remote = fleet.remote(fleet.hosts[number - 1])
        for name, content in packed.items():
            remote.put(content, f"{ARCHIVE}/{name}")
        remote.put(f"deb [trusted=yes] file:{ARCHIVE} ./\n".encode(), "/etc/apt/sources.list")
        remote.run("apt-get -q update", timeout_s=120)
    on(fleet, 2, f"touch /data/from-before && umount /data && wipefs -qa {DISK} && rm -f /etc/fstab")
    folder = tmp_path_factory.mktemp("site")
    books = [ANSIBLE / f"{name}.yml" for name in ("hosts", "kafka", "zookeeper")]
    (folder / "site.yml").write_text(yaml.safe_dump([{"import_playbook": str(book)} for book in books]))
    groups = {
        "zookeeper": {"hosts": {"n1": None, "n2": None}},
        "with_a_new_disk": {"hosts": {"n2": {"host_data_disk": DISK}}},
    }
    settings = {
        "host_user": "wl",
        "host_public_keys": [public(fleet.folder.key).strip()],
        "kafka_version": KAFKA,
        "zookeeper_kafka_version": KAFKA,
    }
    (folder / "site.yaml").write_text(yaml.safe_dump({"all": {"children": groups, "vars": settings}}))
    return folder


@pytest.fixture(scope="module")
def applied(fleet: QemuFleet, site: Path) -> list[dict[str, dict[str, int]]]:
    """What Ansible counted the first time, and the second."""
    # The control: before the roles there is no sudo, and a service that sets the clock.
    for number in (1, 2):
        assert on(fleet, number, "cat /proc/1/comm") == "systemd"
        until(partial(on, fleet, number, "systemctl is-system-running", check=False), "running|degraded")
        assert on(fleet, number, "systemctl --failed --plain --no-legend") == ""
        assert unit(fleet, number, CLOCK) == ["active", "enabled"]
        assert not fleet.remote(fleet.hosts[number - 1]).run("command -v sudo", check=False).ok
        print(on(fleet, number, "systemd-analyze time"))
    around = {**environment(fleet.folder.root, site), "ANSIBLE_GATHERING": "smart"}
    hosts = [fleets_up(around), site / "site.yaml"]
    counted = []
    for turn in ("first", "second"):
        began = time.monotonic()
        counted.append(apply(site / "site.yml", hosts, around, timeout_s=PLAY_S))
        print(f"applied for the {turn} time in {time.monotonic() - began:.0f} s: {counted[-1]}")
    return counted


def test_the_second_time_nothing_changes(applied: list[dict[str, dict[str, int]]]) -> None:
    first, second = applied
    assert set(first) == set(second) == {"n1", "n2"}
    assert all(counts["changed"] > 5 for counts in first.values())
    for counts in (*first.values(), *second.values()):
        assert counts["failed"] == counts["unreachable"] == 0
    assert {host: counts["changed"] for host, counts in second.items()} == {"n1": 0, "n2": 0}


@pytest.mark.usefixtures("applied")
def test_a_host_is_what_the_role_promises(fleet: QemuFleet) -> None:
    for number in (1, 2):
        assert unit(fleet, number, CLOCK) == ["inactive", "disabled"]
        assert on(fleet, number, "su wl -c 'sudo -n iptables -S' | head -1") == "-P INPUT ACCEPT"
        refused = on(fleet, number, "su wl -c 'sudo -n cat /etc/shadow' 2>&1", check=False)
        assert "a password is required" in refused
        assert on(fleet, number, "su - wl -c 'ulimit -Hn; ulimit -Sn'").split() == ["65536", "65536"]
        assert on(fleet, number, "stat -c '%U %a' /home/wl/.ssh/authorized_keys /data").split() == [
            *("wl", "600"),
            *("wl", "755"),
        ]
        assert on(fleet, number, "su wl -c 'touch /data/mine'; ls -l /data/mine").split()[2] == "wl"
    assert on(fleet, 2, "findmnt -n -o SOURCE,FSTYPE /data").split() == [DISK, "ext4"]
    assert on(fleet, 2, "ls /data").split() == ["lost+found", "mine"]
    assert f"{DISK} /data ext4 noatime 0 2" in on(fleet, 2, "cat /etc/fstab")
    assert on(fleet, 2, "systemctl is-active data.mount") == "active"


@pytest.mark.usefixtures("applied")
def test_zookeeper_answers_starts_again_and_outlives_a_power_cut(fleet: QemuFleet) -> None:
    said = "".join(until(partial(asked, fleet, number, "srvr"), MODE) for number in (1, 2))
    assert set(re.findall(MODE, said)) == {"leader", "follower"}
    for number in (1, 2):
        assert asked(fleet, number, "ruok") == "imok"
        assert unit(fleet, number, ZOOKEEPER) == ["active", "enabled"]
        assert on(fleet, number, f"ps -o user:20=,comm= -p {main_pid(fleet, number)}").split() == [
            "zookeeper",
            "java",
        ]

    killed = main_pid(fleet, 1)
    on(fleet, 1, f"kill -9 {killed}")
    until(partial(main_pid, fleet, 1), f"^(?!0$|{killed}$)")
    until(partial(asked, fleet, 1, "srvr"), MODE)

    fleet.power.cut(fleet.hosts[1])
    began = time.monotonic()
    fleet.power.on(fleet.hosts[1])
    print(f"n2 answers SSH {time.monotonic() - began:.1f} s after its power came back")
    until(partial(asked, fleet, 2, "srvr"), MODE)
    print(f"its ZooKeeper answers {time.monotonic() - began:.1f} s after")
    assert unit(fleet, 2, ZOOKEEPER) == ["active", "enabled"]
    assert unit(fleet, 2, CLOCK) == ["inactive", "disabled"]
    assert on(fleet, 2, "findmnt -n -o SOURCE,FSTYPE /data").split() == [DISK, "ext4"]


def test_a_hypervisor_is_made_of_this_machine(
    state_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine itself, not a host: a namespace has no way to an archive to make an image from, and a QEMU
    in a virtual machine would emulate an emulation. Its packages are there (`./wrack setup`); the image is
    built from nothing, in a cache of the test's own, and a virtual machine starts from it."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "/usr/bin/python3",
        "hypervisor_wrackline": str(HERE / "wrack"),
    }
    inventory = tmp_path / "site.yaml"
    inventory.write_text(yaml.safe_dump({"hypervisors": {"hosts": {"localhost": variables}}}))
    around = environment(state_root, tmp_path)
    first, second = (
        apply(ANSIBLE / "hypervisor.yml", [inventory], around, timeout_s=PLAY_S)["localhost"] for _ in "12"
    )
    assert (first["changed"], first["failed"]) == (1, 0)
    assert (second["changed"], second["failed"]) == (0, 0)

    monkeypatch.setenv("XDG_CACHE_HOME", around["XDG_CACHE_HOME"])
    [image] = Store().all()
    asked_for: list[str] = []
    fleet = QemuFleet(f"ah-{os.getpid()}", ["n1"], state_dir=state_root, accel="tcg")
    fleet.prepare(asked_for.append)
    assert asked_for == [], "the role did not make the image that a fleet wants"
    with fleet:
        assert fleet.remote(fleet.hosts[0]).run("uname -r").stdout.strip() == image.kernel

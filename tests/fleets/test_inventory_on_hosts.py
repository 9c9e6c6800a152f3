"""Machines of somebody's, here the hosts of a netns fleet behind plain SSH: entered as a user with a narrow
sudo rule, one of them through a jump host; locked, used, and left as they were found."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleets.machines import USER, Machines, made_machines
from wrackline.fleets.base import FleetError
from wrackline.fleets.canary import Canaries

pytestmark = pytest.mark.fleet

OWNER = """
import json, sys, time
from pathlib import Path
from wrackline.fleets.inventory.spec import InventorySpec
fleet = InventorySpec.model_validate_json(sys.argv[1]).build(sys.argv[2], Path("/tmp"))
fleet.up()
fleet.remote(fleet.hosts[0]).run("mkdir -p /data/broker && echo mine >/data/broker/left")
print("up", flush=True)
time.sleep(60)
"""
SHOWN = "-printf '%p %y %u %m\\n'"
FILES = f"find /opt /etc /var /home /srv /usr/local -xdev {SHOWN}; find /data /run /var/tmp {SHOWN}"


@pytest.fixture(scope="module")
def machines(state_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = tmp_path_factory.mktemp("machines")
    with made_machines(f"tf-inv-{os.getpid()}", state_root, folder) as made, made.fleet.entered():
        yield made


def test_a_user_enters_by_way_of_the_jump_host_and_may_run_what_is_named(machines: Machines) -> None:
    with machines.build("named") as fleet:
        first, second = map(fleet.remote, fleet.hosts)
        callers = [
            remote.run("echo ${SSH_CONNECTION%% *}; id -un").stdout.split() for remote in (first, second)
        ]
        assert callers == [["198.18.0.1", USER], ["198.18.0.31", USER]]
        assert "-P INPUT ACCEPT" in second.run("iptables -w 5 -S").stdout
        for root_only in ("cat /etc/shadow", "sudo -n id", "date -s 2020-01-01"):
            assert not second.run(root_only, check=False).ok
        # Without the scripts nothing is run as root: sudo was what did it.
        assert not second.run("/usr/sbin/iptables -S", check=False).ok
        second.put(b"text", f"{fleet.hosts[1].root}/opt/wrackline/file", mode=0o600)
        assert (
            machines.as_root("n2", f"stat -c '%U %a' {fleet.hosts[1].root}/opt/wrackline/file") == "wl 600\n"
        )


def test_a_host_is_left_as_it_was_found(machines: Machines) -> None:
    before = machines.as_root("n1", FILES)
    with machines.build("tidy", keep_installed=False) as fleet:
        root = fleet.hosts[0].root
        for file in ("opt/wrackline/x", "etc/wrackline/y", "var/log/wrackline/z", "run/wrackline/pid"):
            fleet.remote(fleet.hosts[0]).put(b"", f"{root}/{file}")
        fleet.remote(fleet.hosts[0]).put(b"", "/data/broker/log-0/1.log")
        assert machines.as_root("n1", FILES) != before
    assert machines.as_root("n1", FILES).splitlines() == before.splitlines()


def test_programs_stay_where_that_is_wished(machines: Machines) -> None:
    with machines.build("first") as fleet:
        root = fleet.hosts[0].root
        fleet.remote(fleet.hosts[0]).put(b"", f"{root}/opt/wrackline/deps-1")
    with machines.build("second", keep_installed=False) as fleet:
        assert fleet.remote(fleet.hosts[0]).run(f"ls {root}/opt/wrackline").stdout == "deps-1\n"
    assert machines.as_root("n1", f"ls -d {root} 2>/dev/null; true") == ""


def test_a_host_is_one_runs_alone(machines: Machines) -> None:
    with machines.build("earlier"):
        with pytest.raises(
            FleetError, match=r"host n1 \(kafka-1\): it is in use by earlier of \S+, since 20"
        ):
            machines.build("later").up()
        assert "earlier of" in machines.as_root("n2", "cat /var/tmp/wrackline.lock")
    with machines.build("later"):
        pass
    assert machines.as_root("n1", "ls /var/tmp") == ""


def test_what_a_killed_run_left_is_ended_by_the_next(machines: Machines) -> None:
    command = [sys.executable, "-c", OWNER, machines.spec().model_dump_json(), "killed"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        machines.as_root("n1", "iptables -N WRACK-f1 && iptables -A INPUT -j WRACK-f1 && iptables -N others")
        owner.kill()
    deadline = time.monotonic() + 10
    while True:  # its lock ends with its connection
        try:
            fleet = machines.build("next")
            fleet.up()
            break
        except FleetError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    try:
        assert machines.as_root("n1", "ls -A /data/broker 2>/dev/null; true") == ""
        rules = machines.as_root("n1", "iptables -S")
        assert "WRACK" not in rules
        assert "-N others" in rules
    finally:
        fleet.down()
        machines.as_root("n1", "iptables -X others")


def test_a_silent_owner_loses_its_hosts(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its machine has vanished: the connection stands, and nobody speaks."""
    monkeypatch.setattr("wrackline.fleets.inventory.lock.PATIENCE_S", 0.5)
    monkeypatch.setattr("wrackline.fleets.inventory.lock.WORD_EVERY_S", 60.0)
    fleet = machines.build("silent")
    fleet.up()
    try:
        until = time.monotonic() + 10
        while machines.as_root("n1", "ls /var/tmp"):
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        fleet.down()


def test_data_of_somebody_else_is_not_touched(machines: Machines) -> None:
    machines.as_root("n1", "mkdir /data/broker && echo precious >/data/broker/log")
    try:
        with pytest.raises(FleetError, match="/data/broker holds data that no run of Wrackline left"):
            machines.build("rude").up()
        assert machines.as_root("n1", "cat /data/broker/log") == "precious\n"
    finally:
        machines.as_root("n1", "rm -r /data/broker")


def test_a_missing_rule_is_told_before_the_run(machines: Machines) -> None:
    machines.as_root("n1", "mv /etc/sudoers.d/wl /etc/sudoers.wl")
    try:
        with pytest.raises(
            FleetError, match=r"sudo does not let wl run /usr/sbin/iptables without a password"
        ):
            machines.build("unruly").up()
    finally:
        machines.as_root("n1", "mv /etc/sudoers.wl /etc/sudoers.d/wl")


def test_a_power_cut_by_command_takes_what_was_not_synced(machines: Machines) -> None:
    with machines.build("powered") as fleet:
        host = fleet.hosts[1]
        canaries = Canaries(fleet, [host])
        canaries.start_all()
        canaries.wait_witness(host)
        assert fleet.power.is_on(host)
        fleet.power.cut(host)
        assert not fleet.power.is_on(host)
        assert fleet.power.cut(host).decided_ns == fleet.power.cut(host).decided_ns  # it is off already
        with pytest.raises(FleetError):
            fleet.remote(host).run("true", timeout_s=2)
        cut = fleet.power.on(host)
        assert cut is not None
        assert not cut.counted
        loss = canaries.after(host, cut.decided_ns)
        assert loss.proved, loss
        assert machines.as_root("n2", "cat /var/tmp/wrackline.lock").startswith("powered of")  # taken again
        assert fleet.power.on(host) is None
        canaries.stop()


def test_a_power_command_that_does_nothing_is_found_out(machines: Machines) -> None:
    lame = {"off": "true", "on": "true", "state": "echo off", "boot_s": 0.5}
    with machines.build("lame", power=lame) as fleet:
        fleet.power.cut(fleet.hosts[0])
        with pytest.raises(FleetError, match="it never lost its power"):
            fleet.power.on(fleet.hosts[0])
        fleet.power._off.clear()
    stubborn = {"off": "true", "on": "true", "state": "echo Power is on", "command_s": 0.5}
    with (
        machines.build("stubborn", power=stubborn) as fleet,
        pytest.raises(FleetError, match=r"host n1 \(kafka-1\): it still has power 0\.5 s after power\.off"),
    ):
        fleet.power.cut(fleet.hosts[0])
    broken = {"off": "sh -c 'echo no such outlet >&2; exit 3'", "on": "true", "state": "true"}
    with (
        machines.build("broken", power=broken) as fleet,
        pytest.raises(FleetError, match=r"power\.off .* ended with exit code 3: no such outlet"),
    ):
        fleet.power.cut(fleet.hosts[0])


def test_a_host_without_a_data_disk_is_refused_or_given_one(machines: Machines) -> None:
    with pytest.raises(
        FleetError, match=r"/srv is no file system of its own: mount one there, or say data_disk: make"
    ):
        machines.build("bare", user="root", data_dir="/srv").up()
    # The hosts' /dev shows no disks; these make the machine's loop devices theirs.
    nodes = "mknod /dev/loop-control c 10 237; for n in $(seq 0 63); do mknod /dev/loop$n b 7 $n; done; true"
    for host in ("n1", "n2"):
        machines.as_root(host, nodes)
    with machines.build("made", user="root", data_dir="/srv/disk", data_disk="make", disk_mb=64) as fleet:
        sizes = [
            fleet.remote(host).run("df --output=fstype /srv/disk").stdout.split()[1] for host in fleet.hosts
        ]
        assert sizes == ["ext4", "ext4"]
    for host in ("n1", "n2"):
        assert "/srv" not in machines.as_root(host, "cat /proc/mounts; ls -d /srv/disk 2>/dev/null; true")
        assert machines.as_root(host, "ls /var/lib/wrackline/data.img 2>/dev/null; true") == ""
    held = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    assert "data.img" not in held


def test_everything_by_sudo(machines: Machines) -> None:
    machines.as_root("n1", f"echo '{USER} ALL=(root) NOPASSWD: ALL' >/etc/sudoers.d/zz")
    machines.as_root("n2", f"echo '{USER} ALL=(root) NOPASSWD: ALL' >/etc/sudoers.d/zz")
    try:
        with machines.build("everything", become="root") as fleet:
            remote, began = fleet.remote(fleet.hosts[1]), time.monotonic()
            assert remote.run("id -u").stdout == "0\n"
            remote.put(b"text", "/etc/wrackline/deep/file", mode=0o640)
            assert machines.as_root("n2", "stat -c '%U %a' /etc/wrackline/deep/file") == "root 640\n"
            with pytest.raises(FleetError, match="did not end within"):
                remote.run("echo $$ >/run/sleeper; exec sleep 55", timeout_s=0.5)
            assert time.monotonic() - began < 30
            assert machines.as_root("n2", "ps -o comm= -p $(cat /run/sleeper) || echo gone") == "gone\n"
        assert machines.as_root("n2", "ls -d /etc/wrackline 2>/dev/null; true") == ""
    finally:
        for host in ("n1", "n2"):
            machines.as_root(host, "rm /etc/sudoers.d/zz")


def test_a_host_that_shows_another_key_is_not_entered(machines: Machines, tmp_path: Path) -> None:
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=20)
    words = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    known = tmp_path / "known_hosts"
    known.write_text("".join(f"198.18.0.{last} {words}\n" for last in (11, 12, 31)))
    with pytest.raises(FleetError, match="shows another host key than"):
        machines.build("wary", known_hosts=str(known)).up()


def test_threads_of_locks_end(machines: Machines) -> None:
    before = threading.active_count()
    with machines.build("threads"):
        pass
    until = time.monotonic() + 10
    while threading.active_count() > before:
        assert time.monotonic() < until, threading.enumerate()
        time.sleep(0.05)

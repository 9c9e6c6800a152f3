"""Virtual machines, what takes minutes: an image from nothing, by two who want it at once, and KVM tried."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wrackline.fleets.base import FileLoss, FleetError
from wrackline.fleets.local.network.namespaces import run_tool
from wrackline.fleets.qemu.accelerators import chosen
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.initrd import initrd
from wrackline.fleets.qemu.image.recipe import recipe
from wrackline.fleets.qemu.image.store import Store
from wrackline.fleets.qemu.settings import Hardware

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1200)]


def test_two_builds_of_one_image_make_it_once_and_it_holds_no_key(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wrackline.harness.cli.main", "image", "build"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [each.communicate(timeout=900) for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert said[0][0] == said[1][0], "both got the same image"
    errors = [error for _, error in said]
    assert sum("built in" in error for error in errors) == 1
    assert sum("another process is at work on it; waiting" in error for error in errors) == 1

    [image] = Store(tmp_path / "wrackline/images").all()
    for folder in ("/etc/ssh", "/root"):
        listing = run_tool(["debugfs", "-R", f"ls -p {folder}", str(image.root)])
        assert "ssh_host" not in listing
        assert ".ssh" not in listing
    assert "sshd_config" in run_tool(["debugfs", "-R", "ls -p /etc/ssh", str(image.root)])
    assert not run_tool(["debugfs", "-R", "cat /etc/machine-id", str(image.root)]).strip()
    assert image.python == f"{sys.version_info.major}.{sys.version_info.minor}"


def test_kvm_is_taken_when_a_guest_came_up_by_it_and_else_is_refused_in_one_line() -> None:
    image = build(Store(), recipe(), print)
    first = initrd(image)
    asked: list[str] = []
    found = chosen("auto", image, first, asked.append)
    asked.clear()
    assert chosen("auto", image, first, asked.append) == found
    assert asked == [], "it was tried again, though it is known"
    if found == "tcg":
        with pytest.raises(FleetError, match=r"fleet\.accel kvm: .*; accel: tcg emulates") as caught:
            chosen("kvm", image, first, print)
        assert "\n" not in str(caught.value)


def test_systemd_runs_the_services_and_a_cut_loses_what_it_loses_everywhere(state_root: Path) -> None:
    with QemuFleet(f"td-{os.getpid()}", ["n1"], state_dir=state_root, accel="tcg", init="systemd") as fleet:
        [host] = fleet.hosts
        remote = fleet.remote(host)
        running = "until systemctl is-system-running | grep -E 'running|degraded'; do sleep 0.5; done"
        state = remote.run(running, timeout_s=120).stdout
        assert state == "running\n", remote.run("systemctl --failed --plain --no-legend").stdout
        assert remote.run("cat /proc/1/comm").stdout == "systemd\n"
        assert "sshd" in remote.run("ps -o comm= -p $(systemctl show -p MainPID --value ssh)").stdout

        holder = "exec 3>>/data/held; echo synced >&3; sync /data/held /data; echo unsynced >&3; sleep 300"
        remote.run(f"setsid sh -c '{holder}' >/dev/null 2>&1 & until grep -q uns /data/held; do :; done")
        assert fleet.power.drop_page_cache(host).files["held"] == FileLoss(16, 7)
        assert remote.run("cat /data/held; pgrep -cx sleep", check=False).stdout == "synced\n0\n"

        first = remote.run("cat /proc/sys/kernel/random/boot_id").stdout
        remote.run(
            # The system disk loses its last second, too.
            "echo kept >/root/system; sleep 2; "
            "echo synced >/data/f; sync /data/f /data; echo unsynced >>/data/f"
        )
        cut = fleet.power.cut(host)
        assert cut.counted
        back = fleet.power.on(host)
        assert back is not None
        assert dict(back.files) == {"f": FileLoss(16, 7)}
        assert remote.run("cat /data/f /root/system").stdout == "synced\nkept\n"
        assert remote.run("cat /proc/sys/kernel/random/boot_id").stdout != first


def test_two_hosts_on_xfs_reach_one_another_and_come_back_from_cold(state_root: Path) -> None:
    hardware = Hardware(disk_mb=320)
    with QemuFleet(
        f"tc-{os.getpid()}",
        ["n1", "n2"],
        state_dir=state_root,
        hardware=hardware,
        filesystem="xfs",
        accel="tcg",
        snapshots=False,
    ) as fleet:
        one, other = fleet.hosts
        remote = fleet.remote(one)
        assert remote.run("findmnt -n -o FSTYPE /data").stdout.strip() == "xfs"
        reach = "exec 3<>/dev/tcp/n2/22; head -c 4 <&3"
        assert remote.run(f"bash -c '{reach}'").stdout == "SSH-"
        remote.run("echo synced >/data/f; sync /data/f /data; echo unsynced >>/data/f")
        fleet.power.cut(one)
        back = fleet.power.on(one)
        assert back is not None
        assert dict(back.files) == {"f": FileLoss(16, 7)}
        assert remote.run(f"bash -c '{reach}'").stdout == "SSH-"
        remote.run("iptables -A OUTPUT -d n2 -j DROP")
        assert not remote.run(f"timeout 2 bash -c '{reach}'", check=False).ok
        fleet.power.cut(other)
        assert not fleet.power.is_on(other)

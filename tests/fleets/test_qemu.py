"""Virtual machines: what a power cut takes, and what a power-on brings back.

The watcher reads /proc, the guest's files, and sockets of its own. One machine serves all tests of the file,
a second is of the owner that gets killed. The image is built when it is not there: a minute, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleets.traces import machine_network, traces
from tests.fleets.virtual import obeys_its_hypervisor, silent
from wrackline.fleets.base import Disk, FileLoss, FleetError, Remote
from wrackline.fleets.local.clean import clean, survey
from wrackline.fleets.qemu.fleet import QemuFleet

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.slow,
    pytest.mark.skipif("ID=debian" not in Path("/etc/os-release").read_text(), reason="no Debian"),
]

DIRECT = """
import mmap, os, sys
def page(letter):
    memory = mmap.mmap(-1, 1 << 20)
    memory.write(letter * (1 << 20))
    return memory
def write(name, letter, sync):
    file = os.open("/data/" + name, os.O_RDWR | os.O_DIRECT)
    os.pwrite(file, page(letter), 0)
    if sync:
        os.fsync(file)
if sys.argv[1] == "before":
    for name in ("flushed", "cached"):
        file = os.open("/data/" + name, os.O_CREAT | os.O_RDWR)
        os.pwrite(file, b"o" * (1 << 20), 0)
        os.fsync(file)
    os.fsync(os.open("/data", os.O_RDONLY))
else:
    write("flushed", b"n", True)
    write("cached", b"n", False)
"""
"""Overwrites a file in place past the guest's page cache: only the disk's own cache can still lose that."""

OWNER = """
import sys, time
from pathlib import Path
from wrackline.fleets.qemu.fleet import QemuFleet
fleet = QemuFleet(sys.argv[1], ["n1"], state_dir=Path(sys.argv[2]), accel="tcg")
fleet.up()
print("up", flush=True)
time.sleep(300)
"""


@pytest.fixture(scope="module")
def fleet(state_root: Path) -> Iterator[QemuFleet]:
    before = machine_network()
    made = QemuFleet(f"tq-{os.getpid()}", ["n1"], state_dir=state_root, accel="tcg")
    made.prepare(print)
    with made:
        assert machine_network() == before
        made.remote(made.hosts[0]).put(DIRECT.encode(), "/root/direct.py")
        yield made
    assert traces(made.name, state_root) == []


@pytest.fixture
def remote(fleet: QemuFleet) -> Remote:
    fleet.power.on(fleet.hosts[0])
    return fleet.remote(fleet.hosts[0])


def qemu_of(fleet: str) -> tuple[int, list[str]]:
    """Process and arguments of a fleet's only QEMU, found from outside."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if f"wl-{fleet}-n1" in arguments:
            found.append((int(entry.parent.name), arguments))
    assert len(found) == 1
    return found[0]


def letters(remote: Remote, name: str) -> set[str]:
    return set(remote.run(f"fold -w 1 /data/{name} | sort -u").stdout.split())


def test_a_cut_loses_exactly_what_was_not_synced_and_a_snapshot_brings_the_host_back(
    fleet: QemuFleet, remote: Remote
) -> None:
    [host] = fleet.hosts
    life = "cat /proc/sys/kernel/random/boot_id; cut -d ' ' -f 22 /proc/1/stat"
    first = remote.run(life).stdout
    write = "head -c {1} /dev/urandom >>/data/{0}"
    remote.run(
        f"{write.format('both', 100_000)}; {write.format('synced', 70_000)};"
        " sync /data/both /data/synced /data;"
        f"{write.format('both', 50_000)}; {write.format('unsynced', 30_000)};"
        " echo kept >/root/system; sleep 2"
    )
    cut = fleet.power.cut(host)
    assert not fleet.power.is_on(host)
    silent(fleet)
    back = fleet.power.on(host)
    assert back is not None
    assert back.counted
    assert cut.lost_ns - cut.decided_ns < 3e9
    assert dict(back.files) == {"both": FileLoss(150_000, 100_000), "unsynced": FileLoss(30_000, 0)}
    left = remote.run("cd /data && stat -c '%n %s' both synced unsynced; true").stdout
    assert left.split() == ["both", "100000", "synced", "70000"]
    assert remote.run("cat /root/system").stdout == "kept\n", "the host's own system disk outlives the cut"
    assert "-incoming" in qemu_of(fleet.name)[1], "it was booted from cold"
    # The rule that tells a host's lives apart (wrackline.nemesis.faults.network.iptables) works after a
    # snapshot, too.
    assert remote.run(life).stdout != first
    assert abs(float(remote.run("date +%s.%N").stdout) - time.time()) < 5.0


def test_what_the_disk_had_in_its_cache_is_lost_with_the_power_and_with_nothing_else(
    fleet: QemuFleet, remote: Remote
) -> None:
    [host] = fleet.hosts
    remote.run("python3 /root/direct.py before && python3 /root/direct.py after")
    fleet.power.cut(host)
    back = fleet.power.on(host)
    assert letters(remote, "flushed") == {"n"}
    assert letters(remote, "cached") == {"o"}
    assert back is not None
    assert {path: loss.changed for path, loss in back.files.items()} == {"cached": True}
    # The control: the same writes, and the same end of QEMU, but the disk keeps its power.
    remote.run("python3 /root/direct.py before && python3 /root/direct.py after")
    os.kill(qemu_of(fleet.name)[0], signal.SIGKILL)
    while fleet.power.is_on(host):
        time.sleep(0.01)
    fleet.power.on(host)
    assert letters(remote, "cached") == {"n"}


def test_the_page_cache_goes_and_the_host_stays(fleet: QemuFleet, remote: Remote) -> None:
    [host] = fleet.hosts
    holder = "exec 3>>/data/held; echo synced >&3; sync /data/held /data; echo unsynced >&3; sleep 300"
    remote.run(f"setsid sh -c '{holder}' >/dev/null 2>&1 & until grep -q uns /data/held; do :; done")
    up_s = float(remote.run("cut -d ' ' -f 1 /proc/uptime").stdout)
    lost = fleet.power.drop_page_cache(host)
    assert lost.files["held"] == FileLoss(16, 7)
    assert remote.run("cat /data/held").stdout == "synced\n"
    assert not remote.run("pgrep -x sleep", check=False).ok
    assert float(remote.run("cut -d ' ' -f 1 /proc/uptime").stdout) > up_s


def test_a_host_has_a_kernel_and_a_clock_of_its_own(remote: Remote) -> None:
    assert remote.run("uname -r").stdout.strip() != os.uname().release
    remote.run("date -s '+1 hour'")
    assert float(remote.run("date +%s").stdout) - time.time() > 3500
    remote.run("modprobe sch_netem && tc qdisc add dev eth0 root netem delay 200ms")
    began = time.monotonic()
    remote.run("true")
    assert time.monotonic() - began > 0.2
    remote.run("tc qdisc del dev eth0 root")
    remote.run("date -s '-1 hour'")


def test_what_a_hypervisor_does_is_seen_from_outside_and_ends(fleet: QemuFleet, remote: Remote) -> None:
    obeys_its_hypervisor(fleet, remote)


def test_a_host_comes_back_with_an_older_disk_or_an_empty_one(fleet: QemuFleet, remote: Remote) -> None:
    [host] = fleet.hosts
    remote.run("echo old >/data/version")  # not synced: the copy sees to that
    fleet.power.copy_disk(host)
    remote.run("echo new >/data/version; sync /data/version /data")
    fleet.power.cut(host)
    fleet.power.swap_disk(host, Disk.STALE)
    fleet.power.on(host)
    assert remote.run("cat /data/version").stdout == "old\n"
    with pytest.raises(FleetError, match="n1 is on: its disk is exchanged while it is off"):
        fleet.power.swap_disk(host, Disk.WIPED)
    fleet.power.cut(host)
    with pytest.raises(FleetError, match="there is no copy of the disk of n1"):
        fleet.power.swap_disk(host, Disk.STALE)
    fleet.power.swap_disk(host, Disk.WIPED)
    fleet.power.on(host)
    assert remote.run("ls /data").stdout == "lost+found\n"


def test_a_paused_host_loses_its_power_uncounted(fleet: QemuFleet, remote: Remote) -> None:
    [host] = fleet.hosts
    remote.run("head -c 1000 /dev/zero >/data/unseen")
    fleet.power.pause(host)
    assert not fleet.power.cut(host).counted
    assert fleet.power.on(host) is not None
    assert not remote.run("test -s /data/unseen", check=False).ok
    fleet.power.cut(host)
    with pytest.raises(FleetError, match="n1 is off"):
        fleet.power.pause(host)


def test_what_a_killed_owner_left_is_removed(state_root: Path) -> None:
    name = f"tk-{os.getpid()}"
    command = [sys.executable, "-c", OWNER, name, str(state_root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "up\n"
            kinds = {trace.split()[0] for trace in traces(name, state_root)}
            assert kinds == {"netns", "process", "loop", "mount", "file"}
            assert [state.kind for state, _ in survey(state_root) if state.name == name] == ["qemu"]
        finally:
            owner.kill()
    assert traces(name, state_root) != []
    assert name in clean(state_root)
    assert traces(name, state_root) == []

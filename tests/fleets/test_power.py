"""A power cut loses what was not synced, all of it and nothing else; nothing of the host outlives it."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from wrackline.fleets.base import FileLoss, FleetError
from wrackline.fleets.local.disk import compare, shut_down
from wrackline.fleets.local.look import files_seen
from wrackline.fleets.netns.fleet import NetnsFleet

pytestmark = pytest.mark.fleet

WRITER = """
import os
def write(name, synced, unsynced):
    file = os.open("/data/log/" + name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(file, os.urandom(synced))
    if synced:
        os.fsync(file)
    os.write(file, os.urandom(unsynced))
os.makedirs("/data/log")
write("both", 100_000, 50_000)
write("synced", 70_000, 0)
folder = os.open("/data/log", os.O_RDONLY)
os.fsync(folder)
write("unsynced", 0, 30_000)
with open("/data/log/checkpoint", "wb") as file:
    file.write(b"old content"); file.flush(); os.fsync(file.fileno())
os.fsync(folder)
with open("/data/log/checkpoint.new", "wb") as file:
    file.write(b"new content")
"""

TRUNCATER = """
import os, time
file = os.open("/data/again", os.O_CREAT | os.O_WRONLY)
os.write(file, os.urandom(9000)); os.fsync(file); os.close(file)
folder = os.open("/data", os.O_RDONLY); os.fsync(folder); os.close(folder)
file = os.open("/data/again", os.O_WRONLY | os.O_TRUNC)
os.write(file, os.urandom(9000))
open("/run/truncated", "w").close()
time.sleep(60)
"""

HOLDER = """
import os, time
file = os.open("/data/f", os.O_CREAT | os.O_WRONLY)
os.write(file, os.urandom(4000)); os.fsync(file)
folder = os.open("/data", os.O_RDONLY); os.fsync(folder); os.close(folder)
os.write(file, os.urandom(3000))
open("/run/held", "w").close()
time.sleep(60)
"""

TALKER = """
import socket, time
listener = socket.create_server(("", 7000))
peer, _ = listener.accept()
while True:
    peer.sendall(b"x" * 1000)
"""


def test_a_cut_loses_exactly_what_was_not_synced(fleet: NetnsFleet) -> None:
    host = fleet.hosts[0]
    remote = fleet.remote(host)
    remote.put(WRITER.encode(), "/opt/writer.py")
    remote.run("python3 /opt/writer.py && mv /data/log/checkpoint.new /data/log/checkpoint")

    cut = fleet.power.cut(host)
    assert not fleet.power.is_on(host)
    assert cut.decided_ns < cut.lost_ns
    back = fleet.power.on(host)

    assert back is not None
    assert back.files["log/both"] == FileLoss(150_000, 100_000)
    assert back.files["log/unsynced"].after_bytes == 0
    assert "log/synced" not in back.files
    assert back.lost_bytes >= 80_000
    assert (back.decided_ns, back.lost_ns) == (cut.decided_ns, cut.lost_ns)
    sizes = remote.run("stat -c %s /data/log/both /data/log/synced").stdout.split()
    assert sizes == ["100000", "70000"]
    # Replaced by a rename that nobody synced: old content and new are both 11 bytes long, so only the bytes
    # tell.
    if remote.get("/data/log/checkpoint") == b"old content":
        assert back.files["log/checkpoint"].changed
    assert remote.get("/opt/writer.py") == WRITER.encode(), (
        "the system disk is not the data disk: it survives"
    )


def test_reading_a_truncated_file_does_not_write_it_to_disk(fleet: NetnsFleet) -> None:
    """ext4 writes a file back that was truncated, written and then closed by anybody, even by one who only
    looked."""
    host = fleet.hosts[0]
    remote = fleet.remote(host)
    remote.put(TRUNCATER.encode(), "/opt/truncater.py")
    remote.run("setsid python3 /opt/truncater.py >/dev/null 2>&1 &")
    remote.run("until test -e /run/truncated; do sleep 0.01; done", timeout_s=10)
    data = fleet._machines[host.name].data
    unwritten = Path(f"/sys/fs/ext4/loop{os.minor(data.stat().st_dev)}/delayed_allocation_blocks")
    dirty = int(unwritten.read_text())
    with files_seen(data) as seen:
        assert seen["again"].size_bytes == 9000
        assert dirty > 0
        assert int(unwritten.read_text()) == dirty


def test_the_switch_is_idempotent(fleet: NetnsFleet) -> None:
    host = fleet.hosts[0]
    assert fleet.power.on(host) is None
    first = fleet.power.cut(host)
    assert fleet.power.cut(host) == first
    assert fleet.power.on(host) is not None
    assert fleet.power.on(host) is None
    assert fleet.remote(host).run("uptime").ok


def test_all_hosts_can_lose_power_at_once(fleet: NetnsFleet) -> None:
    for host in fleet.hosts:
        fleet.remote(host).run("head -c 5000 /dev/urandom > /data/dirty")
    for switch in (fleet.power.cut, fleet.power.on):
        threads = [threading.Thread(target=switch, args=(host,)) for host in fleet.hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    for host in fleet.hosts:
        assert fleet.remote(host).run("cat /data/dirty | wc -c", check=False).stdout.strip() == "0"


def test_a_dead_host_says_nothing_not_even_goodbye_and_not_later(fleet: NetnsFleet) -> None:
    """Neither FIN nor RST at the cut, and after power-on no byte that was still in a socket's buffer."""
    host = fleet.hosts[0]
    remote = fleet.remote(host)
    remote.put(TALKER.encode(), "/opt/talker.py")
    remote.run("setsid python3 /opt/talker.py >/dev/null 2>&1 &")
    with fleet.entered():
        listener = _connect(host.address, 7000)
    with listener:
        assert listener.recv(1000)
        fleet.power.cut(host)
        with pytest.raises(TimeoutError):
            _read_all(listener)
        fleet.power.on(host)
        assert remote.run("true").ok
        # A machine that came back knows nothing of the connection, and may say so.
        with pytest.raises((TimeoutError, ConnectionResetError)):
            assert listener.recv(1 << 20) == b"", "bytes of a dead host"


def _read_all(connection: socket.socket) -> None:
    """What had arrived before the cut, then silence: a TimeoutError."""
    arrived = 0
    while chunk := connection.recv(1 << 20):
        arrived += len(chunk)
        assert arrived < 2**26, "the dead host goes on talking"


def _connect(address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection((address, port), timeout=0.5)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "the talker never listened"
            time.sleep(0.02)


def test_the_page_cache_alone_can_be_lost_on_a_host_that_stays_on(fleet: NetnsFleet) -> None:
    host = fleet.hosts[0]
    remote = fleet.remote(host)
    remote.run("echo here > /run/still-here; rm -rf /data/*; sync -f /data")
    remote.put(HOLDER.encode(), "/opt/holder.py")
    remote.run("setsid python3 /opt/holder.py >/dev/null 2>&1 & setsid sleep 333 >/dev/null 2>&1 &")
    remote.run("until test -e /run/held; do sleep 0.01; done", timeout_s=10)

    lost = fleet.power.drop_page_cache(host)

    assert lost.files == {"f": FileLoss(7_000, 4_000)}
    assert remote.run("stat -c %s /data/f").stdout == "4000\n"
    assert not remote.run("pgrep -f [h]older.py", check=False).ok
    assert remote.run("pgrep -f 'sleep [3]33' && cat /run/still-here").ok, (
        "who does not use the disk lives on"
    )
    remote.run("echo new > /data/g && sync /data/g")
    fleet.power.cut(host)
    with pytest.raises(FleetError, match="host n1 is off"):
        fleet.power.drop_page_cache(host)
    fleet.power.on(host)
    assert remote.run("cat /data/f | wc -c; cat /data/g").stdout.split() == ["4000", "new"]


def test_xfs_loses_its_unsynced_bytes_too(state_root: Path) -> None:
    with NetnsFleet(
        f"tf-xfs-{os.getpid()}", ["n1"], state_dir=state_root, disk_mb=320, filesystem="xfs"
    ) as fleet:
        (host,) = fleet.hosts
        remote = fleet.remote(host)
        remote.run(
            "head -c 9000 /dev/urandom > /data/f && sync /data/f /data && head -c 4000 /dev/urandom >> "
            "/data/f"
        )
        assert remote.run("findmnt -n -o FSTYPE /data").stdout.strip() == "xfs"
        fleet.power.cut(host)
        back = fleet.power.on(host)
        assert back is not None
        assert back.files == {"f": FileLoss(13_000, 9_000)}


def test_a_host_whose_disk_has_failed_can_still_be_switched_off_and_on(fleet: NetnsFleet) -> None:
    host = fleet.hosts[0]
    shut_down(fleet._machines[host.name].data, fleet.folder.image(host.name))
    assert not fleet.remote(host).run("touch /data/x", check=False).ok
    fleet.power.cut(host)
    fleet.power.on(host)
    assert fleet.remote(host).run("touch /data/x").ok


def test_no_other_file_system_is_ever_shut_down(fleet: NetnsFleet, tmp_path: Path) -> None:
    image = fleet.folder.image("n1")
    with pytest.raises(FleetError, match="is not the data disk"):
        shut_down(tmp_path, image)
    (tmp_path / "still").write_text("writable")
    assert fleet.remote(fleet.hosts[0]).run("touch /data/still-writable").ok


def test_losses_are_told_from_sizes_and_last_bytes(tmp_path: Path) -> None:
    contents = {
        "kept": b"abc",
        "shrunk": b"abcdef",
        "gone": b"abcd",
        "zeroed": b"abcdefgh",
        "older": b"newest",
    }
    for name, content in contents.items():
        (tmp_path / "sub").mkdir(exist_ok=True)
        (tmp_path / "sub" / name).write_bytes(content)
    with files_seen(tmp_path) as before:
        pass
    (tmp_path / "sub/shrunk").write_bytes(b"ab")
    (tmp_path / "sub/gone").unlink()
    (tmp_path / "sub/zeroed").write_bytes(b"abc\0\0\0\0\0")
    (tmp_path / "sub/older").write_bytes(b"oldest")
    (tmp_path / "sub/born").write_bytes(b"later")
    assert compare(before, tmp_path) == {
        "sub/shrunk": FileLoss(6, 2),
        "sub/gone": FileLoss(4, 0),
        "sub/zeroed": FileLoss(8, 3, changed=True),
        "sub/older": FileLoss(6, 6, changed=True),
    }


TWO_DISKS = "echo kept >{0}/f; sync {0}/f {0}; echo gone >{0}/g"


def test_a_host_with_two_disks_loses_what_both_had_not_synced_and_one_can_be_taken_alone(
    tmp_path: Path,
) -> None:
    with NetnsFleet(f"two-{os.getpid()}", ["n1"], state_dir=tmp_path, disk_mb=64, disks=2) as fleet:
        [host], remote = fleet.hosts, fleet.remote(fleet.hosts[0])
        assert [str(disk) for disk in host.disks] == ["/data", "/data2"]
        for disk in host.disks:
            remote.run(TWO_DISKS.format(disk))
        fleet.power.cut(host)
        cut = fleet.power.on(host)
        assert cut is not None
        assert cut.files == {"g": FileLoss(5, 0), "data2/g": FileLoss(5, 0)}
        assert remote.run("cat /data/f /data2/f").stdout == "kept\nkept\n"

        for disk in host.disks:
            remote.run(TWO_DISKS.format(disk))
        first = fleet.power.cut_disk(host, 2)
        assert "Input/output error" in remote.run("LC_ALL=C touch /data2/h", check=False).stderr
        assert remote.run("cat /data/f /data/g").stdout == "kept\ngone\n"
        assert fleet.power.cut_disk(host, 2) == first, "it is gone already"
        back = fleet.power.restore_disk(host, 2)
        assert back is not None
        assert (back.files, back.decided_ns) == ({"data2/g": FileLoss(5, 0)}, first.decided_ns)
        assert remote.run("cat /data2/f; ls /data2").stdout.split() == ["kept", "f", "lost+found"]
        assert remote.run("cat /data/g").stdout == "gone\n"
        assert fleet.power.restore_disk(host, 2) is None
        with pytest.raises(FleetError, match="n1 has 2 data disks, and no disk 3"):
            fleet.power.cut_disk(host, 3)
        fleet.power.cut(host)
        with pytest.raises(FleetError, match="its disks come back when its power does"):
            fleet.power.restore_disk(host, 2)


def test_hosts_share_a_folder_that_no_power_cut_touches(tmp_path: Path) -> None:
    with NetnsFleet(f"shr-{os.getpid()}", ["n1", "n2"], state_dir=tmp_path, disk_mb=64) as fleet:
        n1, n2 = fleet.hosts
        assert str(n1.shared) == "/shared"
        fleet.remote(n1).run("echo alike >/shared/f")
        fleet.power.cut(n1)
        assert fleet.remote(n2).run("cat /shared/f").stdout == "alike\n"
        fleet.power.on(n1)
        assert fleet.remote(n1).run("cat /shared/f").stdout == "alike\n"

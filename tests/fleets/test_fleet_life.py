"""A fleet comes up whole, goes down without a trace, and its killed predecessors are removed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleets.traces import machine_network, traces
from wrackline.fleets.base import FleetError
from wrackline.fleets.local.clean import clean, end_detached, folders_mounted, survey
from wrackline.fleets.local.state import FleetFolder
from wrackline.fleets.netns.fleet import NetnsFleet

pytestmark = pytest.mark.fleet

OWNER = r"""
import os, sys, time
from pathlib import Path
from wrackline.fleets.netns.fleet import NetnsFleet
fleet = NetnsFleet(sys.argv[1], ["n1", "n2"], state_dir=Path(sys.argv[2]), disk_mb=16)
os.write(1, b"building\n")
fleet.up()
if len(sys.argv) > 3 and os.fork() == 0:
    os.write(1, b"worker %d\n" % os.getpid())
    time.sleep(60)
    os._exit(0)
os.write(1, b"up\n")
time.sleep(60)
"""


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"tl{abs(hash(request.node.name)) % 10000}-{os.getpid()}"


@pytest.fixture
def start_owner(name: str, state_root: Path) -> Iterator[type[subprocess.Popen[str]] | object]:
    started: list[subprocess.Popen[str]] = []

    def start(*more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", OWNER, name, str(state_root), *more]
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(owner)
        return owner

    yield start
    for owner in started:
        owner.kill()
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()
    clean(state_root)


def wait_for(owner: subprocess.Popen[str], word: str) -> str:
    assert owner.stdout is not None
    for line in owner.stdout:
        if line.startswith(word):
            return line.strip()
    raise AssertionError(f"the owner ended without saying {word!r}")


def test_up_and_down_are_idempotent_and_leave_nothing(name: str, state_root: Path) -> None:
    before = machine_network()
    fleet = NetnsFleet(name, ["n1", "n2", "c1"], state_dir=state_root, disk_mb=16)
    try:
        fleet.up()
        fleet.up()
        kinds = {trace.split()[0] for trace in traces(name, state_root)}
        assert kinds == {"netns", "process", "loop", "mount", "file"}, (
            "the test sees what it has to see vanish"
        )
        assert [host.address for host in fleet.hosts] == ["198.18.0.11", "198.18.0.12", "198.18.0.21"]
        assert [fleet.remote(host).run("hostname").stdout.strip() for host in fleet.hosts] == [
            "n1",
            "n2",
            "c1",
        ]
        assert machine_network() == before
    finally:
        fleet.down()
    fleet.down()
    assert traces(name, state_root) == []
    assert machine_network() == before
    fleet.up()
    fleet.down()
    assert traces(name, state_root) == []


def test_two_fleets_live_side_by_side_on_one_subnet(name: str, state_root: Path) -> None:
    with NetnsFleet(f"{name}a", ["n1", "n2"], state_dir=state_root, disk_mb=16) as one:
        with NetnsFleet(f"{name}b", ["n1", "n2"], state_dir=state_root, disk_mb=16) as other:
            assert one.hosts[0].address == other.hosts[0].address
            for fleet, word in ((one, b"one"), (other, b"other")):
                for host in fleet.hosts:
                    fleet.remote(host).put(word, "/data/mine")
            assert [other.remote(host).get("/data/mine") for host in other.hosts] == [b"other"] * 2
        assert traces(f"{name}b", state_root) == []
        assert [one.remote(host).get("/data/mine") for host in one.hosts] == [b"one"] * 2


def test_a_name_has_one_owner(name: str, state_root: Path) -> None:
    with NetnsFleet(name, ["n1"], state_dir=state_root, disk_mb=16) as fleet:
        with pytest.raises(FleetError, match=f"fleet {name} is in use by process {os.getpid()}"):
            NetnsFleet(name, ["n1"], state_dir=state_root).up()
        with pytest.raises(FleetError, match="belongs to another --state-dir"):
            NetnsFleet(name, ["n1"], state_dir=state_root / "elsewhere").up()
        assert fleet.remote(fleet.hosts[0]).run("true").ok
    assert traces(name, state_root) == []


def test_what_a_killed_owner_left_is_removed_and_the_living_are_not(
    name: str, state_root: Path, start_owner
) -> None:  # type: ignore[no-untyped-def]
    owner = start_owner()
    wait_for(owner, "up")
    with NetnsFleet(f"x{name}", ["n1"], state_dir=state_root, disk_mb=16) as alive:
        assert clean(state_root) == []
        owner.kill()
        owner.wait()
        assert traces(name, state_root) != []
        assert clean(state_root) == [name]
        assert traces(name, state_root) == []
        assert alive.remote(alive.hosts[0]).run("true").ok


def test_a_dead_fleet_of_another_state_folder_gives_its_name_back(
    name: str,
    state_root: Path,
    tmp_path: Path,
    start_owner,  # type: ignore[no-untyped-def]
) -> None:
    owner = start_owner()
    wait_for(owner, "up")
    assert name in {folder.name for folder in folders_mounted() if folder.root == state_root}
    owner.kill()
    owner.wait()
    with NetnsFleet(name, ["n1"], state_dir=tmp_path / "else where", disk_mb=16) as fleet:
        assert fleet.remote(fleet.hosts[0]).run("true").ok
        assert FleetFolder(tmp_path / "else where", name) in folders_mounted()
    assert traces(name, state_root) == []
    assert name not in {folder.name for folder in folders_mounted()}


@pytest.mark.parametrize("delay_ms", [5, 20, 40, 60, 80, 110])
def test_an_owner_killed_while_building_is_removed_by_the_next_up(
    delay_ms: int,
    name: str,
    state_root: Path,
    start_owner,  # type: ignore[no-untyped-def]
) -> None:
    owner = start_owner()
    wait_for(owner, "building")
    time.sleep(delay_ms / 1000)
    owner.kill()
    owner.wait()
    with NetnsFleet(name, ["n1", "n2"], state_dir=state_root, disk_mb=16) as fleet:
        assert fleet.remote(fleet.hosts[1]).run("test ! -e /data/mine").ok
    assert traces(name, state_root) == []


def test_a_forked_worker_does_not_keep_a_dead_fleet_alive(name: str, state_root: Path, start_owner) -> None:  # type: ignore[no-untyped-def]
    owner = start_owner("fork")
    worker = int(wait_for(owner, "worker").split()[1])
    try:
        owner.kill()
        owner.wait()
        assert clean(state_root) == [name]
        os.kill(worker, 0)
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_detached_fleet_outlives_its_maker_until_it_is_ended(name: str, state_root: Path) -> None:
    fleet = NetnsFleet(name, ["n1"], state_dir=state_root, disk_mb=16, detached=True)
    fleet.up()
    try:
        fleet.detach()
        fleet.down()
        assert clean(state_root) == []
        assert [(state.name, life) for state, life in survey(state_root)] == [(name, "detached")]
        with pytest.raises(FleetError, match=f"`wrackline fleet down {name}` ends it"):
            NetnsFleet(name, ["n1"], state_dir=state_root).up()
    finally:
        end_detached(fleet.folder)
    assert traces(name, state_root) == []
    with pytest.raises(FleetError, match=f"no fleet {name}"):
        end_detached(fleet.folder)


def test_an_up_that_fails_leaves_nothing(
    name: str, state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.fleets.local.keys.SSHD_CONFIG", "NoSuchOption yes\n")
    monkeypatch.setattr("wrackline.fleets.netns.machine.BOOT_TIMEOUT_S", 1.0)
    fleet = NetnsFleet(name, ["n1", "n2"], state_dir=state_root, disk_mb=16)
    with pytest.raises(FleetError, match=r"no SSH on host n1 .*NoSuchOption"):
        fleet.up()
    assert traces(name, state_root) == []


def test_a_machine_without_room_is_told_before_anything_is_made(name: str, state_root: Path) -> None:
    with pytest.raises(FleetError, match=r"need \d+ MB in .* make room"):
        NetnsFleet(name, ["n1"], state_dir=state_root, disk_mb=2**30).up()
    assert traces(name, state_root) == []


def test_a_host_has_a_world_of_its_own(fleet: NetnsFleet) -> None:
    one, other = (fleet.remote(host) for host in fleet.hosts)
    assert one.run("getent hosts n2").stdout.split() == ["198.18.0.12", "n2"]
    assert one.run("ls -A /root /tmp").stdout.split() == ["/root:", "/tmp:"]
    for path in (
        "/etc/wl-only-here",
        "/usr/wl-only-here",
        "/tmp/wl-only-here",
        "/dev/shm/wl-only-here",
        "/run/wl-here",
    ):
        one.run(f"echo mine > {path}")
        assert not other.run(f"cat {path}", check=False).ok
        assert not Path(path).exists(), "a host wrote to the machine"
    assert int(one.run("ps -e --no-headers | wc -l").stdout) < 12, (
        "a host sees processes that are not its own"
    )
    assert one.run("findmnt -n -o FSTYPE /data").stdout.strip() == "ext4"
    assert "/data" not in Path("/proc/self/mounts").read_text()
    assert one.run("iptables -w 5 -A INPUT -s 198.18.0.99 -j DROP && iptables -S INPUT").ok
    assert "198.18.0.99" not in other.run("iptables -S INPUT").stdout


def test_only_the_thread_that_entered_is_in_the_fleets_network(fleet: NetnsFleet) -> None:
    namespace = Path("/proc/thread-self/ns/net")
    home = namespace.readlink()
    seen: list[Path] = []
    elsewhere, go, done = [], threading.Event(), threading.Event()

    def bystander() -> None:
        go.wait(10)
        elsewhere.append(namespace.readlink())
        done.set()

    threading.Thread(target=bystander).start()
    with fleet.entered():
        inside = namespace.readlink()
        with fleet.entered():
            assert namespace.readlink() == inside
        child = threading.Thread(target=lambda: seen.append(namespace.readlink()))
        child.start()
        child.join()
        go.set()
        assert done.wait(10)
        with socket.create_connection((fleet.hosts[0].address, 22), timeout=5) as connection:
            assert connection.recv(4) == b"SSH-"
    assert inside != home
    assert seen == [inside]
    assert elsewhere == [home]
    assert namespace.readlink() == home


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"name": "Bad_Name"}, "fleet name 'Bad_Name'"),
        ({"hosts": ["n1", "n1"]}, "two hosts with one name"),
        ({"hosts": []}, "has no hosts"),
        ({"hosts": ["n-1"]}, "host name 'n-1'"),
        ({"subnet": "198.18.0.1/24"}, "subnet '198.18.0.1/24'"),
        ({"subnet": "198.18.0.0/28"}, "too small"),
        ({"filesystem": "fat"}, "one of ext4, xfs"),
        ({"filesystem": "xfs", "disk_mb": 64}, "at least disk_mb=300"),
    ],
)
def test_a_wrong_fleet_is_refused_in_one_line(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(FleetError, match=complaint) as caught:
        NetnsFleet(**({"name": "ok", "hosts": ["n1"]} | arguments))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)

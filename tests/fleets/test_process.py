"""Hosts that are folders: the promises of a `Remote` without SSH, and what is left of a fleet when it ends,
however it ends. Seen from outside: by /proc, sockets and files."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import FleetError
from wrackline.fleets.process.fleet import ProcessFleet, prefix_of
from wrackline.fleets.process.spec import ProcessSpec
from wrackline.fleets.process.state import AddressLock, ProcessFolder, clean, end_detached, survey

pytestmark = pytest.mark.real

OWNER = """
import os, sys, time
from pathlib import Path
from wrackline.fleets.process.fleet import ProcessFleet
fleet = ProcessFleet(sys.argv[1], ["n1"], state_dir=Path(sys.argv[2]))
fleet.up()
said = fleet.remote(fleet.hosts[0]).run("setsid sleep 300 >/dev/null 2>&1 & echo $!").stdout
if len(sys.argv) > 3:
    fleet.detach()
os.write(1, said.encode())
time.sleep(0 if len(sys.argv) > 3 else 60)
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ProcessFleet]:
    with ProcessFleet("laptop", ["n1", "n2"], state_dir=tmp_path) as made:
        yield made


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


# -- the promises of a Remote --------------------------------------------------------------------------------


def test_a_command_says_what_it_did(fleet: ProcessFleet) -> None:
    remote = fleet.remote(fleet.hosts[0])
    done = remote.run("pwd; echo trouble >&2; exit 3", check=False)
    assert (done.exit_code, done.stdout, done.stderr) == (3, f"{fleet.hosts[0].root}\n", "trouble\n")
    with pytest.raises(FleetError, match="host n1: `exit 3` ended with exit code 3: it printed nothing"):
        remote.run("exit 3")
    assert len(remote.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout) == 3_000_000


def test_the_deadline_ends_the_command_and_what_it_started(fleet: ProcessFleet) -> None:
    remote, began = fleet.remote(fleet.hosts[0]), time.monotonic()
    with pytest.raises(FleetError, match=r"did not end within 0\.5 s"):
        remote.run("trap '' TERM; sleep 77 & echo $! >child; wait; sleep 78", timeout_s=0.5)
    assert time.monotonic() - began < 30
    child = int(remote.get(f"{fleet.hosts[0].root}/child"))
    until(lambda: not is_there(child), "its child lives on")


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for(fleet: ProcessFleet) -> None:
    remote, began = fleet.remote(fleet.hosts[0]), time.monotonic()
    pid = int(remote.run("setsid sleep 60 & echo $!", timeout_s=20).stdout)
    assert time.monotonic() - began < 15
    assert is_there(pid)


def test_a_command_is_followed_while_it_goes_on(fleet: ProcessFleet) -> None:
    stream = fleet.remote(fleet.hosts[0]).follow("echo $$; cat fifo-that-is-not-there; exec sleep 1")
    said = stream.read(5.0)
    while not said.endswith(b"directory\n"):  # its errors too
        said += stream.read(5.0)
    with pytest.raises(TimeoutError):
        stream.read(0.01)
    assert stream.read(5.0) == b""
    stream.close()


def test_a_stream_that_is_closed_breaks_the_pipe_of_its_command(fleet: ProcessFleet) -> None:
    stream = fleet.remote(fleet.hosts[0]).follow("echo $$; while sleep 0.02; do echo again; done")
    pid = int(stream.read(5.0).split()[0])
    stream.close()
    until(lambda: not is_there(pid), "it still speaks")


def test_files_are_written_whole_and_only_below_the_hosts_folder(fleet: ProcessFleet, tmp_path: Path) -> None:
    remote, root = fleet.remote(fleet.hosts[0]), fleet.hosts[0].root
    remote.put(b"#!/bin/sh\necho ran\n", f"{root}/opt/a/b.sh", mode=0o755)
    assert remote.run(f"{root}/opt/a/b.sh").stdout == "ran\n"
    outside = tmp_path / "outside"
    for path in (str(outside), f"{root}/../../../outside"):
        with pytest.raises(FleetError, match="outside of the host's folder"):
            remote.put(b"", path)
    assert not outside.exists()
    (tmp_path / "sent").write_bytes(b"sent")
    remote.put(tmp_path / "sent", f"{root}/opt/a/c.log")
    assert remote.get(f"{root}/opt/a/c.log") == b"sent"
    with pytest.raises(FleetError, match="No such file"):
        remote.get(f"{root}/none")
    fetched = remote.get_tree(f"{root}/opt", tmp_path / "into", patterns=("*.log",))
    assert fetched == [tmp_path / "into" / "a" / "c.log"]


# -- its life ------------------------------------------------------------------------------------------------


def test_when_it_goes_down_all_that_was_started_on_it_is_gone(tmp_path: Path) -> None:
    with ProcessFleet("laptop", ["n1", "n2"], state_dir=tmp_path / "state") as fleet:
        pids = [
            int(fleet.remote(host).run("setsid sh -c 'sleep 300 & echo $!; wait' & exit").stdout)
            for host in fleet.hosts
        ]
        os.kill(pids[0], signal.SIGSTOP)
        bystander = subprocess.Popen(["sleep", "300"])
        fleet.up()  # idempotent
        assert all(map(is_there, pids))
    assert not any(map(is_there, pids))
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    assert not (tmp_path / "state").exists()


def owner(name: str, state: Path, *more: str) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, name, str(state), *more], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_what_a_killed_run_left_is_ended_by_the_next(tmp_path: Path) -> None:
    process, sleeper = owner("killed", tmp_path)
    with process:
        assert clean(tmp_path / ".process") == []  # it lives
        process.kill()
    assert is_there(sleeper)
    with ProcessFleet("next", ["n1"], state_dir=tmp_path):
        assert not is_there(sleeper)
        assert [state.name for state, _ in survey(tmp_path / ".process")] == ["next"]


def test_a_kept_fleet_lives_until_it_is_ended(tmp_path: Path) -> None:
    process, sleeper = owner("kept", tmp_path, "detached")
    with process:
        process.wait(20)
    with ProcessFleet("next", ["n1"], state_dir=tmp_path):
        assert is_there(sleeper)
        with pytest.raises(FleetError, match="is up already"):
            ProcessFleet("kept", ["n1"], state_dir=tmp_path).up()
    assert [(state.name, life) for state, life in survey(tmp_path / ".process")] == [("kept", "detached")]
    end_detached(ProcessFolder(tmp_path / ".process", "kept"))
    assert not is_there(sleeper)
    assert list(tmp_path.rglob("*")) == []


def test_two_fleets_have_their_ports_and_addresses_side_by_side(tmp_path: Path) -> None:
    with (
        ProcessFleet("one", ["n1", "c1"], state_dir=tmp_path) as one,
        ProcessFleet("two", ["n1", "c1"], state_dir=tmp_path) as two,
    ):
        addresses = [host.address for host in (*one.hosts, *two.hosts)]
        assert len(set(addresses)) == 4
        assert all(address.startswith("127.") for address in addresses)
        sockets = [socket.create_server((address, 9092)) for address in addresses]
        for each in sockets:
            each.close()
        with pytest.raises(FleetError, match="is in use"):
            ProcessFleet("one", ["n1"], state_dir=tmp_path).up()
        with pytest.raises(FleetError, match="are another fleet's"):  # of another user, in another folder
            ProcessFleet("one", ["n1"], state_dir=tmp_path / "other").up()
    assert list(tmp_path.rglob("*")) == []


def test_addresses_at_which_somebody_listens_are_not_taken() -> None:
    prefix = prefix_of("taken")
    with (
        socket.create_server((f"{prefix}11", 0)) as there,
        pytest.raises(FleetError, match=rf"somebody listens at {prefix}11:{there.getsockname()[1]}"),
    ):
        AddressLock(prefix)
    AddressLock(prefix).release()


def test_it_says_what_it_lacks(tmp_path: Path) -> None:
    spec = ProcessSpec()
    assert all(spec.lacks(ability) for ability in Ability)
    fleet = spec.build("laptop", tmp_path)
    assert [host.name for host in fleet.hosts] == ["n1", "n2", "n3", "c1"]
    assert fleet.power.is_on(fleet.hosts[0])
    with pytest.raises(FleetError, match="has no power of its own"):
        fleet.power.cut(fleet.hosts[0])
    with pytest.raises(FleetError, match="letters, digits"):
        spec.build("laptop", tmp_path / "with blanks")


def test_a_host_has_as_many_data_folders_as_disks_and_shares_one(tmp_path: Path) -> None:
    with ProcessFleet("disks", ["n1", "n2"], state_dir=tmp_path, disks=2) as fleet:
        n1, n2 = fleet.hosts
        assert [disk.name for disk in n1.disks] == ["data", "data2"]
        assert all(Path(disk).is_dir() for one in (n1, n2) for disk in one.disks)
        assert n1.shared == n2.shared
        assert n1.shared is not None
        assert Path(n1.shared).is_dir()

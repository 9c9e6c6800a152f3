"""The clients' machine as the target, on real hosts, looked at from outside: by sockets of the test's own
where the clients are, by frames that pass its bridge, and by what a host gets from another."""

from __future__ import annotations

import os
import select
import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from tests.nemesis.doubles import Recorded
from tests.nemesis.faults.running import fleet, proof, running, system
from tests.nemesis.listeners import PORT, Listeners
from wrackline.fleets.local.clean import clean
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.executor import clients_of
from wrackline.nemesis.faults.steps import FaultContext, Shell, Target
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import FAULT, load

__all__ = ["fleet", "system"]
pytestmark = pytest.mark.fleet


@contextmanager
def frames(fleet: NetnsFleet) -> Iterator[Counter[tuple[str, str, int]]]:
    """What passes the bridge's own link meanwhile, of TCP with the brokers' port: (from, to, flags). What the
    clients' machine drops of its own does not come so far; what it drops of others has come."""
    with fleet.entered():
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
    tap.bind(("br0", 0x0003))
    seen: Counter[tuple[str, str, int]] = Counter()
    with tap:
        yield seen
        while select.select([tap], [], [], 0.2)[0]:
            packet = tap.recv(65536)
            header = 4 * (packet[0] & 15)
            if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
                tcp = packet[header:]
                if PORT in (int.from_bytes(tcp[:2], "big"), int.from_bytes(tcp[2:4], "big")):
                    ends = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
                    seen[(*ends, tcp[13] & 0x12)] += 1


SYN, SYN_ACK = 0x02, 0x12
CLIENTS = "198.18.0.1"


def test_clients_lose_one_broker_and_brokers_lose_nobody(fleet: NetnsFleet, system: Listeners) -> None:
    n1 = fleet.hosts[0].address
    with running(fleet, system, {"fault": "partition", "target": "clients of n1"}) as run:
        with frames(fleet) as seen:
            assert not run.connects(None, "n1")
            assert run.connects(None, "n2")
        assert run.connects("n2", "n1")
        assert run.connects("n1", "n3")
        assert fleet.remote(fleet.hosts[0]).run("echo SSH goes its way").ok
        assert not any(run.chains(host.name) for host in fleet.hosts), "hosts know nothing of it"
        [begun] = [one.extra for one in run.recorded.events if one.extra and one.extra["phase"] == "begin"]
    # n1 may say once more, of a connection from before the cut, what nobody has acknowledged.
    assert not any(ends[:2] == (CLIENTS, n1) for ends in seen)
    assert seen[CLIENTS, fleet.hosts[1].address, SYN] == 1
    assert begun["targets"] == ["n1"]
    assert begun["role"] == "clients of n1"
    assert "clients>n1" in proof(run)
    assert "no TCP knock on 1 port was answered, each was after the undo" in proof(run)


def test_clients_lose_all_brokers_which_see_each_other(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "partition", "target": "clients"}) as run:
        assert not any(run.connects(None, host.name) for host in fleet.hosts)
        assert all(run.connects(one, other) for one in ("n1", "n2") for other in ("n1", "n2", "n3"))
    assert "a probe on each of 3 ways" in proof(run) or "probe packets were dropped on 3 ways" in proof(run)


def test_what_brokers_send_is_lost_and_what_clients_send_arrives(
    fleet: NetnsFleet, system: Listeners
) -> None:
    n1 = fleet.hosts[0].address
    cut = {"fault": "partition", "target": "clients of n1", "direction": "in"}
    with running(fleet, system, cut) as run, frames(fleet) as seen:
        assert not run.connects(None, "n1")
    assert seen[CLIENTS, n1, SYN] >= 1
    assert seen[n1, CLIENTS, SYN_ACK] >= 1
    assert "n1>clients" in proof(run)
    with running(fleet, system, {**cut, "direction": "out"}) as run, frames(fleet) as seen:
        assert not run.connects(None, "n1")
    assert not seen[CLIENTS, n1, SYN]
    assert "clients>n1" in proof(run)


def connected_s(fleet: NetnsFleet, number: int) -> float:
    began = time.monotonic()
    with fleet.entered():
        socket.create_connection((fleet.hosts[number].address, PORT), timeout=5).close()
    return time.monotonic() - began


ASK = """
import socket, time
began = time.monotonic()
socket.create_connection(("{}", {})).close()
print(time.monotonic() - began)
"""


@pytest.mark.parametrize(("direction", "turns"), [("out", 1), ("in", 1), ("both", 2)])
def test_packets_of_clients_are_held_back_and_those_of_brokers_are_not(
    fleet: NetnsFleet, system: Listeners, direction: str, turns: int
) -> None:
    slow = {"fault": "packets", "target": "clients of n1", "delay_s": 0.1, "direction": direction}
    with running(fleet, system, slow) as run:
        held = median(connected_s(fleet, 0) for _ in range(3))
        assert turns * 0.1 <= held < turns * 0.1 + 0.09
        assert connected_s(fleet, 1) < 0.09, "clients of n2"
        ask = ASK.format(run.host("n1").address, PORT)
        asked = fleet.remote(fleet.hosts[1]).run(f"python3 -c {shlex.quote(ask)}").stdout
        assert float(asked) < 0.09, "the bridge hands on what n2 sends"
    assert "a knock clients>n1:9092 took" in proof(run)
    assert ("clients" in proof(run).partition(":")[0]) is (direction != "in")
    assert list((fleet.folder.clients / "run/wrackline/faults").glob("*")) == []


def test_damage_of_what_clients_send_is_found_by_the_broker_and_repaired(
    fleet: NetnsFleet, system: Listeners
) -> None:
    bad = {"fault": "packets", "target": "clients of n1", "direction": "out", "corrupt": 0.2}
    with running(fleet, system, bad) as run:
        sent, back = bytes(range(256)) * 160, bytearray()
        with fleet.entered():
            echo = socket.create_connection((run.host("n1").address, PORT), timeout=20)
        with echo:
            for at in range(0, len(sent), 2048):
                echo.sendall(sent[at : at + 2048])
                while len(back) < at + 2048 and (some := echo.recv(65536)):
                    back += some
    assert back == sent
    assert "the receivers' kernels found" in proof(run)


def put_on(fleet: NetnsFleet, fault_id: str, settings: dict[str, object]) -> None:
    """As a harness does it that is killed then."""
    first, *others = (
        Target(one.name, one.address, at, PORT, "/data") for at, one in enumerate(fleet.hosts, 1)
    )
    context = FaultContext(fault_id, (first,), tuple(others), clients_of(fleet))
    for step in FAULT.validate_python({**settings, "target": "clients of n1"}).build().commands(context).do:
        assert isinstance(step, Shell)
        assert step.host == "clients"
        fleet.clients.run(step.command)


CUT: dict[str, object] = {"fault": "partition"}
SLOW: dict[str, object] = {"fault": "packets", "delay_s": 0.2, "direction": "out"}


def test_what_a_killed_harness_left_is_removed_by_the_next_one_on_these_hosts(
    fleet: NetnsFleet, system: Listeners
) -> None:
    put_on(fleet, "f8", SLOW)
    assert connected_s(fleet, 0) > 0.19
    put_on(fleet, "f9", CUT)
    with pytest.raises(TimeoutError), fleet.entered():
        socket.create_connection((fleet.hosts[0].address, PORT), timeout=0.3)
    nemesis = Nemesis(plan(load({}), 1, 1.0), fleet, system, Recorded())
    repairs = nemesis.stop_and_heal()
    assert "clients: chain WRACK-f9 removed" in repairs
    assert any(
        one in repairs for one in ("clients: program f8/packets ended", "clients: shaping of br0 removed")
    )
    assert nemesis.stop_and_heal() == []
    assert connected_s(fleet, 0) < 0.1


OWNER = """
import sys, time
from pathlib import Path
from tests.nemesis.faults.network.test_clients_on_hosts import CUT, SLOW, put_on
from wrackline.fleets.netns.fleet import NetnsFleet
fleet = NetnsFleet(sys.argv[1], ("n1",), state_dir=Path(sys.argv[2]), disk_mb=16)
fleet.up()
put_on(fleet, "f1", CUT)
put_on(fleet, "f2", SLOW)
print("in force", flush=True)
time.sleep(60)
"""


SEED = b'"seed": "f2 clients"'
"""An argument of a program that shapes packets of clients."""


def words_of(cmdline: Path) -> bytes:
    try:
        return cmdline.read_bytes()
    except OSError:  # it has just ended
        return b""


def of_this_machine(fleet: str) -> set[str]:
    """By the machine's own tools: rules of faults in the network of everything else, namespaces of the fleet,
    and programs that shape packets of its clients."""

    def lines(*command: str) -> list[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()

    rules = [line for table in ("filter", "mangle") for line in lines("iptables-save", "-t", table)]
    spaces = [line.split()[0] for line in lines("ip", "netns", "list")]
    programs = {one.parent.name for one in Path("/proc").glob("[0-9]*/cmdline") if SEED in words_of(one)}
    ours = [one for one in spaces if one.startswith(f"wl-{fleet}")]
    return {*(one for one in rules if "WRACK" in one), *ours, *programs}


def test_a_kill_of_the_harness_leaves_nothing_on_this_machine(tmp_path: Path) -> None:
    name = f"clk-{os.getpid()}"
    assert of_this_machine(name) == set()
    command = [sys.executable, "-c", OWNER, name, str(tmp_path / "fleets")]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4])
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "in force\n"
    finally:
        owner.kill()
        owner.wait()
    there = ["ip", "netns", "exec", f"wl-{name}"]
    found = subprocess.run([*there, "iptables-save"], capture_output=True, text=True, check=True).stdout
    assert {"-A INPUT -j WRACK-f1", "-A OUTPUT -j WRACK-f1"} <= set(found.splitlines())
    bands = subprocess.run([*there, "tc", "qdisc"], capture_output=True, text=True, check=True).stdout
    spaces = {f"wl-{name}", f"wl-{name}-n1"}
    left = of_this_machine(name)
    assert spaces <= left
    assert len(left - spaces) == (0 if "netem" in bands else 1), (
        "a program, and no rule of this machine's own"
    )
    assert clean(tmp_path / "fleets") == [name]
    assert of_this_machine(name) == set()
    assert not (tmp_path / "fleets").exists()

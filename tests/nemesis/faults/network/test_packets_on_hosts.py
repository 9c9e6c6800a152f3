"""Faults of packets on real hosts, seen from outside: by datagrams of our own, by a stream of TCP, and by the
counters of the receivers' kernels. Where the kernel of this machine has no netem it is our program that does
it; what netem is told is in golden files."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest

from tests.nemesis.doubles import Recorded
from tests.nemesis.faults.network.datagrams import watch
from tests.nemesis.faults.running import Running, assert_soon, fleet, proof, running, system
from tests.nemesis.listeners import PORT, Listeners
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.network.packets import PacketsSpec
from wrackline.nemesis.faults.steps import FaultContext, PowerOn, Shell, Target
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import FAULT, load

__all__ = ["fleet", "system"]
pytestmark = pytest.mark.fleet


HOSTS = ("n1", "n2")


def test_packets_are_held_back_on_their_way_out_and_ours_are_not(
    fleet: NetnsFleet, system: Listeners
) -> None:
    n1, n2 = fleet.hosts
    slow = {"fault": "packets", "target": "n1", "direction": "out", "delay_s": "100ms", "jitter_s": "20ms"}
    with running(fleet, system, slow) as run:
        seen = watch(fleet, n1, n2, count=40, pause_s=0.01)
        assert_soon(lambda: median(watch(fleet, n1, n2, count=40).round_trips_s) < 0.16)
        # A command takes several packets of the host.
        assert_soon(lambda: fleet.remote(n1).run("echo SSH goes its way").duration_s < 0.1)
    assert len(seen.round_trips_s) == 40
    assert min(seen.round_trips_s) > 0.075
    assert median(seen.round_trips_s) > 0.09
    assert_soon(lambda: median(watch(fleet, n1, n2, count=10).round_trips_s) < 0.05)
    assert "after the undo" in proof(run)


def test_packets_are_lost_repeated_and_overtaken(fleet: NetnsFleet, system: Listeners) -> None:
    n1, n2 = fleet.hosts
    flaky = {"fault": "packets", "target": "n1", "loss": 0.3, "duplicate": 0.2}
    with running(fleet, system, {**flaky, "direction": "out", "delay_s": 0.02, "reorder": 0.3}) as run:
        seen = watch(fleet, n1, n2, count=300)
    arrived = len(set(seen.numbers))
    assert 150 < arrived < 255, "seven in ten"
    assert 20 < seen.repeated < 80, "one of five of those"
    assert seen.overtaken > 20
    after = watch(fleet, n1, n2, count=100)
    assert list(after.numbers) == list(range(100))
    assert "lost" in proof(run)
    if "our program" in proof(run):  # netem does not count these
        assert "duplicated" in proof(run)
        assert "overtook others" in proof(run)


def bad_checksums(fleet: NetnsFleet) -> int:
    """Found by the kernel of n2."""
    lines = fleet.remote(fleet.hosts[1]).run("cat /proc/net/snmp").stdout.splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("InCsumErrors")])


def test_damage_is_found_by_the_receiver_and_repaired_by_tcp(fleet: NetnsFleet, system: Listeners) -> None:
    n1, n2 = fleet.hosts
    content = "bytes(number % 251 for number in range(300_000))"
    receive = (
        "import hashlib, socket; it, _ = socket.create_server(('', 9998)).accept(); digest = hashlib.md5()\n"
        "while data := it.recv(65536): digest.update(data)\nprint(digest.hexdigest())"
    )
    send = f"import socket; socket.create_connection(('{n2.address}', 9998)).sendall({content})"
    with running(fleet, system, {"fault": "packets", "target": "n1", "corrupt": 0.1}) as run:
        before = bad_checksums(fleet)
        with ThreadPoolExecutor(1) as pool:
            got = pool.submit(fleet.remote(n2).run, f"python3 -c {shlex.quote(receive)}", timeout_s=60)
            fleet.remote(n2).run("until ss -Htln 'sport = :9998' | grep -q .; do sleep 0.05; done")
            fleet.remote(n1).run(f"python3 -c {shlex.quote(send)}", timeout_s=60)
            digest = got.result().stdout.strip()
        assert bad_checksums(fleet) > before
    assert digest == hashlib.md5(eval(content)).hexdigest()
    assert "the receivers' kernels found" in proof(run)


def test_a_rate_is_kept(fleet: NetnsFleet, system: Listeners) -> None:
    n1, n2 = fleet.hosts
    slow = {"fault": "packets", "target": "n1", "direction": "out", "rate_kbit": 800}
    with running(fleet, system, slow) as run:
        seen = watch(fleet, n1, n2, count=80, size=1000, pause_s=0.001)
    assert seen.spread_s > 0.75, "80,000 bytes at 100,000 a second"
    assert len(seen.numbers) == 80
    assert_soon(lambda: watch(fleet, n1, n2, count=80, size=1000, pause_s=0.001).spread_s < 0.5)
    proof(run)


def test_only_one_port_is_hit_and_what_clients_get(fleet: NetnsFleet, system: Listeners) -> None:
    n1, n2 = fleet.hosts
    port = {"fault": "packets", "target": "n1", "loss": 1.0, "ports": [PORT]}
    with running(fleet, system, port) as run:
        assert not run.connects("n2", "n1")
        assert run.connects(None, "n1")
        assert len(watch(fleet, n1, n2, count=20).numbers) == 20
    assert "lost" in proof(run)
    clients = {"fault": "packets", "target": "n1", "delay_s": 0.2, "links": ["client-broker"]}
    with running(fleet, system, clients) as run:
        assert run.connects("n2", "n1")
        began = time.monotonic()
        assert run.connects(None, "n1")
        assert time.monotonic() - began > 0.19
    assert "a knock clients>n1:9092" in proof(run)


def test_a_host_that_comes_back_has_slow_packets_again(fleet: NetnsFleet, system: Listeners) -> None:
    n1, n2 = fleet.hosts
    slow = {"fault": "packets", "target": "n1", "direction": "out", "delay_s": 0.1}
    with running(fleet, system, slow) as run:
        fleet.power.cut(n1)
        [back] = asyncio.run(run.nemesis._stage.run([PowerOn("n1")]))
        assert not back.error
        system.start(system.nodes[0])
        assert min(watch(fleet, n1, n2, count=10).round_trips_s) > 0.09
    proof(run)


def test_a_host_has_one_such_fault_at_a_time(fleet: NetnsFleet, system: Listeners) -> None:
    slow = {"at_s": 0.0, "duration_s": 2.5, "fault": "packets", "target": "n1", "delay_s": 0.01}
    lossy = {"at_s": 1.0, "duration_s": 0.2, "fault": "packets", "target": "n1", "loss": 0.1}
    run = Running(fleet, system, plan(load({"schedule": [slow, lossy]}), seed=1, duration_s=3.0))
    run.nemesis.start()
    run.nemesis.wait(20)
    assert run.nemesis.stop_and_heal() == []
    assert "another fault has the packets of this host" in str(run.recorded.ended("f2")["error"])
    run.recorded.assert_proved("f1")


def test_what_a_killed_harness_left_is_found_and_removed(fleet: NetnsFleet, system: Listeners) -> None:
    n1, n2 = fleet.hosts
    spec = FAULT.validate_python({"fault": "packets", "delay_s": 0.2, "direction": "out"})
    assert isinstance(spec, PacketsSpec)
    aimed, other = (
        Target(host.name, host.address, number, PORT, "/data") for number, host in enumerate(fleet.hosts, 1)
    )
    [do] = spec.build().commands(FaultContext("f9", (aimed,), (other,))).do
    assert isinstance(do, Shell)
    fleet.remote(n1).run(do.command)
    assert min(watch(fleet, n1, n2, count=5).round_trips_s) > 0.19
    nemesis = Nemesis(plan(load({}), 1, 1.0), fleet, system, Recorded())
    assert "n1: program f9/packets ended" in nemesis.stop_and_heal()
    assert nemesis.stop_and_heal() == []
    assert min(watch(fleet, n1, n2, count=5).round_trips_s) < 0.1

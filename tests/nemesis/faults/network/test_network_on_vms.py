"""Packets and messages on virtual machines, whose kernel is Debian's: there it is netem that shapes packets.
What takes minutes under emulation."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.nemesis.doubles import Recorded
from tests.nemesis.faults.network.datagrams import watch
from tests.nemesis.faults.network.test_messages_on_hosts import END_TXN, PRODUCE, Answerers, asker, seen
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.virtual.fleet import SLOWNESS
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1200)]
SLOW_S = 60.0


@contextmanager
def in_force(fleet: QemuFleet, system: Answerers, fault: dict[str, Any]) -> Iterator[Recorded]:
    recorded = Recorded()
    planned = plan(
        load({"schedule": [{"at_s": 0.0, "duration_s": 600.0, **fault}]}), seed=1, duration_s=601.0
    )
    nemesis = Nemesis(planned, fleet, system, recorded)
    nemesis.start()
    try:
        recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=2 * SLOW_S)
        yield recorded
    finally:
        repairs = nemesis.stop_and_heal(timeout_s=120.0 * SLOWNESS)
    assert repairs == []
    recorded.assert_proved("f1")


@contextmanager
def answering(name: str, state_root: Path) -> Iterator[tuple[QemuFleet, Answerers]]:
    fleet = QemuFleet(f"{name}-{os.getpid()}", ["n1", "n2"], state_dir=state_root, accel="tcg")
    fleet.prepare(print)
    with fleet:
        system = Answerers(fleet)
        system.install()
        for node in system.nodes:
            system.start(node)
        yield fleet, system


def test_netem_shapes_packets_and_the_proxy_holds_messages(state_root: Path) -> None:
    with answering("nv", state_root) as (fleet, system):
        shaped_by_netem(fleet, system)
        held_by_the_proxy(fleet, system)


def shaped_by_netem(fleet: QemuFleet, system: Answerers) -> None:
    n1, n2 = fleet.hosts
    bad = {
        "fault": "packets",
        "target": "n1",
        "direction": "out",
        "delay_s": 0.3,
        "loss": 0.2,
        "duplicate": 0.2,
    }
    with in_force(fleet, system, bad) as recorded:
        watched = watch(fleet, n1, n2, count=100, pause_s=0.01)
    assert 60 <= len(set(watched.numbers)) < 95
    assert watched.repeated > 5
    assert min(watched.round_trips_s) > 0.29
    proof = str(recorded.ended("f1")["proof"])
    assert proof.startswith("netem on n1: ")
    assert " lost; a knock n" in proof
    after = watch(fleet, n1, n2, count=20, pause_s=0.01)
    assert list(after.numbers) == list(range(20))
    assert median(after.round_trips_s) < 0.2
    one_port = {"fault": "packets", "target": "n1", "loss": 1.0, "ports": [9092]}
    with in_force(fleet, system, one_port):
        assert len(watch(fleet, n1, n2, count=20).numbers) == 20, "datagrams to another port"
    devices = fleet.remote(n1).run("tc qdisc show").stdout
    assert "netem" not in devices
    assert "57ac:" not in devices


def held_by_the_proxy(fleet: QemuFleet, system: Answerers) -> None:
    held = {"fault": "messages", "target": "n1", "apis": ["EndTxn"]}
    with ExitStack() as stack:
        before = stack.enter_context(asker(fleet))
        before.send(PRODUCE, 1)
        assert before.answers(SLOW_S, until=1) == [1]
        with in_force(fleet, system, held) as recorded:
            assert before.answers(SLOW_S, until=1) == ["end"]
            seen(fleet)
            one = stack.enter_context(asker(fleet))
            one.send(END_TXN, 2)
            one.send(PRODUCE, 3)
            assert one.answers(3.0) == []
            assert seen(fleet) == []
        assert one.answers(SLOW_S, until=3) == [2, 3, "end"]
    assert seen(fleet) == [(END_TXN, 2), (PRODUCE, 3)]
    assert "1 of 1 EndTxn requests held" in str(recorded.ended("f1")["proof"])


def connected_s(fleet: QemuFleet, number: int) -> float:
    began = time.monotonic()
    with fleet.entered():
        socket.create_connection((fleet.hosts[number].address, 9092), timeout=SLOW_S).close()
    return time.monotonic() - began


def test_clients_are_hit_on_their_side(state_root: Path) -> None:
    """Rules and a program on this machine, netem on the virtual one."""
    with answering("nc", state_root) as (fleet, system):
        clients_hit(fleet, system)


def clients_hit(fleet: QemuFleet, system: Answerers) -> None:
    usual_s = median(connected_s(fleet, 0) for _ in range(5))
    with in_force(fleet, system, {"fault": "partition", "target": "clients of n1"}) as recorded:
        with pytest.raises(TimeoutError), fleet.entered():
            socket.create_connection((fleet.hosts[0].address, 9092), timeout=3.0)
        connected_s(fleet, 1)
        ask = f"timeout 20 bash -c ': </dev/tcp/{fleet.hosts[0].address}/9092'"
        assert fleet.remote(fleet.hosts[1]).run(ask).ok, "n2 reaches n1"
    assert "clients>n1" in str(recorded.ended("f1")["proof"])
    slow = {"fault": "packets", "target": "clients of n1", "delay_s": 0.3}
    with in_force(fleet, system, slow) as recorded:
        assert median(connected_s(fleet, 0) for _ in range(3)) > usual_s + 0.5, "there and back"
    assert "on clients, n1: " in str(recorded.ended("f1")["proof"])
    assert connected_s(fleet, 0) < 0.5

"""A nemesis that does faults to real hosts, and eyes of its own on them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.nemesis.doubles import Recorded
from tests.nemesis.listeners import PORT, Listeners
from wrackline.fleets.base import Host
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import Plan, plan
from wrackline.nemesis.spec import load


@pytest.fixture(scope="module")
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetnsFleet]:
    """The hosts that the module names, or three."""
    names = getattr(request.module, "HOSTS", ("n1", "n2", "n3"))
    made = NetnsFleet(f"nem-{os.getpid()}", names, state_dir=tmp_path_factory.mktemp("a fleet"), disk_mb=64)
    with made:
        yield made


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, fleet: NetnsFleet) -> Listeners:
    """Started nodes, of the kind that the module names."""
    kind: type[Listeners] = getattr(request.module, "NODES", Listeners)
    system = kind(fleet)
    system.install()
    for node in system.nodes:
        system.start(node)
    return system


def proof(run: Running) -> str:
    """The proof of the first fault, which was proved."""
    return str(run.recorded.assert_proved("f1")["proof"])


def assert_soon(seen: Callable[[], bool], within_s: float = 30.0) -> None:
    """Looks again and again until it is seen. What nothing hinders is quick at one try of many, also on a
    busy machine; what a fault holds back is so at every try."""
    deadline = time.monotonic() + within_s
    while not seen():
        assert time.monotonic() < deadline, f"not seen within {within_s:g} s"


class Running:
    """A nemesis with one plan, and eyes of its own on the hosts."""

    def __init__(self, fleet: NetnsFleet, system: Listeners, planned: Plan) -> None:
        self.fleet = fleet
        self.system = system
        self.recorded = Recorded()
        self.nemesis = Nemesis(
            planned, fleet, system, self.recorded, topics=("log",), canaries=system.canaries
        )

    def active(self, *ids: str) -> None:
        """Waits until the faults are in force."""
        self.recorded.wait_for(
            lambda: all("active" in self.recorded.phases(one) for one in ids), timeout_s=20
        )

    def connects(self, source: str | None, target: str) -> bool:
        """Does a TCP connection come about from a host (None: from where the clients are)?"""
        address = self.host(target).address
        if source is not None:
            command = f"timeout 1 bash -c ': </dev/tcp/{address}/{PORT}'"
            return self.fleet.remote(self.host(source)).run(command, check=False).ok
        try:
            with self.fleet.entered():
                socket.create_connection((address, PORT), timeout=0.3).close()
        except OSError:
            return False
        return True

    def host(self, name: str) -> Host:
        return next(host for host in self.fleet.hosts if host.name == name)

    def chains(self, name: str) -> list[str]:
        return iptables.parse_chains(self.fleet.remote(self.host(name)).run(iptables.LIST_CHAINS).stdout)


@contextmanager
def running(fleet: NetnsFleet, system: Listeners, *faults: dict[str, Any]) -> Iterator[Running]:
    """The faults in force at once; healed at the end, and nothing beyond their own undo must be needed."""
    spec = load({"schedule": [{"at_s": 0.0, "duration_s": 20.0, **fault} for fault in faults]})
    run = Running(fleet, system, plan(spec, seed=1, duration_s=30.0))
    run.nemesis.start()
    try:
        run.active(*(f"f{number}" for number in range(1, len(faults) + 1)))
        yield run
    finally:
        repairs = run.nemesis.stop_and_heal()
    assert repairs == []
    assert all(system.is_running(node) for node in system.nodes)
    assert not any(run.chains(host.name) for host in fleet.hosts)
    assert all(run.connects(None, host.name) and run.connects("n1", host.name) for host in fleet.hosts)

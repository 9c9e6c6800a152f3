"""Every fault of hosts is sabotaged on real hosts in network namespaces, in every way there is."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import pytest

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.listeners import NODE, PORT, Listeners
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_HOSTS
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load

pytestmark = pytest.mark.fleet

HOSTS = ("n1", "n2", "n3")
SYNCING = """
def sync(disk):
    log = Path(disk) / "broker/log-0"
    while True:
        try:
            log.mkdir(parents=True, exist_ok=True)
            with (log / f"{0:020}.log").open("ab", buffering=0) as file:
                while True:
                    file.write(b"s" * 4096)
                    os.fsync(file.fileno())
                    time.sleep(0.02)
        except OSError:
            time.sleep(0.02)

for disk in ("/data", "/data2"):
    threading.Thread(target=sync, args=(disk,), daemon=True).start()
"""
"""Logs on two disks that are synced again and again, whatever the disks say."""


class Loggers(Listeners):
    """Listeners that also have logs."""

    program = NODE.replace("signal.signal(", f"{SYNCING}\nsignal.signal(", 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fleet")
    with NetnsFleet(f"sab-{os.getpid()}", HOSTS, state_dir=folder, disk_mb=512, disks=2) as fleet:
        system = Loggers(fleet)
        system.install()
        for node in system.nodes:
            system.start(node)
        with watched(fleet) as canaries, clients(fleet):
            yield Place(fleet, system, canaries=canaries)


@contextmanager
def clients(fleet: NetnsFleet) -> Iterator[None]:
    """Somebody has a connection to each node, and says something on it all the time."""
    over = threading.Event()

    def talk(address: str) -> None:
        while not over.wait(0.05):
            with suppress(OSError):
                with fleet.entered():
                    connection = socket.create_connection((address, PORT), timeout=0.5)
                with connection:
                    while not over.wait(0.02):
                        connection.sendall(b"x")
                        connection.recv(1)

    threads = [threading.Thread(target=talk, args=(host.address,)) for host in fleet.hosts]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in threads:
            one.join()


@pytest.mark.parametrize(("trial", "sabotage"), every(ON_HOSTS))
def test_nobody_is_taken_in(place: Place, trial: Trial, sabotage: Sabotage) -> None:
    check(trial, place, sabotage)


# --- what ends in the middle, and begins again before the end -----------------------------------------------


def meanwhile(place: Place, settings: dict[str, object], during: Callable[[], None]) -> Mapping[str, object]:
    """The last row of a fault during which something else happens, but not at its ends."""
    recorded = Recorded()
    spec = load({"schedule": [{"at_s": 0.0, "duration_s": 60.0, "target": "n1", **settings}]})
    nemesis = Nemesis(
        plan(spec, seed=1, duration_s=90.0), place.fleet, place.system, recorded, canaries=place.canaries
    )
    nemesis.start()
    recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=30)
    during()
    nemesis.stop_and_heal()
    return recorded.ended("f1")


@pytest.mark.parametrize(
    "settings",
    [
        {"fault": "partition"},
        {"fault": "partition", "shape": "clients"},
        {"fault": "partition", "target": "clients of n1"},
        {"fault": "mtu-black-hole"},
    ],
    ids=lambda one: " ".join(map(str, one.values())),
)
def test_a_cut_that_leaks_in_the_middle_alone_is_not_proved(
    place: Place, settings: dict[str, object]
) -> None:
    fleet = place.fleet
    assert isinstance(fleet, NetnsFleet)

    def accept(how: str) -> None:
        for remote in (*(fleet.remote(host) for host in fleet.hosts), fleet.clients):
            for chain in ("INPUT", "OUTPUT"):
                remote.run(f"iptables -w 5 -{how} {chain} -j ACCEPT")

    def leak() -> None:
        accept("I")
        time.sleep(3.5)
        accept("D")

    ended = meanwhile(place, settings, leak)
    assert ended["proved"] is False, ended
    assert "s after its beginning" in str(ended["proof"])
    assert ended["restored"] is True, ended


@pytest.mark.parametrize(
    "settings",
    [
        {"fault": "kill"},
        {"fault": "restart"},
        {"fault": "oom-kill"},
        {"fault": "crash-loop", "times": 2, "up_s": 0.1},
        {"fault": "truncate"},
    ],
    ids=lambda one: str(one["fault"]),
)
def test_a_node_that_a_supervisor_starts_and_that_dies_again_was_not_down(
    place: Place, settings: dict[str, object]
) -> None:
    node = place.system.nodes[0]

    def supervise() -> None:
        place.system.start(node)
        time.sleep(3.0)
        (place.system.stop if settings["fault"] == "restart" else place.system.kill)(node)

    ended = meanwhile(place, settings, supervise)
    assert ended["proved"] is False, ended
    assert "s after its beginning" in str(ended["proof"])
    assert ended["restored"] is True, ended


def test_a_process_that_somebody_wakes_for_a_while_was_not_stopped_throughout(place: Place) -> None:
    node = place.system.nodes[0]
    pid, remote = place.system.pid(node), place.fleet.remote(node.host)

    def wake() -> None:
        remote.run(f"kill -CONT {pid}")
        time.sleep(3.0)
        remote.run(f"kill -STOP {pid}")

    ended = meanwhile(place, {"fault": "pause"}, wake)
    assert ended["proved"] is False, ended
    assert "was seen as" in str(ended["proof"])


def test_what_cannot_be_told_while_another_fault_is_in_force_is_told_when_none_is(place: Place) -> None:
    """The cut ends while its host has no power: its rules are looked at when no fault is in force."""
    recorded = Recorded()
    faults = [
        {"at_s": 0.0, "duration_s": 2.0, "fault": "partition", "target": "n1"},
        {"at_s": 1.0, "duration_s": 6.0, "fault": "power-cut", "target": "n1"},
    ]
    planned = plan(load({"schedule": faults}), seed=1, duration_s=30.0)
    nemesis = Nemesis(planned, place.fleet, place.system, recorded, canaries=place.canaries)
    nemesis.start()
    assert nemesis.wait(60)
    assert nemesis.stop_and_heal() == []
    assert recorded.ended("f1")["restored"] is None, recorded.ended("f1")
    assert recorded.phases("f1")[-1] == "restored"
    assert recorded.restored("f1") is True
    assert recorded.restored("f2") is True

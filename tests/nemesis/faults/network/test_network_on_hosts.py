"""Faults of the network on four real hosts, looked at from outside: sockets of the test's own, and the
kernels' counters."""

from __future__ import annotations

import pytest

from tests.nemesis.faults.running import Running, fleet, running, system
from tests.nemesis.listeners import PORT, Listeners
from wrackline.fleets.netns.fleet import NetnsFleet

__all__ = ["fleet", "system"]
pytestmark = pytest.mark.fleet


HOSTS = ("n1", "n2", "n3", "n4")


def seen_by(run: Running) -> dict[str, set[str]]:
    """Who gets a TCP connection to whom."""
    names = [host.name for host in run.fleet.hosts]
    return {one: {other for other in names if run.connects(one, other)} for one in names}


def test_on_a_ring_every_host_reaches_three_of_four(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "partition", "shape": "majorities-ring", "target": "n1,n2"}) as run:
        seen = seen_by(run)
    assert seen == {
        "n1": {"n1", "n3", "n4"},
        "n2": {"n2", "n3", "n4"},
        "n3": {"n3", "n1", "n2"},
        "n4": {"n4", "n1", "n2"},
    }
    run.recorded.assert_proved("f1")


def test_a_bridge_is_all_that_connects_two_halves(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "partition", "shape": "bridge", "target": "n3"}) as run:
        seen = seen_by(run)
    assert seen == {
        "n1": {"n1", "n2", "n3"},
        "n2": {"n2", "n1", "n3"},
        "n3": {"n1", "n2", "n3", "n4"},
        "n4": {"n4", "n3"},
    }
    run.recorded.assert_proved("f1")


def test_a_cut_of_one_port_leaves_the_others(fleet: NetnsFleet, system: Listeners) -> None:
    """One way, of what the target sends: it may neither ask at the port nor answer there."""

    def answers(run: Running, source: str, target: str, port: int) -> bool:
        command = f"timeout 0.3 bash -c ': </dev/tcp/{run.host(target).address}/{port}'"
        return run.fleet.remote(run.host(source)).run(command, check=False).ok

    cut = {"fault": "partition", "target": "n1", "ports": [PORT], "direction": "out"}
    with running(fleet, system, cut) as run:
        assert not answers(run, "n1", "n2", PORT)
        assert not answers(run, "n2", "n1", PORT)
        assert answers(run, "n1", "n2", 22)
        assert answers(run, "n2", "n1", 22)
        assert answers(run, "n2", "n3", PORT)
    ended = run.recorded.assert_proved("f1")
    assert "a probe on each of 3 ways" in str(ended["proof"])


def test_links_between_brokers_are_cut_and_those_of_clients_are_not(
    fleet: NetnsFleet, system: Listeners
) -> None:
    cut = {"fault": "partition", "target": "n1", "links": ["broker-broker"]}
    with running(fleet, system, cut) as run:
        assert not run.connects("n1", "n3")
        assert run.connects(None, "n1")
        assert run.connects("n3", "n4")
    run.recorded.assert_proved("f1")
    both = {"fault": "partition", "target": "n2", "links": ["client-broker", "broker-broker"]}
    with running(fleet, system, both) as run:
        assert not run.connects("n3", "n2")
        assert not run.connects(None, "n2")
        assert run.connects(None, "n3")
    run.recorded.assert_proved("f1")


ANSWERING = """
import socket
server = socket.create_server(("", 9997))
server.settimeout(30)
while True:
    asked, _ = server.accept()
    asked.sendall(b"x" * int(asked.recv(20)))
    asked.close()
"""
ASKING = """
import socket, sys
with socket.create_connection((sys.argv[1], 9997), 2) as it:
    it.settimeout(1)
    it.sendall(sys.argv[2].encode())
    got = 0
    try:
        while part := it.recv(65536):
            got += len(part)
    except TimeoutError:
        pass
print(got)
"""


def test_in_a_black_hole_short_answers_arrive_and_long_ones_do_not(
    fleet: NetnsFleet, system: Listeners
) -> None:
    """Seen by a server and a client of the test's own: connections are made all the while."""
    hosts = {host.name: host for host in fleet.hosts}
    for name in ("n1", "n3"):
        serve = f"setsid timeout 60 python3 -c '{ANSWERING}' >/dev/null 2>&1 </dev/null &"
        fleet.remote(hosts[name]).run(serve)

    def got(asker: str, server: str, wanted: int) -> int:
        ask = f"python3 -c '{ASKING}' {hosts[server].address} {wanted}"
        return int(fleet.remote(hosts[asker]).run(ask).stdout)

    hole = {"fault": "mtu-black-hole", "target": "n2,n1", "shape": "link", "direction": "in"}
    with running(fleet, system, hole) as run:
        assert got("n2", "n1", 100) == 100
        assert got("n2", "n1", 50_000) == 0
        assert got("n3", "n1", 50_000) == 50_000, "another road"
        assert got("n2", "n3", 50_000) == 50_000, "another sender"
    assert got("n2", "n1", 50_000) == 50_000
    run.recorded.assert_proved("f1")

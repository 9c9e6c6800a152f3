"""Every fault on real hosts: it is in force (seen from outside of its own probe), proved, and undone."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from tests.nemesis.canaries import sync_just_now, watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.faults.running import Running, fleet, running, system
from tests.nemesis.listeners import PORT, Listeners
from wrackline.fleets.base import Host, PowerCut
from wrackline.fleets.canary import Canaries
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.steps import PowerOn
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load

__all__ = ["fleet", "system"]
pytestmark = pytest.mark.fleet


@pytest.fixture(scope="module")
def canaries(fleet: NetnsFleet) -> Iterator[Canaries]:
    with watched(fleet) as canaries:
        yield canaries


@pytest.fixture(scope="module", autouse=True)
def watched_system(system: Listeners, canaries: Canaries) -> None:
    system.canaries = canaries


def test_an_isolated_host_is_cut_off_from_hosts_but_not_from_clients(
    fleet: NetnsFleet, system: Listeners
) -> None:
    with running(fleet, system, {"fault": "partition", "target": "n1"}) as run:
        assert not run.connects("n1", "n2")
        assert not run.connects("n2", "n1")
        assert run.connects("n2", "n3")
        assert run.connects(None, "n1")
    ended = run.recorded.assert_proved("f1")
    assert ended["targets"] == ["n1"]
    assert "packets dropped, and a probe on each of 4 ways" in str(ended["proof"])
    assert "no TCP knock on 4 ports was answered, each was after the undo" in str(ended["proof"])


@contextmanager
def let_through(fleet: NetnsFleet, *hosts: str, rules: Sequence[str] = ("INPUT", "OUTPUT")) -> Iterator[None]:
    """What makes a cut leak: packets are accepted before they meet its rules."""
    remotes = [fleet.remote(host) for host in fleet.hosts if host.name in hosts]
    for remote in remotes:
        remote.run("; ".join(f"iptables -w 5 -I {chain} -p tcp -j ACCEPT" for chain in rules))
    try:
        yield
    finally:
        for remote in remotes:
            remote.run("; ".join(f"iptables -w 5 -D {chain} -p tcp -j ACCEPT" for chain in rules))


def test_a_cut_that_leaks_is_not_proved(fleet: NetnsFleet, system: Listeners) -> None:
    with ExitStack() as stack:
        with running(fleet, system, {"fault": "partition", "target": "n1"}) as run:
            assert not run.connects("n1", "n2")
            stack.enter_context(let_through(fleet, "n1", "n2", "n3"))
            assert run.connects("n1", "n2")
        ended = run.recorded.ended("f1")
    assert ended["proved"] is False, ended
    assert str(ended["proof"]).startswith("the cut leaks: ")
    for way in ("n1>n2", "n1>n3", "n2>n1", "n3>n1"):
        assert f"{way}:{PORT} answered at the end (connected)" in str(ended["proof"])


def test_a_cut_from_clients_that_leaks_is_not_proved(fleet: NetnsFleet, system: Listeners) -> None:
    with ExitStack() as stack:
        with running(fleet, system, {"fault": "partition", "shape": "clients", "target": "n2"}) as run:
            stack.enter_context(let_through(fleet, "n2"))
        ended = run.recorded.ended("f1")
    assert ended["proved"] is False, ended
    assert ended["proof"] == f"the cut leaks: clients>n2:{PORT} answered at the end (connected)"


def test_a_cut_whose_rules_are_not_the_first_any_more_is_not_proved(
    fleet: NetnsFleet, system: Listeners
) -> None:
    """The other end still drops everything, so nobody answers; but half of the cut is not there."""
    with ExitStack() as stack:
        with running(fleet, system, {"fault": "partition", "target": "n1"}) as run:
            stack.enter_context(let_through(fleet, "n1", rules=("OUTPUT",)))
        ended = run.recorded.ended("f1")
    assert ended["proved"] is False, ended
    assert ended["proof"] == "n1 at the end: `-A OUTPUT -p tcp -j ACCEPT` stands before its rules"


def test_a_cut_that_somebody_flushed_away_is_not_proved(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "partition", "target": "n1"}) as run:
        for host in fleet.hosts:
            fleet.remote(host).run("iptables -w 5 -F INPUT; iptables -w 5 -F OUTPUT")
    ended = run.recorded.ended("f1")
    assert ended["proved"] is False, ended
    assert f"n1>n2:{PORT} answered at the end" in str(ended["proof"])


def test_faults_of_nodes_and_power_do_not_make_a_cut_doubtful(fleet: NetnsFleet, system: Listeners) -> None:
    """Nor do they end it: a host that comes back is cut off again."""
    cuts = [
        {"fault": "partition", "target": "n1"},
        {"fault": "partition", "shape": "clients", "target": "n1"},
        {"fault": "pause", "target": "n2"},
        {"fault": "kill", "target": "n3"},
    ]
    with running(fleet, system, *cuts) as run:
        fleet.power.cut(run.host("n1"))
        stage = run.nemesis._stage
        [back] = asyncio.run(stage.run([PowerOn("n1")]))
        assert not back.error
        system.start(system.nodes[0])
        assert run.chains("n1") == ["f1", "f2"]
        assert not run.connects(None, "n1")
        assert not run.connects("n1", "n2")
    for one in ("f1", "f2", "f3", "f4"):
        run.recorded.assert_proved(one)


def test_clients_cut_from_one_broker_leave_the_brokers_together(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "partition", "shape": "clients", "target": "n2"}) as run:
        assert not run.connects(None, "n2")
        assert run.connects(None, "n1")
        assert run.connects("n1", "n2")
        assert not run.connects(None, "n2")
    run.recorded.assert_proved("f1")


def test_stalled_connections_deliver_late_what_a_closed_connection_had_sent(
    fleet: NetnsFleet, system: Listeners
) -> None:
    with fleet.entered():
        kept = socket.create_connection((fleet.hosts[0].address, PORT), timeout=5)
    with kept:
        kept.sendall(b"before")
        assert kept.recv(100) == b"before"
        with running(fleet, system, {"fault": "stall-connections", "target": "n1"}) as run:
            kept.sendall(b"meanwhile")
            kept.settimeout(0.5)
            with pytest.raises(TimeoutError):
                kept.recv(100)
            assert run.connects(None, "n1")
        kept.settimeout(10)
        assert kept.recv(100) == b"meanwhile"
    ended = run.recorded.assert_proved("f1")
    assert "1 of 1 connections" in str(ended["proof"])


def test_a_connection_goes_silent_with_the_first_request_of_a_kind(
    fleet: NetnsFleet, system: Listeners
) -> None:
    """Frames as Kafka's clients send them: length, key and version of the request, and so on."""
    produce, end_txn = (struct.pack("!ihhi", 8, key, 1, 7) for key in (0, 26))
    with fleet.entered():
        kept = socket.create_connection((fleet.hosts[0].address, PORT), timeout=5)
    with kept:
        stall = {"fault": "stall-connections", "target": "n1", "requests": ["InitProducerId", "EndTxn"]}
        with running(fleet, system, stall) as run:
            kept.sendall(produce)
            assert kept.recv(100) == produce
            kept.sendall(end_txn)
            kept.settimeout(0.5)
            with pytest.raises(TimeoutError):
                kept.recv(100)
        kept.settimeout(10)
        assert kept.recv(100) == end_txn
    ended = run.recorded.assert_proved("f1")
    assert "InitProducerId or EndTxn dropped on 1 of 1 connections" in str(ended["proof"])


def test_connections_that_nobody_has_cannot_be_stalled(fleet: NetnsFleet, system: Listeners) -> None:
    planned = plan(
        load({"schedule": [{"at_s": 0.0, "duration_s": 1.0, "fault": "stall-connections", "target": "n2"}]}),
        seed=1,
        duration_s=2.0,
    )
    run = Running(fleet, system, planned)
    run.nemesis.start()
    run.nemesis.wait(20)
    run.nemesis.stop_and_heal()
    ended = run.recorded.ended("f1")
    assert ended["proved"] is False
    assert "no client has a connection to port 9092" in str(ended["error"])
    assert run.chains("n2") == []


def test_a_link_cut_one_way_and_overlapping_cuts_do_not_touch_each_other(
    fleet: NetnsFleet, system: Listeners
) -> None:
    link = {"fault": "partition", "shape": "link", "target": "n1,n2"}
    deaf = {"fault": "partition", "shape": "isolate", "direction": "in", "target": "n3", "duration_s": 0.2}
    with running(fleet, system, link, deaf) as run:
        run.recorded.wait_for(lambda: "ended" in run.recorded.phases("f2"), timeout_s=30)
        assert not run.connects("n1", "n2")
        assert run.connects("n1", "n3"), "the fault that ended is undone"
        assert run.chains("n1") == ["f1"]
        run.recorded.assert_proved("f2")
    run.recorded.assert_proved("f1")


def test_a_killed_node_is_gone_and_comes_back(fleet: NetnsFleet, system: Listeners) -> None:
    before = system.pid(system.nodes[0])
    with running(fleet, system, {"fault": "kill", "target": "n1"}) as run:
        assert not system.is_running(system.nodes[0])
    ended = run.recorded.assert_proved("f1")
    assert f"process {before} on n1 is gone" in str(ended["proof"])
    assert system.pid(system.nodes[0]) != before


def test_a_paused_node_stands_still_and_goes_on_as_the_same_process(
    fleet: NetnsFleet, system: Listeners
) -> None:
    before = system.pid(system.nodes[1])
    with running(fleet, system, {"fault": "pause", "target": "n2"}) as run:
        state = fleet.remote(fleet.hosts[1]).run(f"cut -d ' ' -f 3 /proc/{before}/stat").stdout.strip()
        assert state == "T"
    run.recorded.assert_proved("f1")
    assert system.pid(system.nodes[1]) == before


def test_a_clean_restart_leaves_the_clean_shutdown_file(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "restart", "target": "n3"}) as run:
        assert not system.is_running(system.nodes[2])
    run.recorded.assert_proved("f1")


def test_a_power_cut_is_lossy_only_where_bytes_were_gone(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "power-cut", "target": "n1"}) as run:
        assert not fleet.power.is_on(run.host("n1"))
    ended = run.recorded.assert_proved("f1")
    assert ended["lossy"] == ["n1"]
    lost = ended["lost"]
    assert isinstance(lost, dict)
    assert list(lost["n1"]) == ["node/bytes"], "the canary's own files do not count"
    assert lost["n1"]["node/bytes"] > 0
    assert "bytes lost, last number reported" in str(ended["proof"])


def test_a_power_cut_behind_a_sync_is_not_proved(
    fleet: NetnsFleet, system: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = fleet.power.cut

    def sabotaged(host: Host) -> PowerCut:
        sync_just_now(fleet._machines[host.name].data)
        return cut(host)

    monkeypatch.setattr(fleet.power, "cut", sabotaged)
    with running(fleet, system, {"fault": "power-cut", "target": "n2"}) as run:
        pass
    ended = run.recorded.ended("f1")
    assert ended["proved"] is False, ended
    assert "something synced the disk" in str(ended["proof"])


def test_a_partitioned_host_that_loses_power_comes_back_partitioned_until_healed(
    fleet: NetnsFleet, system: Listeners
) -> None:
    """Undo in either order: the power first while the cut lasts, then the cut while the power is off."""
    cut = {"fault": "partition", "target": "n1"}
    power = {"fault": "power-cut", "target": "n1", "at_s": 0.5, "duration_s": 0.2}
    with running(fleet, system, cut, power) as run:
        run.recorded.wait_for(lambda: "ended" in run.recorded.phases("f2"), timeout_s=20)
        assert not run.connects("n1", "n2")
        assert not run.connects("n2", "n1")
    run.recorded.assert_proved("f2")
    run.recorded.assert_proved("f1")
    with running(fleet, system, {**cut, "duration_s": 5.0}, {**power, "duration_s": 20.0}) as run:
        assert "undo" not in run.recorded.phases("f1"), "the cut lasts until the power is off"
        run.recorded.wait_for(lambda: "ended" in run.recorded.phases("f1"), timeout_s=20)
        assert not fleet.power.is_on(run.host("n1"))


def test_what_a_killed_harness_left_is_found_and_removed(fleet: NetnsFleet, system: Listeners) -> None:
    foreign = "iptables -w 5 -N MINE; iptables -w 5 -I INPUT 1 -s 192.0.2.1/32 -j MINE"
    left = iptables.install("f9", [iptables.Rule("-s 198.18.0.12/32", "n2>n1")])
    remote = fleet.remote(fleet.hosts[0])
    remote.run(f"{foreign}; {left}")
    remote.run(f"kill -9 {system.pid(system.nodes[0])}")
    nemesis = Nemesis(plan(load({}), 1, 1.0), fleet, system, Recorded())
    repairs = nemesis.stop_and_heal()
    assert repairs[0] == "n1: chain WRACK-f9 removed"
    assert repairs[1].startswith("n1: node 1 was down (")
    assert len(repairs) == 2
    assert nemesis.stop_and_heal() == []
    rules = remote.run("iptables -w 5 -S; iptables -w 5 -F INPUT; iptables -w 5 -X MINE").stdout
    assert "-A INPUT -s 192.0.2.1/32 -j MINE" in rules, "rules of others stay"

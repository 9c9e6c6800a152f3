"""Canaries on real hosts: real cuts take their tail, on both file systems and under load; sabotaged ones do
not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.nemesis.canaries import sync_just_now
from wrackline.fleets.base import Host, PowerCut
from wrackline.fleets.canary import FOLDER, REACH_S, WITNESS_S, Canaries
from wrackline.fleets.netns.fleet import NetnsFleet

pytestmark = pytest.mark.fleet

SYNCER = """
import os
logs = [os.open(f"/data/log{n}", os.O_CREAT | os.O_WRONLY | os.O_APPEND) for n in range(4)]
while True:
    for log in logs:
        os.write(log, os.urandom(1024))
        os.fsync(log)
"""
MINE = "[w]rack-canary"
"""Matches the canary and not the command that looks for it."""
TOLD_S = REACH_S + 1.5


@pytest.fixture(scope="module", params=["ext4", "xfs"])
def fleet(request: pytest.FixtureRequest, state_root: Path) -> Iterator[NetnsFleet]:
    name = f"tf-can-{request.param}-{os.getpid()}"
    with NetnsFleet(name, ["n1"], state_dir=state_root, disk_mb=320, filesystem=request.param) as made:
        yield made


@pytest.fixture
def canaries(fleet: NetnsFleet) -> Iterator[Canaries]:
    canaries = Canaries(fleet, fleet.hosts)
    canaries.start_all()
    assert canaries.wait() == []
    yield canaries
    assert canaries.stop() == []
    left = fleet.remote(fleet.hosts[0]).run(f"ls -A /data; pgrep -f '{MINE}' >&2 || true")
    assert FOLDER not in left.stdout
    assert left.stderr == ""


def grown(canaries: Canaries, host: Host, number: int = int(10 * TOLD_S)) -> None:
    """Until the canary has latest that number."""
    deadline = time.monotonic() + 20
    while (latest := canaries.latest(host)) is None or latest.number < number:
        assert time.monotonic() < deadline, f"last latest: {latest}"
        time.sleep(0.02)


def cut_and_on(fleet: NetnsFleet, host: Host) -> PowerCut:
    fleet.power.cut(host)
    back = fleet.power.on(host)
    assert back is not None
    return back


Cut = Callable[[NetnsFleet, Host], PowerCut]
CUTS: list[Cut] = [cut_and_on, lambda fleet, host: fleet.power.drop_page_cache(host)]


@pytest.mark.parametrize("cut", CUTS, ids=["power-cut", "page-cache-drop"])
def test_a_real_cut_takes_the_canary_while_others_sync_their_files(
    fleet: NetnsFleet, canaries: Canaries, cut: Cut
) -> None:
    (host,) = fleet.hosts
    remote = fleet.remote(host)
    remote.put(SYNCER.encode(), "/opt/syncer.py")
    remote.run("setsid python3 /opt/syncer.py >/dev/null 2>&1 </dev/null &")
    grown(canaries, host)
    back = cut(fleet, host)
    loss = canaries.after(host, back.decided_ns)
    assert loss.proved, loss
    assert loss.last_there is None
    assert loss.lost_bytes == loss.before_bytes > 0
    canaries.start(host)
    assert canaries.wait() == []
    grown(canaries, host, 2)


@pytest.mark.parametrize("cut", CUTS, ids=["power-cut", "page-cache-drop"])
def test_a_sync_just_before_the_cut_is_seen(fleet: NetnsFleet, canaries: Canaries, cut: Cut) -> None:
    (host,) = fleet.hosts
    grown(canaries, host)
    sync_just_now(fleet._machines[host.name].data)
    back = cut(fleet, host)
    loss = canaries.after(host, back.decided_ns)
    assert not loss.proved, loss
    assert "something synced the disk" in str(loss)
    assert loss.last_there is not None


def test_a_cut_that_waits_for_the_canary_is_proved_however_young_that_was(
    fleet: NetnsFleet, canaries: Canaries
) -> None:
    """Three cuts one after another, each as soon as the host is back."""
    (host,) = fleet.hosts
    for _ in range(3):
        canaries.wait_witness(host)
        back = cut_and_on(fleet, host)
        loss = canaries.after(host, back.decided_ns)
        assert loss.proved, loss
        assert loss.reach_s < REACH_S + 0.5, "it waits no longer than it must"
        canaries.start(host)
    assert canaries.wait() == []


def test_a_cut_waits_for_no_canary_that_has_ended(fleet: NetnsFleet, canaries: Canaries) -> None:
    (host,) = fleet.hosts
    fleet.remote(host).run(f"pkill -KILL -f '{MINE}'")
    began = time.monotonic()
    canaries.wait_witness(host)
    assert time.monotonic() - began < WITNESS_S / 2


def test_a_host_that_died_unasked_is_judged_from_the_last_word(fleet: NetnsFleet, canaries: Canaries) -> None:
    (host,) = fleet.hosts
    grown(canaries, host)
    cut_and_on(fleet, host)
    assert canaries.after(host).proved


def test_a_canary_that_was_killed_proves_nothing_once_it_is_silent_for_long(
    fleet: NetnsFleet, canaries: Canaries
) -> None:
    (host,) = fleet.hosts
    grown(canaries, host)
    listener = next(thread for thread in threading.enumerate() if thread.name == f"canary-{host.name}")
    fleet.remote(host).run(f"pkill -KILL -f '{MINE}'")
    listener.join(10)  # it ends when it has heard of the end
    loss = canaries.after(host, time.monotonic_ns() + 6_000_000_000)
    assert not loss.proved
    assert "it had been silent for" in str(loss)
    assert "its program ended" in str(loss)


def test_a_canary_whose_files_were_removed_proves_nothing(fleet: NetnsFleet, canaries: Canaries) -> None:
    (host,) = fleet.hosts
    grown(canaries, host)
    fleet.remote(host).run(f"rm -rf /data/{FOLDER}; sync -f /data")
    back = cut_and_on(fleet, host)
    loss = canaries.after(host, back.decided_ns)
    assert not loss.proved
    assert "what it had synced is not there" in str(loss)


def test_a_full_disk_silences_the_canary_until_there_is_room_again(
    fleet: NetnsFleet, canaries: Canaries
) -> None:
    (host,) = fleet.hosts
    remote = fleet.remote(host)
    grown(canaries, host, 5)
    remote.run(
        "fallocate -l $(df --output=avail -B1 /data | tail -1) /data/fill; yes >/data/rest 2>&1 || true"
    )
    full = canaries.latest(host)
    assert full is not None
    remote.run("rm /data/fill /data/rest; sync -f /data")
    grown(canaries, host, full.number + 30)

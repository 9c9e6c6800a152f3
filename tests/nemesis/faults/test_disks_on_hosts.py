"""Faults of disks and page caches on real hosts, seen from outside of their own probes."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.nemesis.faults.test_on_hosts import canaries, fleet, running, system
from tests.nemesis.listeners import Listeners
from wrackline.fleets.netns.fleet import NetnsFleet

__all__ = ["canaries", "fleet", "system"]
pytestmark = pytest.mark.fleet


def data(fleet: NetnsFleet, host: str) -> Path:
    """The data disk of a host, seen from the machine."""
    return fleet._machines[host].data


def resident(file: Path) -> int:
    """Bytes of a file in the page cache, as the kernel says here."""
    said = subprocess.run(
        ["fincore", "-b", "-n", "-r", "-o", "RES", str(file)], capture_output=True, text=True
    )
    return int(said.stdout.strip() or 0)


def ready_to_lose(system: Listeners) -> None:
    """Waits until every canary is old enough to prove a cut: an earlier test may have started it anew."""
    assert system.canaries is not None
    assert system.canaries.wait() == []
    time.sleep(1.6)


def test_evicted_pages_are_not_in_the_page_cache(fleet: NetnsFleet, system: Listeners) -> None:
    file = data(fleet, "n1") / "cold"
    fleet.remote(fleet.hosts[0]).run("head -c 4000000 /dev/urandom >/data/cold; sync /data/cold")
    assert resident(file) > 3_900_000
    with running(fleet, system, {"fault": "evict-cache", "target": "n1", "every_s": 0.2}) as run:
        assert resident(file) == 0
        file.read_bytes()
        deadline = time.monotonic() + 10
        while resident(file):
            assert time.monotonic() < deadline, "it is evicted again and again"
            time.sleep(0.05)
    ended = run.recorded.ended("f1")
    assert ended["proved"] is True, ended
    assert re.search(r"of \d{7,} bytes in the page cache \d+ were left", str(ended["proof"]))
    file.read_bytes()
    time.sleep(0.5)
    assert resident(file) > 3_900_000, "nobody evicts it any more"
    file.unlink()


def test_a_dropped_page_cache_takes_the_node_and_what_it_had_not_synced_and_no_host(
    fleet: NetnsFleet, system: Listeners
) -> None:
    ready_to_lose(system)
    folder, booted = data(fleet, "n2"), fleet._machines["n2"]._init_pid
    fleet.remote(fleet.hosts[1]).run(
        "echo kept >/data/synced; sync /data/synced /data; echo gone >/data/unsynced"
    )
    with running(fleet, system, {"fault": "drop-page-cache", "target": "n2"}) as run:
        assert fleet._machines["n2"]._init_pid == booted
        assert not system.is_running(system.nodes[1])
        assert (folder / "synced").read_text() == "kept\n"
        assert not (folder / "unsynced").exists()
    ended = run.recorded.ended("f1")
    assert ended["proved"] is True, ended
    assert ended["lossy"] == ["n2"]
    assert "n2 stayed on" in str(ended["proof"])


def test_hosts_lose_power_together(fleet: NetnsFleet, system: Listeners) -> None:
    ready_to_lose(system)
    with running(fleet, system, {"fault": "power-cut", "target": "all"}) as run:
        assert not any(fleet.power.is_on(host) for host in fleet.hosts)
    ended = run.recorded.ended("f1")
    assert ended["proved"] is True, ended
    found = re.search(r"all 3 within ([0-9.]+) ms of one another", str(ended["proof"]))
    assert found is not None, ended
    assert float(found[1]) < 1_000  # 5 to 60 ms where the processors have nothing else to do


@pytest.mark.parametrize("disk", ["stale", "wiped"])
def test_a_host_comes_back_with_another_disk(fleet: NetnsFleet, system: Listeners, disk: str) -> None:
    ready_to_lose(system)
    remote = fleet.remote(fleet.hosts[2])
    remote.run("echo early >/data/early; sync /data/early /data")
    cut = {"fault": "power-cut", "target": "n3", "disk": disk, "age_s": 2.5, "at_s": 0.5}
    with running(fleet, system, cut) as run:
        assert not fleet.power.is_on(fleet.hosts[2])
    ended = run.recorded.ended("f1")
    assert ended["proved"] is True, ended
    assert ended["damaged"] == {"n3": {}}
    assert ended["lossy"] == ["n3"]
    left = remote.run("ls -A /data").stdout.split()
    assert ("early" in left) is (disk == "stale")
    assert ".wrack-witness" not in left

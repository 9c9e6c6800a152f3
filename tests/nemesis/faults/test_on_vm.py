"""Faults that need a host with a kernel of its own, on a virtual machine, and some that reach into the kernel
otherwise than in a namespace: seen by questions of our own over SSH."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.listeners import Listeners
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def system(state_root: Path) -> Iterator[Listeners]:
    fleet = QemuFleet(f"vmf-{os.getpid()}", ["n1"], state_dir=state_root, accel="tcg")
    fleet.prepare(print)
    with fleet, watched(fleet) as canaries:
        system = Listeners(fleet)  # type: ignore[arg-type]  # it asks for SSH alone
        system.canaries = canaries
        system.install()
        system.start(system.nodes[0])
        yield system


def ahead_s(system: Listeners) -> float:
    """How far the host's clock is ahead of ours; SSH under emulation takes its time."""
    said = system._fleet.remote(system.nodes[0].host).run("date +%s.%N").stdout
    return float(said) - time.time()


def done(system: Listeners, look: Any = None, **fault: object) -> Any:
    """The fault, proved and undone. Returns what ``look`` saw while it was in force."""
    recorded = Recorded()
    planned = plan(load({"schedule": [{"at_s": 0, "duration_s": 4, "target": "n1", **fault}]}), 1, 9.0)
    fleet = system._fleet
    nemesis = Nemesis(planned, fleet, system, recorded, topics=("log",), canaries=system.canaries)
    nemesis.start()
    recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=120)
    seen = look() if look is not None else None
    assert nemesis.wait(180)
    assert nemesis.stop_and_heal() == []
    recorded.assert_proved("f1")
    print(recorded.ended("f1")["proof"])
    assert system.is_running(system.nodes[0])
    return seen


def test_the_clock_of_the_host_jumps_strobes_and_drifts(system: Listeners) -> None:
    before = ahead_s(system)
    ahead = done(system, lambda: ahead_s(system), fault="clock-jump", offset_s=300)
    assert ahead - before == pytest.approx(300, abs=5)
    assert ahead_s(system) == pytest.approx(before, abs=3)
    done(system, fault="clock-strobe", offset_s=-50, period_s=2)
    done(system, fault="clock-drift", percent=100, duration_s=8)
    assert ahead_s(system) == pytest.approx(before, abs=3)


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "evict-cache", "whole_host": True},
        {"fault": "oom-kill"},
        {"fault": "memory-pressure", "size_mb": 40},
        {"fault": "cpu-pressure", "workers": 1, "percent": 50},
        {"fault": "slow-disk", "bytes_per_s": 300_000},
        {"fault": "disk-full"},
        {"fault": "read-only"},
        {"fault": "bit-flip", "files": "node/bytes"},
    ],
    ids=lambda fault: str(fault["fault"]),
)
def test_a_fault_works_on_a_virtual_machine(system: Listeners, fault: dict[str, object]) -> None:
    done(system, **fault)

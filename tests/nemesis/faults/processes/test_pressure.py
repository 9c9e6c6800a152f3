"""Processor time and memory are taken, and the kernel kills for it: on real hosts, and what proves it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.nemesis.doubles import context, node_look
from tests.nemesis.faults.test_on_hosts import canaries, fleet, running, system
from tests.nemesis.listeners import Listeners
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.processes.pressure import CpuPressure, MemoryPressure, OomKill
from wrackline.nemesis.faults.steps import FaultError, ProbeLog, Shell, StepResult

__all__ = ["canaries", "fleet", "system"]
pytestmark = pytest.mark.fleet
TICKS = os.sysconf("SC_CLK_TCK")


def processes(fleet: NetnsFleet, host: str, words: str) -> list[int]:
    """Of a host, by what their command lines have in them; as this machine numbers them."""
    found = []
    for pid in fleet._machines[host].processes():
        try:
            if words in Path(f"/proc/{pid}/cmdline").read_text() and "setsid" not in words:
                found.append(pid)
        except OSError:
            continue
    return found


def spent_s(pids: list[int]) -> float:
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICKS


def test_burners_use_processors_and_end(fleet: NetnsFleet, system: Listeners) -> None:
    before_others = -15  # or a busy machine would have no processor for them
    burn = {"fault": "cpu-pressure", "target": "n1", "workers": 2, "percent": 40, "nice": before_others}
    with running(fleet, system, burn) as run:
        found = processes(fleet, "n1", "SLICE_S")
        pids = [pid for pid in found if os.getpriority(os.PRIO_PROCESS, pid) == before_others]
        assert len(pids) == 2
        before, began = spent_s(pids), time.monotonic()
        time.sleep(1.5)
        assert spent_s(pids) - before > 0.2 * 0.8 * (time.monotonic() - began)
    run.recorded.assert_proved("f1")
    assert processes(fleet, "n1", "SLICE_S") == []


def test_memory_is_held_and_given_back(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "memory-pressure", "target": "n2", "size_mb": 64}) as run:
        held = [
            int(line.split()[1]) // 1024
            for pid in processes(fleet, "n2", "SLICE_S")
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            if line.startswith("VmRSS")
        ]
        assert max(held) >= 64
    run.recorded.assert_proved("f1")
    assert processes(fleet, "n2", "SLICE_S") == []


def test_memory_that_a_host_does_not_have_is_not_taken(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "memory-pressure", "target": "n2", "size_mb": 1_000_000}) as run:
        pass
    assert run.recorded.ended("f1")["proved"] is False
    assert "MiB that n2 has left: take less" in str(run.recorded.ended("f1")["error"])


def oom_kills() -> int:
    """Of the whole machine, by the kernel's own count."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def test_the_kernel_kills_the_node_and_nobody_else(fleet: NetnsFleet, system: Listeners) -> None:
    groups = set(Path("/sys/fs/cgroup").glob("*/wrackline-*"))
    before, others = oom_kills(), [system.pid(node) for node in system.nodes[:2]]
    with running(fleet, system, {"fault": "oom-kill", "target": "n3"}) as run:
        assert not system.is_running(system.nodes[2]), run.recorded.events
        assert oom_kills() > before
        assert [system.pid(node) for node in system.nodes[:2]] == others
    run.recorded.assert_proved("f1")
    assert set(Path("/sys/fs/cgroup").glob("*/wrackline-*")) == groups
    assert "wrackline-memory" not in fleet.remote(fleet.hosts[2]).run("cat /proc/mounts; ls /run").stdout


def said(*texts: str) -> list[StepResult]:
    return [StepResult(Shell("n1", ""), text) for text in texts]


def test_what_the_burners_got_is_what_proves_it() -> None:
    def proof(active: str, final: str, control: str) -> bool:
        probe_log = ProbeLog(active=said(active), final=said(final), undo=said(""), control=said(control))
        return CpuPressure(2, 50).prove(context("n1"), probe_log).proved

    assert proof("10 1000 100", "390 1400 100", "gone")
    assert not proof("10 1000 100", "30 1400 100", "gone"), "others had the processors"
    assert not proof("10 1000 100", "gone", "gone")
    assert not proof("10 1000 100", "390 1400 100", "395 1500 100")
    assert not CpuPressure().prove(context("n1"), ProbeLog(active=said("10 1000 100"))).proved


def test_memory_must_have_been_held_throughout() -> None:
    def proof(active: str, final: str, control: str) -> bool:
        probe_log = ProbeLog(active=said(active), final=said(final), undo=said(""), control=said(control))
        return MemoryPressure(64).prove(context("n1"), probe_log).proved

    assert proof("70000", "70000", "gone")
    assert not proof("70000", "60000", "gone")
    assert not proof("70000", "gone", "gone")
    assert not proof("70000", "70000", "70000")


def test_an_oom_kill_is_counted_by_the_kernel() -> None:
    def proof(counted: str, node: str) -> bool:
        probe_log = ProbeLog(do=said(counted), active=[node_look("n1", node)])
        return OomKill().prove(context("n1"), probe_log).proved

    assert proof("oom_kill 1", "None")
    assert not proof("oom_kill 0", "None")
    assert not proof("oom_kill 1", "41 S")
    assert not proof("oom_kill 1", "52 S"), "somebody has started it again"
    assert not OomKill().prove(context("n1"), ProbeLog()).proved
    with pytest.raises(FaultError, match="does not run"):
        OomKill().commands(context("n1", pid=None))

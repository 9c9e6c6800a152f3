"""What hosts printed and what power switches said becomes a proof, or none."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from tests.nemesis.doubles import combined_scene, context, node_look
from wrackline.fleets.base import Disk, FileLoss
from wrackline.fleets.base import PowerCut as Cut
from wrackline.fleets.canary import CanaryLoss
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.faults.by_command import beyond_commands
from wrackline.nemesis.faults.disks.caches import DroppedPageCache, EvictCache, EvictCacheSpec
from wrackline.nemesis.faults.disks.disk_bytes import BitFlip, Changed, RollBack, Truncate
from wrackline.nemesis.faults.disks.disk_errors import DiskErrorsSpec, ReadOnly, ReadOnlySpec, SlowFsyncSpec
from wrackline.nemesis.faults.disks.disk_space import DiskFull, SlowDisk
from wrackline.nemesis.faults.disks.power import EARLY, PowerCut, PowerCutSpec, early_witness
from wrackline.nemesis.faults.host_steps import DropPageCache, SwapDisk
from wrackline.nemesis.faults.steps import FaultError, PowerOff, PowerOn, ProbeLog, Shell, StepResult
from wrackline.systems.wrackline.spec import WracklineSpec

SANG = CanaryLoss("n1", 800, 0, 200, None, 4.0)
SILENT = CanaryLoss("n1", problem="what it had synced is not there: another disk, or somebody removed it")


def cut_trail(disk: Disk, there: str, canary: CanaryLoss = SANG) -> ProbeLog:
    lost = {"broker/log-0/0.log": FileLoss(900, 400), ".wrack-witness/late": FileLoss(5, 0)}
    return ProbeLog(
        do=[StepResult(PowerOff("n1"), cut=Cut("n1", 0, 4_000_000)), StepResult(SwapDisk("n1", disk))],
        undo=[
            StepResult(PowerOn("n1"), cut=Cut("n1", 0, 4_000_000, lost), canary=canary),
            StepResult(Shell("n1", "ls"), there),
        ],
    )


def test_another_disk_is_proved_by_files_that_were_synced() -> None:
    stale, wiped = PowerCut(Disk.STALE), PowerCut(Disk.WIPED)
    proof = stale.prove(context("n1"), cut_trail(Disk.STALE, f"{EARLY}\n"))
    assert proof.proved, proof
    assert proof.damaged == {"n1": {}}
    assert proof.lost == {"n1": {"broker/log-0/0.log": 500}}, "our own files do not count"
    assert wiped.prove(context("n1"), cut_trail(Disk.WIPED, "", SILENT)).proved
    assert not wiped.prove(context("n1"), cut_trail(Disk.WIPED, f"{EARLY}\n")).proved
    its_own = stale.prove(context("n1"), cut_trail(Disk.STALE, f"{EARLY}\nlate\n"))
    assert not its_own.proved
    assert "of the files that were synced, early, late there" in its_own.text
    assert not stale.prove(context("n1"), cut_trail(Disk.STALE, "")).proved
    assert not stale.prove(context("n1"), cut_trail(Disk.STALE, f"{EARLY}\n", SILENT)).proved
    probe_log = cut_trail(Disk.STALE, f"{EARLY}\n")
    assert "was not exchanged" in stale.prove(context("n1"), replace(probe_log, do=probe_log.do[:1])).text


def test_a_disk_that_was_copied_beforehand_is_exchanged_at_once() -> None:
    copied = PowerCut(Disk.STALE, age_s=None)
    steps = copied.commands(context("n1")).do
    assert [type(step) for step in steps] == [Shell, PowerOff, SwapDisk], "no copy is made, nothing waits"
    assert "/late" in cast(Shell, steps[0]).command
    assert "/early" in early_witness("/data/broker")
    proof = copied.prove(context("n1"), cut_trail(Disk.STALE, f"{EARLY}\n"))
    assert proof.proved
    assert proof.text.endswith("one that was synced after it, before the cut, is gone")
    assert not copied.prove(context("n1"), cut_trail(Disk.STALE, f"{EARLY}\nlate\n")).proved


def test_no_controller_gets_another_disk() -> None:
    for disk in (Disk.STALE, Disk.WIPED):
        for aimed in (combined_scene("n2"), context("c1")):
            with pytest.raises(FaultError, match="a controller that forgets"):
                PowerCut(disk).commands(aimed)
    hosts, system = NetnsSpec(combined=True), WracklineSpec()
    spec = PowerCutSpec(fault="power-cut", disk=Disk.WIPED)
    assert "the brokers are controllers too" in str(spec.refusal(hosts, system))
    assert spec.refusal(NetnsSpec(), system) is None
    assert PowerCutSpec(fault="power-cut").refusal(hosts, system) is None
    assert "no command gives a host another disk" in str(beyond_commands(PowerCut(Disk.STALE)))


def test_cuts_of_several_hosts_say_how_far_apart_they_were() -> None:
    cuts = {"n1": 1_000_000, "n2": 13_500_000}
    probe_log = ProbeLog(
        do=[StepResult(PowerOff(host), cut=Cut(host, 0, at)) for host, at in cuts.items()],
        undo=[StepResult(PowerOn(host), cut=Cut(host, 0, at), canary=SANG) for host, at in cuts.items()],
    )
    proof = PowerCut().prove(context("n1", "n2"), probe_log)
    assert proof.proved
    assert proof.text.endswith("; all 2 within 12.5 ms of one another")


def test_an_eviction_must_have_left_fewer_pages() -> None:
    def proof(first: str, last: str = "") -> bool:
        active, final = ([StepResult(Shell("n1", ""), said)] for said in (first, last or first))
        return EvictCache().prove(context("n1"), ProbeLog(active=active, final=final)).proved

    assert proof("-- running\nround 4096 0\n", "-- running\nround 4096 0\nround 0 0\n")
    assert not proof("-- running\nround 4096 4096\n")
    assert not proof("-- running\nround 0 0\n"), "there was nothing to evict"
    assert not proof("-- ended\nno such file\n")
    assert not EvictCache().prove(context("n1"), ProbeLog()).proved
    whole = EvictCacheSpec(fault="evict-cache", whole_host=True)
    assert "share this machine's kernel" in str(whole.refusal(NetnsSpec(), WracklineSpec()))
    assert EvictCacheSpec(fault="evict-cache").refusal(NetnsSpec(), WracklineSpec()) is None


def test_a_dropped_page_cache_is_proved_by_the_canary_of_a_host_that_stayed_on() -> None:
    def proof(before: str, after: str, canary: CanaryLoss = SANG, node: str = "None") -> bool:
        dropped = StepResult(DropPageCache("n1"), cut=Cut("n1", 0, 1), canary=canary)
        active = [StepResult(Shell("n1", ""), after), node_look("n1", node)]
        probe_log = ProbeLog(do=[StepResult(Shell("n1", ""), before), dropped], active=active)
        return DroppedPageCache().prove(context("n1"), probe_log).proved

    assert proof("boot 77\n", "boot 77\n")
    assert not proof("boot 77\n", "boot 99\n"), "it was a reboot"
    assert not proof("boot 77\n", "boot 77\n", SILENT)
    assert not proof("boot 77\n", "boot 77\n", node="52 S"), "somebody has started it again"
    assert not DroppedPageCache().prove(context("n1"), ProbeLog()).proved


def said(*texts: str) -> list[StepResult]:
    return [StepResult(Shell("n1", ""), text) for text in texts]


FULL = "dd: error writing '/data/.wrack-probe': No space left on device\n"


def test_a_full_disk_takes_nothing_and_afterwards_it_does() -> None:
    def proof(active: str, final: str, control: str) -> bool:
        probe_log = ProbeLog(active=said(active), final=said(final), undo=said(""), control=said(control))
        return DiskFull().prove(context("n1"), probe_log).proved

    assert proof(FULL, FULL, "written\n")
    assert not proof(FULL, "written\n", "written\n")
    assert not proof("written\n", FULL, "written\n")
    assert not proof(FULL, FULL, FULL), "so it was full for another reason"
    assert not DiskFull().prove(context("n1"), ProbeLog()).proved


def test_a_slow_disk_is_slow_by_its_limit_alone() -> None:
    def proof(*seconds: float) -> bool:
        active, final, control = (said(f"{round(one * 1e9)} 1000000\n") for one in seconds)
        probe_log = ProbeLog(active=active, final=final, undo=said(""), control=control)
        return SlowDisk(1_000_000).prove(context("n1"), probe_log).proved

    assert proof(0.95, 1.4, 0.1)
    assert not proof(0.95, 0.4, 0.1)
    assert not proof(1.0, 1.0, 1.0), "it is no faster without"
    assert not SlowDisk().prove(context("n1"), ProbeLog(active=said("no such file"))).proved


TRACED, FREE = "TracerPid:\t77\n", "TracerPid:\t0\n"


@pytest.mark.parametrize(
    "spec",
    [SlowFsyncSpec(fault="slow-fsync"), DiskErrorsSpec(fault="disk-errors")],
    ids=lambda one: one.fault,
)
def test_calls_that_strace_answered_are_counted(spec: SlowFsyncSpec | DiskErrorsSpec) -> None:
    def proof(active: str, answered: str, control: str, final: str = TRACED) -> bool:
        probe_log = ProbeLog(
            active=said(active), final=said(final), undo=said(answered), control=said(control)
        )
        return spec.build().prove(context("n1"), probe_log).proved

    assert proof(TRACED, "answered 12\n", FREE)
    assert proof(TRACED, "answered 12\n", "gone\n", "gone\n"), "the node ended for it"
    assert not proof(TRACED, "answered 12\n", FREE, FREE), "strace had let go before the end"
    assert not proof(TRACED, "answered 0\n", FREE)
    assert not proof(FREE, "answered 12\n", FREE)
    assert not proof(TRACED, "answered 12\n", TRACED)
    assert not proof("gone\n", "", "gone\n")
    with pytest.raises(FaultError, match="does not run"):
        spec.build().commands(context("n1", pid=None))


def test_calls_that_connections_make_too_are_answered_for_files_alone() -> None:
    [syncs] = DiskErrorsSpec(fault="disk-errors").build().commands(context("n1")).do
    [writes] = DiskErrorsSpec(fault="disk-errors", calls=("write",)).build().commands(context("n1")).do
    assert isinstance(syncs, Shell)
    assert isinstance(writes, Shell)
    assert "-P " not in syncs.command
    assert "-P " in writes.command


def test_a_read_only_file_system_takes_no_file_and_afterwards_it_does() -> None:
    refuses = "touch: cannot touch '/data/.wrack-probe': Read-only file system\n"

    def proof(active: str, final: str, control: str) -> bool:
        probe_log = ProbeLog(active=said(active), final=said(final), undo=said(""), control=said(control))
        return ReadOnly().prove(context("n1"), probe_log).proved

    assert proof(refuses, refuses, "made\n")
    assert not proof(refuses, "made\n", "made\n")
    assert not proof(refuses, refuses, refuses)
    xfs = NetnsSpec(filesystem="xfs")
    assert "they are xfs" in str(ReadOnlySpec(fault="read-only").refusal(xfs, WracklineSpec()))
    assert ReadOnlySpec(fault="read-only").refusal(NetnsSpec(), WracklineSpec()) is None


@pytest.mark.parametrize("fault", [BitFlip(), Truncate(), RollBack()], ids=lambda one: one.name)
def test_what_was_changed_is_told_by_file_and_doubt_counts_as_damage(fault: Changed) -> None:
    told = "byte 5 of 9 in /data/broker/log-0/0.log was 1, is 0 on the disk\nchanged 1 broker/log-0/0.log\n"
    down = [node_look("n1", "None")]
    proof = fault.prove(context("n1"), ProbeLog(do=said(told), active=down))
    assert proof.proved
    started = ProbeLog(do=said(told), active=down, final=[node_look("n1", "52 S")], undo=said(""))
    assert not fault.prove(context("n1"), started).proved, "somebody has started the node again"
    assert fault.prove(context("n1"), started).damaged == proof.damaged
    assert proof.damaged == {"n1": {"broker/log-0/0.log": 1}}
    nothing = fault.prove(
        context("n1"), ProbeLog(do=said("byte 5 of 9 in /data/x was 1, is 1 on the disk\n"))
    )
    assert not nothing.proved
    assert nothing.damaged == {}
    broken = fault.prove(
        context("n1"), ProbeLog(do=[StepResult(Shell("n1", ""), error="no answer within 60 s")])
    )
    assert not broken.proved
    assert broken.damaged == {"n1": {}}

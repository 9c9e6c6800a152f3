"""What hosts printed and what power switches said becomes a proof, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.nemesis.doubles import combined_scene, scene
from wrackline.fleets.base import Disk, FileLoss
from wrackline.fleets.base import PowerCut as Cut
from wrackline.fleets.canary import CanaryLoss
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.faults.by_command import beyond_commands
from wrackline.nemesis.faults.caches import DroppedPageCache, EvictCache, EvictCacheSpec
from wrackline.nemesis.faults.power import EARLY, PowerCut, PowerCutSpec
from wrackline.nemesis.faults.steps import (
    Done,
    DropPageCache,
    FaultError,
    PowerOff,
    PowerOn,
    Shell,
    SwapDisk,
    Trail,
)
from wrackline.systems.wrackline.spec import WracklineSpec

SANG = CanaryLoss("n1", 800, 0, 200, None, 4.0)
SILENT = CanaryLoss("n1", problem="what it had synced is not there: another disk, or somebody removed it")


def cut_trail(disk: Disk, there: str, canary: CanaryLoss = SANG) -> Trail:
    lost = {"broker/log-0/0.log": FileLoss(900, 400), ".wrack-witness/late": FileLoss(5, 0)}
    return Trail(
        do=[Done(PowerOff("n1"), cut=Cut("n1", 0, 4_000_000)), Done(SwapDisk("n1", disk))],
        undo=[
            Done(PowerOn("n1"), cut=Cut("n1", 0, 4_000_000, lost), canary=canary),
            Done(Shell("n1", "ls"), there),
        ],
    )


def test_another_disk_is_proved_by_files_that_were_synced() -> None:
    stale, wiped = PowerCut(Disk.STALE), PowerCut(Disk.WIPED)
    proof = stale.prove(scene("n1"), cut_trail(Disk.STALE, f"{EARLY}\n"))
    assert proof.proved, proof
    assert proof.damaged == {"n1": {}}
    assert proof.lost == {"n1": {"broker/log-0/0.log": 500}}, "our own files do not count"
    assert wiped.prove(scene("n1"), cut_trail(Disk.WIPED, "", SILENT)).proved
    assert not wiped.prove(scene("n1"), cut_trail(Disk.WIPED, f"{EARLY}\n")).proved
    its_own = stale.prove(scene("n1"), cut_trail(Disk.STALE, f"{EARLY}\nlate\n"))
    assert not its_own.proved
    assert "of the files that were synced, early, late there" in its_own.text
    assert not stale.prove(scene("n1"), cut_trail(Disk.STALE, "")).proved
    assert not stale.prove(scene("n1"), cut_trail(Disk.STALE, f"{EARLY}\n", SILENT)).proved
    trail = cut_trail(Disk.STALE, f"{EARLY}\n")
    assert "was not exchanged" in stale.prove(scene("n1"), replace(trail, do=trail.do[:1])).text


def test_no_controller_gets_another_disk() -> None:
    for disk in (Disk.STALE, Disk.WIPED):
        for aimed in (combined_scene("n2"), scene("c1")):
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
    trail = Trail(
        do=[Done(PowerOff(host), cut=Cut(host, 0, at)) for host, at in cuts.items()],
        undo=[Done(PowerOn(host), cut=Cut(host, 0, at), canary=SANG) for host, at in cuts.items()],
    )
    proof = PowerCut().prove(scene("n1", "n2"), trail)
    assert proof.proved
    assert proof.text.endswith("; all 2 within 12.5 ms of one another")


def test_an_eviction_must_have_left_fewer_pages() -> None:
    def proof(first: str, last: str = "") -> bool:
        active, final = ([Done(Shell("n1", ""), said)] for said in (first, last or first))
        return EvictCache().prove(scene("n1"), Trail(active=active, final=final)).proved

    assert proof("-- running\nround 4096 0\n", "-- running\nround 4096 0\nround 0 0\n")
    assert not proof("-- running\nround 4096 4096\n")
    assert not proof("-- running\nround 0 0\n"), "there was nothing to evict"
    assert not proof("-- ended\nthere is no fincore (util-linux)\n")
    assert not EvictCache().prove(scene("n1"), Trail()).proved
    whole = EvictCacheSpec(fault="evict-cache", whole_host=True)
    assert "share this machine's kernel" in str(whole.refusal(NetnsSpec(), WracklineSpec()))
    assert EvictCacheSpec(fault="evict-cache").refusal(NetnsSpec(), WracklineSpec()) is None


def test_a_dropped_page_cache_is_proved_by_the_canary_of_a_host_that_stayed_on() -> None:
    def proof(before: str, after: str, canary: CanaryLoss = SANG) -> bool:
        dropped = Done(DropPageCache("n1"), cut=Cut("n1", 0, 1), canary=canary)
        trail = Trail(do=[Done(Shell("n1", ""), before), dropped], active=[Done(Shell("n1", ""), after)])
        return DroppedPageCache().prove(scene("n1"), trail).proved

    assert proof("boot 77\n", "boot 77\n")
    assert not proof("boot 77\n", "boot 99\n"), "it was a reboot"
    assert not proof("boot 77\n", "boot 77\n", SILENT)
    assert not DroppedPageCache().prove(scene("n1"), Trail()).proved

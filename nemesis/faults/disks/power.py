"""The power cut: whatever a host, or one of its disks, has not synced is gone, and with another disk what it
has synced, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Disk
from wrackline.fleets.base import PowerCut as Cut
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.host_steps import CopyDisk, CutDisk, InstallTools, RestoreDisk, SwapDisk
from wrackline.nemesis.faults.outputs import last, throughout
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    FaultError,
    PowerOff,
    PowerOn,
    ProbeLog,
    Proof,
    Shell,
    StartNode,
    StepResult,
    StopNode,
    Target,
)
from wrackline.plugins.fields import SECONDS, Lax
from wrackline.systems.spec import SystemSpec

OURS = ".wrack-"
"""How names of our own begin at the top of a data disk: the loss of such files is none of the system's."""
WITNESSES = f"{OURS}witness"
EARLY, LATE = "early", "late"
"""Synced before the copy of a disk is made, and after it."""
NO_VOTERS = "a controller that forgets what it voted for may elect two leaders: aim at brokers alone"


@dataclass(frozen=True, slots=True)
class PowerCut:
    """Power off, of all targets at the same moment; on undo power on, and the nodes start.

    Proved when the canary of every host, and of each of its disks, lost what it should; lossy only where
    bytes of other files were gone too. With another disk a file that was synced is the witness: it must be
    gone, and one that was synced before the copy of a stale disk must be there.
    """

    name: ClassVar[str] = "power-cut"
    holds_node: ClassVar[bool] = True

    disk: Disk = Disk.KEPT
    age_s: float | None = 3.0
    """None: the copy for ``stale`` was made beforehand, with ``early_witness`` on it."""

    def commands(self, context: FaultContext) -> Commands:
        among = len(context.targets)
        return Commands(
            do=tuple(step for one in context.targets for step in self._off(context.fault_id, one, among)),
            undo=tuple(step for one in context.targets for step in self._on(one)),
        )

    def _off(self, fault_id: str, target: Target, among: int) -> Sequence[Step]:
        host, off = target.host, PowerOff(target.host, fault_id, among)
        if self.disk is Disk.KEPT:
            return (off,)
        if target.controller_port is not None or not target.is_broker:
            raise FaultError(f"{self.name}: {host} gets no {self.disk} disk: {NO_VOTERS}")
        swap = SwapDisk(host, self.disk)
        if self.disk is Disk.WIPED:
            return (_witness(target, EARLY), off, swap)
        if self.age_s is None:
            return (_witness(target, LATE), off, swap)
        later = Shell(host, f"sleep {self.age_s:g}", timeout_s=self.age_s + 15)
        return (_witness(target, EARLY), CopyDisk(host), _witness(target, LATE), later, off, swap)

    def _on(self, target: Target) -> Sequence[Step]:
        on, start = PowerOn(target.host), StartNode(target.host, target.node_id)
        if self.disk is Disk.KEPT:
            return (on, start)
        folder = f"{target.data_dir}/{WITNESSES}"
        there = Shell(target.host, f"ls {folder} 2>/dev/null; rm -rf {folder}")
        return (on, there, InstallTools(target.host, target.node_id), start)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        off = {done.step.host: done for done in probe_log.do if done.cut}
        on = {done.step.host: done for done in probe_log.undo if isinstance(done.step, PowerOn) and done.cut}
        uncut = [target.host for target in context.targets if target.host not in off]
        if uncut:  # others may have lost their power nevertheless
            why = f"the power of {', '.join(uncut)} was not cut"
            return Proof(False, why, lost_by_host(off, on), self._damaged(off))
        if not probe_log.undo:
            text = "; ".join(f"{_gone(host, off[host])}; what it lost shows at power-on" for host in off)
            return Proof(False, text + _spread(off))
        texts = [f"{_gone(host, off[host])}, {text_of(on.get(host))}" for host in sorted(off)]
        proved = all(took_what_it_should(on.get(host)) for host in off)
        if self.disk is not Disk.KEPT:
            flaws = [flaw for host in sorted(off) if (flaw := self._other_disk(host, probe_log))]
            texts += flaws or [f"the disk is another: {self._witnesses()}"]
            proved = not flaws and (proved or self.disk is Disk.WIPED)
        return Proof(proved, "; ".join(texts) + _spread(off), lost_by_host(off, on), self._damaged(off))

    def _damaged(self, off: Mapping[str, StepResult]) -> dict[str, dict[str, int]]:
        return {} if self.disk is Disk.KEPT else {host: {} for host in off}

    def _other_disk(self, host: str, probe_log: ProbeLog) -> str:
        """Returns why the proof does not show that the host got the disk it should; empty when it does."""
        if not any(isinstance(done.step, SwapDisk) and done.step.host == host for done in probe_log.do):
            return f"{host}: its disk was not exchanged"
        said = [
            done.output.split()
            for done in probe_log.undo
            if isinstance(done.step, Shell) and done.step.host == host and not (done.error or done.skipped)
        ]
        expected = [EARLY] if self.disk is Disk.STALE else []
        if said != [expected]:
            seen = ", ".join(word for words in said for word in words) or "none"
            return f"{host}: its disk is not the {self.disk} one: of the files that were synced, {seen} there"
        return ""

    def _witnesses(self) -> str:
        if self.disk is Disk.WIPED:
            return "a file that was synced before the cut is gone"
        before = "" if self.age_s is None else f"{self.age_s:g} s "
        return (
            f"a file that was synced before the copy was made is there, one that was synced after it, "
            f"{before}before the cut, is gone"
        )


EIO = "Input/output error"


@dataclass(frozen=True, slots=True)
class DiskCut:
    """One data disk of a host that stays on loses its power: what it had not synced is gone, and whatever is
    asked of it fails. On undo the node stops, the disk is mounted anew, and the node starts.

    Proved when the disk's canary lost what it should, and no file could be made there at the beginning and at
    the end (EIO), and can be afterwards.
    """

    name: ClassVar[str] = "power-cut"
    holds_node: ClassVar[bool] = True

    on_disk: int

    def commands(self, context: FaultContext) -> Commands:
        probe = tuple(touch(one, self.on_disk) for one in context.targets)
        return Commands(
            do=tuple(CutDisk(one.host, self.on_disk) for one in context.targets),
            undo=tuple(step for one in context.targets for step in remount_disk(one, self.on_disk)),
            probe=probe,
            control=probe,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        off = {done.step.host: done for done in probe_log.do if done.cut}
        on = {
            done.step.host: done for done in probe_log.undo if isinstance(done.step, RestoreDisk) and done.cut
        }
        lost = lost_by_host(off, on)
        for one in context.targets:
            if one.host not in off:
                return Proof(False, f"disk {self.on_disk} of {one.host} was not taken from it", lost)
            answers = throughout(probe_log, one)
            if not all(EIO in text for text in answers):
                why = f"{one.host}: disk {self.on_disk} was there: {' | '.join(answers)}"
                return Proof(False, why, lost)
        gone = {host: f"{_gone(host, off[host], f'disk {self.on_disk}')}" for host in sorted(off)}
        if not probe_log.undo:
            return Proof(False, "; ".join(f"{text}; what it lost shows later" for text in gone.values()))
        if flaw := self.residue(context, probe_log):
            return Proof(False, flaw, lost)
        text = "; ".join(f"{gone[host]}, {text_of(on.get(host))}" for host in gone)
        return Proof(all(took_what_it_should(on.get(host)) for host in off), text + _spread(off), lost)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return unwritable_hosts(context, probe_log)


def touch(target: Target, on_disk: int | None) -> Shell:
    """Returns the probe that makes a file on a data disk."""
    file = f"{target.disk(on_disk)}/{OURS}probe"
    return Shell(target.host, f"LC_ALL=C touch {file} 2>&1 && echo made; rm -f {file} 2>/dev/null; true")


def unwritable_hosts(context: FaultContext, probe_log: ProbeLog) -> str:
    """Returns the hosts on which `touch` fails after the undo, in words; empty when there are none."""
    stuck = [one.host for one in context.targets if last(probe_log.control, one) != "made"]
    return f"{', '.join(stuck)}: no file can be made after the undo, either" if stuck else ""


def remount_disk(target: Target, number: int) -> tuple[Step, ...]:
    """Returns the steps after which a node has a data disk again that had failed: it never looks at one again
    while it runs."""
    return (
        StopNode(target.host, target.node_id),
        RestoreDisk(target.host, number),
        StartNode(target.host, target.node_id),
    )


def restart_node(target: Target) -> tuple[Step, ...]:
    """Returns the steps after which the node uses its disks again. With one disk it has ended where that
    failed; of several one that has failed it never looks at again while it runs, so it is stopped first."""
    stop = (StopNode(target.host, target.node_id),) if target.more_disks else ()
    return (*stop, StartNode(target.host, target.node_id))


def early_witness(data_dir: object) -> str:
    """The command that leaves a file on a data disk by which a copy of it is known later."""
    return _leave(data_dir, EARLY)


def _witness(target: Target, name: str) -> Shell:
    return Shell(target.host, _leave(target.data_dir, name))


def _leave(data_dir: object, name: str) -> str:
    folder = f"{data_dir}/{WITNESSES}"
    return f"mkdir -p {folder} && echo {name} >{folder}/{name} && sync {folder}/{name} {folder}"


def took_what_it_should(done: StepResult | None) -> bool:
    return done is not None and done.canary is not None and done.canary.proved


def lost_by_host(off: Mapping[str, StepResult], on: Mapping[str, StepResult]) -> dict[str, dict[str, int]]:
    """Hosts that lost something. One without files lost nobody knows what: nobody could look."""
    lost: dict[str, dict[str, int]] = {}
    for host in off:
        cut = on[host].cut if host in on else None
        if cut is None or not cut.counted:
            lost[host] = {}
        elif files := _lost(cut):
            lost[host] = files
    return lost


def _lost(cut: Cut) -> dict[str, int]:
    """Bytes by file, without those of the canary: they are no loss of the system's. Names of files on further
    disks begin with the disk's."""
    return {
        name: loss.lost_bytes
        for name, loss in sorted(cut.files.items())
        if loss.lost_bytes and not any(part.startswith(OURS) for part in name.split("/")[:2])
    }


def _gone(host: str, off: StepResult, what: str = "power") -> str:
    assert off.cut is not None
    took = (off.cut.lost_ns - off.cut.decided_ns) / 1e6
    return f"{host}: {what} gone {took:.1f} ms after the decision"


def _spread(off: Mapping[str, StepResult]) -> str:
    """Describes how far apart the cuts of several hosts were."""
    lost_ns = [done.cut.lost_ns for done in off.values() if done.cut]
    if len(lost_ns) < 2:
        return ""
    return f"; all {len(lost_ns)} within {(max(lost_ns) - min(lost_ns)) / 1e6:.1f} ms of one another"


def text_of(on: StepResult | None) -> str:
    if on is None or on.cut is None:
        return "and it did not come back: what it lost is not known"
    files = _lost(on.cut)
    counted = (
        f"{sum(files.values())} bytes in {len(files)} files lost" if on.cut.counted else "files not counted"
    )
    return f"{counted}, {on.canary or 'no canary watched it'}"


class OnDiskSpec(FaultSpec):
    """The settings of a fault of one data disk."""

    on_disk: Annotated[int, Field(ge=1)] | None = None
    """Which data disk of the host is meant, counted from 1, where each has several (`fleet.disks`)."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None or (self.on_disk or 1) <= fleet.disks:
            return why
        has = "one data disk" if fleet.disks == 1 else f"{fleet.disks} data disks"
        return f"{self.fault}: on_disk is {self.on_disk}, and each host has {has}: say more in fleet.disks"


def remount_refusal(fault: str, fleet: FleetSpec) -> str | None:
    """Returns why a single disk of these hosts cannot be mounted anew; None when it can."""
    if fleet.most_disks == 1:
        return (
            f"{fault}: on_disk means one of several data disks, and hosts of the fleet {fleet.kind} have one"
        )
    if (kind := getattr(fleet, "filesystem", "ext4")) != "ext4":
        return f"{fault} with on_disk needs data disks with ext4; they are {kind}"
    return None


class PowerCutSpec(OnDiskSpec):
    """Settings of the fault ``power-cut``."""

    needs = (Ability.POWER, Ability.DISK)

    fault: Literal["power-cut"]
    """The host loses its power and all unsynced bytes, those of all its data disks. Several targets lose it
    at the same moment. With `on_disk` one disk alone loses its power, and the host stays on."""
    disk: Annotated[Disk, Lax] = Disk.KEPT
    """What the host finds at power-on: its own disk; `stale`, an older copy of it; `wiped`, an empty one."""
    age_s: Annotated[float, Field(ge=2, le=600), SECONDS] = 3.0
    """Of `stale`: how old the copy is. It is made when the fault begins, and the power goes so much later."""

    @model_validator(mode="after")
    def _one_kind_of_disk(self) -> Self:
        if self.on_disk is not None and self.disk is not Disk.KEPT:
            raise ValueError(
                f"on_disk cuts the power of one disk, which is kept: leave `disk: {self.disk}` out"
            )
        return self

    def build(self) -> PowerCut | DiskCut:
        return PowerCut(self.disk, self.age_s) if self.on_disk is None else DiskCut(self.on_disk)

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None:
            return why
        if self.on_disk is not None:
            return remount_refusal(self.fault, fleet)
        if self.disk is Disk.KEPT:
            return None
        if fleet.disks > 1:
            what = f"needs hosts with one data disk, and fleet.disks is {fleet.disks}"
            return f"power-cut with disk: {self.disk} {what}"
        if why := fleet.lacks(Ability.SWAPPED_DISK):
            return f"power-cut with disk: {self.disk} needs {Ability.SWAPPED_DISK}: {why}"
        if fleet.combined:
            return (
                f"power-cut with disk: {self.disk}: the brokers are controllers too (combined); {NO_VOTERS}"
            )
        return None

    @property
    def begins_s(self) -> float:
        return self.age_s if self.disk is Disk.STALE else 0.0

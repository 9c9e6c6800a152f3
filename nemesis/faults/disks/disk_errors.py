"""Faults in which the disk answers a running node with errors, or late: its system calls are intercepted by
strace, which answers in the kernel's place; and a file system that goes read-only by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.disks.power import (
    OURS,
    OnDiskSpec,
    lost_by_host,
    remount_disk,
    remount_refusal,
    restart_node,
    text_of,
    touch,
    unwritable_hosts,
)
from wrackline.nemesis.faults.outputs import last, outputs, throughout
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    PowerOff,
    PowerOn,
    ProbeLog,
    Proof,
    Shell,
    StartNode,
    Target,
)
from wrackline.plugins.fields import SECONDS, Lax
from wrackline.systems.spec import SystemSpec

SYNCS = ("fsync", "fdatasync")
EROFS = "Read-only file system"
Call = Literal["fsync", "fdatasync", "pwrite64", "write", "pread64", "read", "ftruncate", "openat", "rename"]


@dataclass(frozen=True, slots=True)
class Intercepted:
    """A fault in a node's system calls while strace is attached to it. On undo strace lets go, and the node
    starts, if it ended; after errors a node with several disks starts anew.

    Proved when a tracer was seen at the process at the beginning and, unless the node has ended, at the end,
    and strace has answered one call at least.
    """

    holds_node: ClassVar[bool] = True

    name: str
    calls: tuple[str, ...]
    how: str
    """What strace does to them, in its own words: ``error=EIO``, ``delay_enter=500000``."""
    every: int = 1
    on_disk: int | None = None
    """Only of files on this data disk; None: on all."""

    def commands(self, context: FaultContext) -> Commands:
        # Not before its end: until then strace keeps some of what it has to say to itself.
        ended = programs.end(context.fault_id, "strace")
        count = f"echo answered $({{ {ended}; }} | grep -c -e INJECTED -e DELAYED)"
        return Commands(
            do=tuple(self._attach(context.fault_id, one) for one in context.targets),
            undo=tuple(
                step
                for one in context.targets
                for step in (
                    Shell(one.host, count),
                    *self._started(one),
                )
            ),
            probe=tuple(_tracer(one) for one in context.targets),
            control=tuple(_tracer(one) for one in context.targets),
        )

    def _started(self, target: Target) -> Sequence[Step]:
        if self.how.startswith("error="):
            return restart_node(target)
        return (StartNode(target.host, target.node_id),)

    def _attach(self, fault_id: str, target: Target) -> Shell:
        pid = target.running(self.name)
        calls, paths = ",".join(self.calls), ""
        if self.on_disk is not None or not set(self.calls) <= set(SYNCS):
            # Else a write to a connection would fail, too.
            disks = " ".join(target.disks if self.on_disk is None else [target.disk(self.on_disk)])
            # A checkpoint is written to a file beside it, which is there for that moment.
            patterns = r"\( -name '*-checkpoint' -printf ' -P %p -P %p.tmp' -o -printf ' -P %p' \)"
            paths = f"$(find {disks} -path '*/{OURS}*' -prune -o -type f {patterns}) " + " ".join(
                f"-P {disk}" for disk in disks.split()
            )
        strace = (
            "command -v strace >/dev/null || { echo 'install strace on this host'; exit 1; }; "
            f"exec strace -f -s 0 -e signal=none -e trace={calls} "
            f"-e inject={calls}:{self.how}:when=1+{self.every} {paths} -p {pid}"
        )
        return Shell(target.host, programs.start(fault_id, "strace", strace, ready="attached"))

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            first, *later = throughout(probe_log, one)
            if not _attached(first) or any(said != _ENDED and not _attached(said) for said in later):
                seen = ", then ".join([first, *later])
                return Proof(False, f"{one.host}: strace was not at process {one.pid} throughout: {seen}")
            if not probe_log.undo:
                texts.append(f"{one.host}: strace is attached to process {one.pid}")
                continue
            said = next((text for text in outputs(probe_log.undo, one) if text.startswith("answered ")), "")
            number = int(said.split()[1]) if len(said.split()) == 2 and said.split()[1].isdigit() else 0
            where = "" if self.on_disk is None else f" (disk {self.on_disk})"
            what = f"{number} calls of {' and '.join(self.calls)} on {one.host}{where} met {self.how}"
            if not number:
                return Proof(False, f"{what}: the node made none, or strace let all pass")
            texts.append(what)
        flaw = self.residue(context, probe_log) if probe_log.undo else ""
        return Proof(not flaw, "; ".join([*texts, *filter(None, [flaw])]))

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        held = [one for one in context.targets if _attached(last(probe_log.control, one))]
        return "; ".join(f"{one.host}: something is still attached to process {one.pid}" for one in held)


_ENDED = "gone"
"""Of a node that its errors have ended: strace ends with it."""


def _attached(tracer: str) -> bool:
    return tracer.startswith("TracerPid:") and not tracer.endswith("\t0")


def _tracer(target: Target) -> Shell:
    return Shell(target.host, f"grep TracerPid /proc/{target.pid}/status 2>/dev/null || echo {_ENDED}")


class SlowFsyncSpec(FaultSpec):
    """Settings of the fault ``slow-fsync``."""

    fault: Literal["slow-fsync"]
    """Every fsync and fdatasync of the node takes longer."""
    delay_s: Annotated[float, Field(ge=0.001, le=30), SECONDS] = 0.5
    """So much longer."""

    def build(self) -> Intercepted:
        return Intercepted("slow-fsync", SYNCS, f"delay_enter={round(self.delay_s * 1e6)}")


class DiskErrorsSpec(OnDiskSpec):
    """Settings of the fault ``disk-errors``."""

    fault: Literal["disk-errors"]
    """System calls of the running node that concern its files fail; the kernel never sees them. It needs
    strace on the host. Calls other than syncs, and with `on_disk` all, fail for files that are there when the
    fault begins, and for checkpoints."""
    calls: Annotated[tuple[Call, ...], Field(min_length=1), Lax] = ("fsync", "fdatasync")
    """Which system calls fail."""
    error: Literal["EIO", "ENOSPC", "EDQUOT", "EROFS"] = "EIO"
    """How they fail."""
    every: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Of the calls of each thread the first fails, and then every so-manieth."""

    def build(self) -> Intercepted:
        return Intercepted("disk-errors", self.calls, f"error={self.error}", self.every, self.on_disk)


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """The file system of the data disk meets an error and goes read-only, as ext4 does with
    ``errors=remount-ro``; what was not written yet is lost. A file system that has done so takes no writes
    before it was mounted anew: on undo the host's power goes off and on, and the node starts. With
    ``on_disk`` the node stops instead, that disk alone is mounted anew, and the node starts.

    Proved when a file cannot be made at the beginning and at the end (read-only), and can be afterwards.
    """

    name: ClassVar[str] = "read-only"
    holds_node: ClassVar[bool] = True

    on_disk: int | None = None

    def commands(self, context: FaultContext) -> Commands:
        probe = tuple(touch(one, self.on_disk) for one in context.targets)
        return Commands(
            do=tuple(_break(one, self.on_disk) for one in context.targets),
            undo=tuple(step for one in context.targets for step in self._writable_again(one)),
            probe=probe,
            control=probe,
        )

    def _writable_again(self, target: Target) -> Sequence[Step]:
        if self.on_disk is not None:
            return remount_disk(target, self.on_disk)
        return PowerOff(target.host), PowerOn(target.host), StartNode(target.host, target.node_id)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        off = {
            done.step.host: done for done in probe_log.undo if isinstance(done.step, PowerOff) and done.cut
        }
        on = {done.step.host: done for done in probe_log.undo if isinstance(done.step, PowerOn) and done.cut}
        lost, texts = lost_by_host(off, on), []
        for one in context.targets:
            said = throughout(probe_log, one)
            if not all(EROFS in text for text in said):
                return Proof(False, f"{one.host}: files could be made: {' | '.join(said)}", lost)
            if probe_log.undo and (flaw := self.residue(context, probe_log)):
                return Proof(False, flaw, lost)
            text = f"{one.host}: no file could be made ({EROFS})"
            if probe_log.undo:
                lost_text = f"; {text_of(on.get(one.host))}" if self.on_disk is None else ""
                text += f", and one can again{lost_text}"
            texts.append(text)
        return Proof(True, "; ".join(texts), lost)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return unwritable_hosts(context, probe_log)


def _break(target: Target, on_disk: int | None) -> Shell:
    """Returns the step that breaks the disk; in a namespace /sys is mounted read-only."""
    disk = target.disk(on_disk)
    return Shell(
        target.host,
        f"kind=$(findmnt -n -o FSTYPE {disk}); "
        '[ "$kind" = ext4 ] || { echo "the data disk is ${kind:-no file system of its own}: only ext4 can be '
        'told to meet an error" >&2; exit 1; }; '
        f"number=$(findmnt -n -o MAJ:MIN {disk} | tr -d ' '); "
        'file=/sys/fs/ext4/$(basename "$(readlink -f "/sys/dev/block/$number")")/trigger_fs_error; '
        f"mount -o remount,errors=remount-ro {disk} && "
        '{ [ -w "$file" ] && was=rw || { was=ro; mount -o remount,rw /sys; }; } && '
        'echo wrackline >"$file"; failed=$?; [ "$was" = rw ] || mount -o remount,ro /sys; exit $failed',
    )


class ReadOnlySpec(OnDiskSpec):
    """Settings of the fault ``read-only``."""

    makes = ReadOnly
    needs = (Ability.ROOT, Ability.DISK, Ability.POWER)

    fault: Literal["read-only"]
    """The file system of the data disk meets an error and becomes read-only. It must be ext4."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None:
            return why
        if (kind := getattr(fleet, "filesystem", "ext4")) != "ext4":
            return (
                f"read-only needs data disks with ext4, which can be told to meet an error; they are {kind}"
            )
        return None if self.on_disk is None else remount_refusal(self.fault, fleet)

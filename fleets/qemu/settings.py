"""The hardware of a fleet's virtual machines, and the arguments of QEMU for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "qemu-system-x86_64"
SYSTEM_MB = 4096
"""Size of a host's own part of its system disk; the file is sparse."""
EMULATION = "tcg,thread=multi,tb-size=192"
"""By default QEMU keeps up to a gigabyte of translated code for each guest."""
CPU = {"tcg": "qemu64", "kvm": "host"}
KERNEL_WORDS = (
    "console=ttyS0",
    "quiet",
    "panic=-1",  # with -no-reboot: a guest that has failed ends
    "lpj=8000000",
    "no_timer_check",
    "tsc=unstable",
    "net.ifnames=0",
    "mitigations=off",
    "random.trust_cpu=on",
)
BOOT_MAC = "02:57:00:00:00:00"
"""Of a guest that is nobody yet."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware of each host."""

    memory_mb: int = 256
    cpus: int = 1
    disk_mb: int = 256

    @property
    def words(self) -> str:
        return f"{self.memory_mb} MB, {self.cpus} processors"


def computer(
    hardware: Hardware, accelerator: str, *, vmlinux: Path, initrd: Path, root: Path
) -> tuple[str, ...]:
    """Returns the arguments that a guest sees from its first instruction on, and on which a snapshot of it
    depends."""
    accel = EMULATION if accelerator == "tcg" else accelerator
    return (
        *("-accel", accel, "-M", "pc", "-cpu", CPU[accelerator]),
        *("-m", str(hardware.memory_mb), "-smp", str(hardware.cpus)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-rtc", "base=utc"),
        *("-kernel", str(vmlinux), "-initrd", str(initrd), "-append", " ".join(KERNEL_WORDS)),
        *("-drive", f"id=d0,file={escaped(root)},format=raw,if=none,readonly=on"),
        *("-device", "virtio-blk-pci,id=root,drive=d0", "-device", "virtio-rng-pci"),
    )


def channels(console: Path, agent: str, qmp: str) -> tuple[str, ...]:
    """Returns the arguments of three channels: the guest's console, the port by which a guest is told who it
    is, and QEMU's own control."""
    return (
        *("-chardev", f"file,id=console,path={escaped(console)},append=on", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=agent,path={agent},server=on,wait=off", "-serial", "chardev:agent"),
        *("-qmp", f"unix:{qmp},server=on,wait=off"),
    )


def own(system: Path, data: Path, link: str) -> tuple[str, ...]:
    """A host's own disks, and its link. What a guest flushes of its data disk is flushed on this machine."""
    return (
        *("-drive", f"id=d1,file={escaped(system)},format=raw,if=none,cache=unsafe"),
        *("-device", "virtio-blk-pci,id=system,drive=d1"),
        *("-drive", f"id=d2,file={escaped(data)},format=raw,if=none,cache=writeback"),
        *("-device", "virtio-blk-pci,id=data,drive=d2"),
        *("-netdev", f"tap,id=n0,ifname={link},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=n0,mac={BOOT_MAC}"),
    )


def escaped(path: Path) -> str:
    """Escapes a path for an option of QEMU, where a comma ends a value and two are one."""
    return str(path).replace(",", ",,")


def command(program: str, *parts: Sequence[str]) -> list[str]:
    return [program, *(word for part in parts for word in part)]

"""A host as libvirt is told of it: a domain in XML (https://libvirt.org/formatdomain.html)."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.fleets.qemu.settings import KERNEL_WORDS, Hardware

Element = ElementTree.Element
DATA_DISK = "vdc"
TRANSLATED_MB = 192
"""As in a ``qemu`` fleet: by default QEMU keeps up to a gigabyte of translated code for each guest."""


@dataclass(frozen=True, slots=True)
class Computer:
    """The properties that all hosts of a fleet have in common."""

    hardware: Hardware
    accelerator: str
    """``kvm`` or ``tcg``."""
    vmlinux: Path
    initrd: Path
    root: Path
    security_models: Sequence[str]
    """Of the hypervisor."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The properties of one host's domain."""

    name: str
    mac: str
    system: Path
    data: Path
    console: Path
    port: Path
    """The Unix socket by which its first process is spoken to."""

    @property
    def tap(self) -> str:
        """Returns the name of the host's link until it is moved to the fleet's network; no other fleet gives
        it."""
        return "wl" + hashlib.sha256(self.name.encode()).hexdigest()[:12]


def xml(computer: Computer, domain: Domain) -> str:
    """Returns the XML of a domain that ends with its first reset and leaves nothing."""
    hardware = computer.hardware
    root = _element(
        "domain",
        {"type": "kvm" if computer.accelerator == "kvm" else "qemu"},
        _element("name", {}, domain.name),
        _element("memory", {"unit": "MiB"}, str(hardware.memory_mb)),
        _element("vcpu", {}, str(hardware.cpus)),
        _element(
            "os",
            {},
            _element("type", {"arch": "x86_64", "machine": "pc"}, "hvm"),
            _element("kernel", {}, str(computer.vmlinux)),
            _element("initrd", {}, str(computer.initrd)),
            _element("cmdline", {}, " ".join(KERNEL_WORDS)),
        ),
        _features(computer.accelerator),
        *([_element("cpu", {"mode": "host-passthrough"})] if computer.accelerator == "kvm" else []),
        _element("clock", {"offset": "utc"}),
        *(_element(f"on_{end}", {}, "destroy") for end in ("poweroff", "reboot", "crash")),
        _devices(computer, domain),
        *(_unconfined(model) for model in computer.security_models),
    )
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _features(accelerator: str) -> Element:
    emulated = [] if accelerator == "kvm" else [_element("tcg", {}, _cache())]
    return _element("features", {}, _element("acpi"), _element("apic"), *emulated)


def _cache() -> Element:
    return _element("tb-cache", {"unit": "MiB"}, str(TRANSLATED_MB))


def _devices(computer: Computer, domain: Domain) -> Element:
    # What the guest flushes of its data disk is flushed on this machine; its system disk dies with the fleet.
    return _element(
        "devices",
        {},
        _disk(computer.root, "vda", "writeback", _element("readonly")),
        _disk(domain.system, "vdb", "unsafe"),
        _disk(domain.data, DATA_DISK, "writeback"),
        _element("controller", {"type": "usb", "model": "none"}),
        _element(
            "interface",
            {"type": "ethernet"},
            _element("mac", {"address": domain.mac}),
            _element("target", {"dev": domain.tap}),
            _element("model", {"type": "virtio"}),
        ),
        _element(
            "serial",
            {"type": "file"},
            _element("source", {"path": str(domain.console), "append": "on"}),
            _element("target", {"port": "0"}),
        ),
        _element(
            "serial",
            {"type": "unix"},
            _element("source", {"mode": "bind", "path": str(domain.port)}),
            _element("target", {"port": "1"}),
        ),
        _element("memballoon", {"model": "none"}),
        _element("rng", {"model": "virtio"}, _element("backend", {"model": "random"}, "/dev/urandom")),
    )


def _disk(file: Path, target: str, cache: str, *more: Element) -> Element:
    return _element(
        "disk",
        {"type": "file", "device": "disk"},
        _element("driver", {"name": "qemu", "type": "raw", "cache": cache}),
        _element("source", {"file": str(file)}),
        _element("target", {"dev": target, "bus": "virtio"}),
        *more,
    )


def _unconfined(model: str) -> Element:
    """The files are root's, in folders that only root may enter, as everything of a fleet."""
    if model == "dac":
        label = _element("label", {}, "+0:+0")
        return _element("seclabel", {"type": "static", "model": model, "relabel": "no"}, label)
    return _element("seclabel", {"type": "none", "model": model})


def _element(tag: str, attributes: dict[str, str] | None = None, *content: Element | str) -> Element:
    made = Element(tag, attributes or {})
    for one in content:
        if isinstance(one, str):
            made.text = one
        else:
            made.append(one)
    return made

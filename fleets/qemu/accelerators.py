"""The choice between KVM and emulation: only a guest that came up by KVM proves that KVM works. `/dev/kvm`
may be there and answer, and a stock kernel stand still behind it for ever (so it is with kvm_pvm: no vmx
there, and no svm)."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import find_tool
from wrackline.fleets.qemu.agent import Agent
from wrackline.fleets.qemu.image.store import Image, Say, Store, write_atomically
from wrackline.fleets.qemu.settings import PROGRAM, Hardware, channels, command, computer
from wrackline.fleets.qemu.snapshots import digest

Accelerator = Literal["auto", "tcg", "kvm"]
DEVICE = Path("/dev/kvm")
PROBE_S = 15.0
"""Emulation takes about as long on a quiet machine; a KVM that takes longer is of no use."""


def chosen(wanted: Accelerator, image: Image, initrd: Path, say: Say) -> str:
    """``kvm`` or ``tcg``. Raises FleetError when KVM was asked for by name and is of no use."""
    if wanted == "tcg":
        return wanted
    why = _no_device() or _flaw(image, initrd, say)
    if why is None:
        return "kvm"
    if wanted == "kvm":
        raise FleetError(f"fleet.accel kvm: {why}; accel: tcg emulates")
    return "tcg"


def _no_device() -> str | None:
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{DEVICE}: {error.strerror}"
    return None


def _flaw(image: Image, initrd: Path, say: Say) -> str | None:
    """Returns why KVM is of no use for this image on this machine; tried once, then remembered."""
    words = computer(Hardware(), "kvm", vmlinux=image.vmlinux, initrd=initrd, root=image.root)
    # Not by what the guest's programs are: KVM fails before any of them, or not at all.
    known = image.folder / f"kvm-{digest([platform.release(), image.digest], 0)}.json"
    store = Store(image.folder.parent)
    with store.locked(f"{image.digest}-kvm", say):
        with contextlib.suppress(OSError, ValueError, KeyError):
            flaw: str | None = json.loads(known.read_text())["flaw"]
            return flaw
        say(f"trying whether KVM brings the image up within {PROBE_S:g} s (once on this machine)")
        flaw = _tried(words)
        write_atomically(known, json.dumps({"flaw": flaw}))
        return flaw


def _tried(words: tuple[str, ...]) -> str | None:
    with tempfile.TemporaryDirectory(prefix="wrackline-kvm-") as folder:
        console = Path(folder, "console")
        arguments = command(find_tool(PROGRAM), words, channels(console, "agent", "qmp"))
        with Path(folder, "errors").open("w+") as errors:
            guest = subprocess.Popen(
                arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )
            began = time.monotonic()
            agent = Agent(Path(folder, "agent"), "kvm", lambda: guest.poll() is None)
            try:
                agent.await_waiting(PROBE_S)
            except FleetError:
                if guest.poll() is None:
                    return f"a guest did not come up by KVM within {PROBE_S:g} s"
                errors.seek(0)
                said = errors.read().strip().splitlines() or [f"exit code {guest.returncode}"]
                return f"QEMU ended after {time.monotonic() - began:.1f} s: {said[-1]}"
            finally:
                agent.close()
                guest.kill()
                guest.wait()
    return None

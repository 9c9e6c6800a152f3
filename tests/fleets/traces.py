"""Everything a fleet can leave on the machine, found without asking the fleet."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path


def traces(name: str, state_root: Path) -> list[str]:
    """Namespaces, processes, loop devices, mounts and files of a fleet."""
    names = [path.name for path in Path("/run/netns").glob(f"wl-{name}*")]
    folder = str(state_root / name)
    found = [f"netns {entry}" for entry in names]
    found += [f"process {line}" for line in _command_lines() if f"wl-{name}" in line]
    found += [f"loop {path}" for path in _loop_images() if path.startswith(folder)]
    found += [
        f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines() if folder in line
    ]
    found += [f"file {path}" for path in state_root.glob(f"{name}*")]
    return found


def machine_network() -> str:
    """The machine's own links, addresses, routes and rules: a fleet has no part in them."""
    commands = ("ip -o link", "ip -o addr", "ip route", "iptables-save")
    outputs = [subprocess.run(c.split(), capture_output=True, text=True, check=True).stdout for c in commands]
    # Counters and times of day change by themselves.
    return "\n".join(
        line for text in outputs for line in text.splitlines() if not line.startswith(("#", ":"))
    )


def _command_lines() -> list[str]:
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines


def _loop_images() -> list[str]:
    images = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            images.append(entry.read_text().strip())
    return images

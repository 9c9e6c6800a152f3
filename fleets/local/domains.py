"""Hosts whose processes libvirt has started, in its own network namespace: found by their names."""

from __future__ import annotations

import contextlib
from pathlib import Path


def processes(domain: str) -> list[int]:
    """Returns the QEMU processes that libvirt started for a domain of this name. Killed, libvirt notices, and
    forgets it."""
    result = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            if b"-name" in words[:-1]:
                name = words[words.index(b"-name") + 1]
                if name.split(b",")[0] == f"guest={domain}".encode():
                    result.append(int(entry.parent.name))
    return result

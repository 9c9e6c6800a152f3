"""Canaries on the hosts of a test."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.canary import REACH_S, Canaries


def sync_just_now(disk: Path) -> None:
    """Syncs a host's data disk, from this machine. When it returns the sync is so young that a canary tells a
    cut at once from one without it: on a busy machine not every sync is."""
    for _ in range(20):
        began = time.monotonic()
        subprocess.run(["sync", "-f", disk], check=True)
        if time.monotonic() - began < REACH_S / 2:
            return
    raise AssertionError(f"no sync of {disk} took less than {REACH_S / 2:g} s")


@contextmanager
def watched(fleet: Fleet) -> Iterator[Canaries]:
    """Canaries that are old enough to prove a cut."""
    canaries = Canaries(fleet, fleet.hosts)
    canaries.start_all()
    assert canaries.wait() == []
    for host in fleet.hosts:
        canaries.wait_witness(host)
    try:
        yield canaries
    finally:
        assert canaries.stop() == []

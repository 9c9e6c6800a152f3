"""Canaries on the hosts of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wrackline.fleets.base import Fleet
from wrackline.fleets.canary import Canaries


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

"""The catalogue of invariants, in the order of docs/invariants.md."""

from __future__ import annotations

from wrackline.simulator.invariants import isr, log, metadata, raft, snapshots
from wrackline.simulator.invariants.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = tuple(
    sorted(
        (
            one
            for family in (isr, log, metadata, raft, snapshots)
            for one in vars(family).values()
            if isinstance(one, Invariant)
        ),
        key=lambda one: one.id,
    )
)

"""The plan of a transaction, drawn before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from wrackline.workloads.pace import Slot
from wrackline.workloads.txn.spec import TxnSpec

_ABORTS, _OFFSETS, _CRASHES, _TOPIC, _PARTITIONS, _HOLDS = 1, 2, 3, 4, 100, 200
"""Salts: each choice of a slot has its own."""


class End(StrEnum):
    """The end that a transaction asks for."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Drawn:
    """``number`` is unique in the run. ``holds_s``: before each write but the first, before offsets are sent,
    and before the end."""

    number: int
    end: End
    topic: str
    """It writes to this one."""
    partitions: tuple[int, ...]
    polls: int
    sends_offsets: bool
    crashes: bool
    """Its producer is gone before it asks for the end."""
    holds_s: tuple[float, ...]


def draw(slot: Slot, spec: TxnSpec, topics: Mapping[str, int]) -> Drawn:
    """The same for the same slot. Partitions are all different, in the order in which they are written."""
    topic = list(topics)[slot.choice(len(topics), salt=_TOPIC)]
    left = list(range(topics[topic]))
    chosen = tuple(
        left.pop(slot.choice(len(left), salt=_PARTITIONS + n)) for n in range(spec.partitions_per_txn)
    )
    holds = [slot.choice(spec.hold_ms + 1, salt=_HOLDS + n) for n in range(spec.partitions_per_txn)]
    holds.append(slot.choice(spec.end_hold_ms + 1, salt=_HOLDS + spec.partitions_per_txn))
    return Drawn(
        number=slot.number,
        end=End.ABORT if _likely(slot, spec.aborts, _ABORTS) else End.COMMIT,
        topic=topic,
        partitions=chosen,
        polls=spec.polls_per_txn,
        sends_offsets=_likely(slot, spec.offsets, _OFFSETS),
        crashes=_likely(slot, spec.crashes, _CRASHES),
        holds_s=tuple(hold / 1e3 for hold in holds),
    )


def _likely(slot: Slot, share: float, salt: int) -> bool:
    return slot.choice(10_000, salt=salt) < share * 10_000

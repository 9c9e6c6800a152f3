"""The five kinds of proof that a log had grown to an offset, and what a range of offsets must know of those
above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from wrackline.checkers.engine.candidates import Candidate, Entry, Proof
from wrackline.checkers.engine.facts import Summary
from wrackline.checkers.inputs.table import NONE, C, Ints

X = TypeVar("X")
Y = TypeVar("Y")
Z = TypeVar("Z")


@dataclass(frozen=True, slots=True)
class OfEach(Generic[X]):
    """A value for each kind of proof. The fields have the names of a candidate's columns."""

    by_ack: X
    by_settled_ack: X
    by_poll: X
    by_final: X
    by_end: X

    def each(self) -> tuple[X, ...]:
        return self.by_ack, self.by_settled_ack, self.by_poll, self.by_final, self.by_end

    def map(self, make: Callable[[X], Y]) -> OfEach[Y]:
        return OfEach(*map(make, self.each()))

    def with_other(self, other: OfEach[Y], make: Callable[[X, Y], Z]) -> OfEach[Z]:
        return OfEach(*map(make, self.each(), other.each()))


def proofs_of(rows: Candidate[C] | Summary[C]) -> OfEach[Proof[C]]:
    return OfEach(rows.by_ack, rows.by_settled_ack, rows.by_poll, rows.by_final, rows.by_end)


def with_proofs(rows: Candidate[Ints], proofs: OfEach[Proof[Ints]]) -> Candidate[Ints]:
    return replace(
        rows,
        by_ack=proofs.by_ack,
        by_settled_ack=proofs.by_settled_ack,
        by_poll=proofs.by_poll,
        by_final=proofs.by_final,
        by_end=proofs.by_end,
    )


NO_PROOF: Proof[int] = Proof.all(NONE)
NO_ENTRY: Entry[int] = Entry.all(NONE)


@dataclass(frozen=True, slots=True)
class KnownAbove:
    """The knowledge of the ranges above one; NONE stands for nothing."""

    proofs: OfEach[Proof[int]] = OfEach(NO_PROOF, NO_PROOF, NO_PROOF, NO_PROOF, NO_PROOF)
    """The earliest ones."""
    low_final: Entry[int] = NO_ENTRY
    """The lowest record of the final read."""
    low_place: int = NONE
    """The lowest place that clients were told of."""
    low_point: int = NONE
    """The lowest offset that was told to be taken, by a place or by an end."""
    low_is_place: int = NONE
    """1: by a place."""


NOTHING_ABOVE = KnownAbove()

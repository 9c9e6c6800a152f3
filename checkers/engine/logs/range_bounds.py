"""Bounds of ranges of offsets: the facts that ranges must know of each other, from one short row per
range.

Seen from a range, all that matters of the higher offsets of its log is: the earliest proofs up there, and the
lowest record, place and point. That is a running minimum over the ranges' summaries, from the top down. Where
it changes what a range would find, which it does in histories with anomalies only, the range is judged again
with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from wrackline.checkers.engine.candidates import Proof, SentBelow
from wrackline.checkers.engine.context import Context, LogInfo
from wrackline.checkers.engine.facts import Summary
from wrackline.checkers.engine.proofs import NOTHING_ABOVE, KnownAbove, proofs_of
from wrackline.checkers.inputs.table import NONE, Ints

NumberedRange = tuple[int, int]
"""(log, number of a range)."""


def bounds(
    summaries: Iterable[Summary[int]], context: Context
) -> tuple[dict[NumberedRange, KnownAbove], set[NumberedRange], set[int]]:
    """Returns (what lies above each range that has others above it, the ranges to be judged again, the
    logs with gaps)."""
    known: dict[NumberedRange, KnownAbove] = {}
    again: set[NumberedRange] = set()
    gaps: set[int] = set()
    above = NOTHING_ABOVE
    log = NONE
    for one in sorted(summaries, key=lambda one: (one.log, -one.part)):
        if one.log != log:
            log, above = one.log, NOTHING_ABOVE
        place = (log, one.part)
        if above != NOTHING_ABOVE:
            known[place] = above
        about = context.logs.get(log, LogInfo())
        gap = _gap(one, above, about)
        if _late(one, above) or gap or _hole(one, above, about) or _jump(one, above):
            again.add(place)
        if gap or one.gaps:
            gaps.add(log)
        above = _with(above, one)
    return known, again, gaps


def row_of(rows: Summary[Ints]) -> Summary[int]:
    """The one row of these, as numbers."""
    return Summary.of_columns([int(column[0]) for column in rows.columns()])


def _late(one: Summary[int], above: KnownAbove) -> bool:
    """A place in the range was claimed by an operation that was invoked after a proof above."""
    known = [proof.index for proof in above.proofs.each() if proof.index != NONE]
    return bool(known) and one.last_claim != NONE and min(known) < one.last_claim


def _hole(one: Summary[int], above: KnownAbove, about: LogInfo) -> bool:
    top = max(one.high_final, one.floor)
    upper = about.end if above.low_final.offset == NONE else above.low_final.offset
    return about.complete and about.contiguous and top != NONE and upper != NONE and upper > top + 1


def _gap(one: Summary[int], above: KnownAbove, about: LogInfo) -> bool:
    top = max(one.high_point, one.floor)
    if about.complete or not (about.idempotent and about.contiguous):
        return False
    return NONE not in (top, above.low_point) and above.low_point - top - above.low_is_place > 0


def _jump(one: Summary[int], above: KnownAbove) -> bool:
    return NONE not in (one.jump_need, above.low_place) and above.low_place < one.jump_need


def _earlier(above: Proof[int], here: Proof[int]) -> Proof[int]:
    sooner = here.index != NONE and (above.index == NONE or here.index < above.index)
    return here if sooner else above


def _known(above: int, here: int) -> int:
    """Returns the lower of two offsets, which is nearer to the ranges below: this range's own where it is
    known."""
    return above if here == NONE else here


def _with(above: KnownAbove, one: Summary[int]) -> KnownAbove:
    """Returns the knowledge of everything above for the range below this one."""
    return KnownAbove(
        proofs=above.proofs.with_other(proofs_of(one), _earlier),
        low_final=above.low_final if one.low_final.offset == NONE else one.low_final,
        low_place=_known(above.low_place, one.low_place),
        low_point=_known(above.low_point, one.low_point),
        low_is_place=above.low_is_place if one.low_point == NONE else one.low_is_place,
    )


def below_of(summaries: Iterable[Summary[int]]) -> dict[NumberedRange, SentBelow[int]]:
    """Returns for each range that has others below it the acknowledged record down there that was sent
    last."""
    result: dict[NumberedRange, SentBelow[int]] = {}
    nothing: SentBelow[int] = SentBelow.all(NONE)
    last, log = nothing, NONE
    for one in sorted(summaries, key=lambda one: (one.log, one.part)):
        if one.log != log:
            last, log = nothing, one.log
        if last != nothing:
            result[log, one.part] = last
        if one.below.invoke_index > last.invoke_index:
            last = one.below
    return result

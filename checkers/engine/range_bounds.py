"""What chunks must know of each other, from one short row per chunk.

Seen from a chunk, all that matters of the higher offsets of its log is: the earliest proofs up there, and the
lowest record, place and point. That is a running minimum over the chunks' summaries, from the top down. Where
it changes what a chunk would find, which it does in histories with anomalies only, the chunk is judged again
with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wrackline.checkers.engine.context import Context, LogInfo
from wrackline.checkers.engine.facts import BELOW
from wrackline.checkers.engine.offset_ranges import KINDS_OF_PROOF
from wrackline.checkers.inputs.arrays import NONE

Carry = dict[str, int]
_PARTS = ("", "_ns", "_offset", "_value")


def carries(
    summaries: Iterable[Mapping[str, int]], context: Context
) -> tuple[dict[tuple[int, int], Carry], set[tuple[int, int]], set[int]]:
    """(what lies above each chunk that has others above it, the chunks to be judged again, the logs with
    gaps)."""
    above: dict[tuple[int, int], Carry] = {}
    again: set[tuple[int, int]] = set()
    gaps: set[int] = set()
    carry: Carry = {}
    log = NONE
    for one in sorted(summaries, key=lambda one: (one["log"], -one["chunk"])):
        if one["log"] != log:
            log, carry = one["log"], {}
        place = (log, one["chunk"])
        if carry:
            above[place] = dict(carry)
        about = context.logs.get(log, LogInfo())
        gap = _gap(one, carry, about)
        if _late(one, carry) or gap or _hole(one, carry, about) or _jump(one, carry):
            again.add(place)
        if gap or one["gaps"]:
            gaps.add(log)
        carry = _onward(one, carry)
    return above, again, gaps


def _known(*values: int) -> int:
    return min((value for value in values if value != NONE), default=NONE)


def _late(one: Mapping[str, int], carry: Carry) -> bool:
    first = _known(*(carry.get(kind, NONE) for kind in KINDS_OF_PROOF))
    return first != NONE and one["last_claim"] != NONE and first < one["last_claim"]


def _hole(one: Mapping[str, int], carry: Carry, about: LogInfo) -> bool:
    top = max(one["high_final"], one["floor"])
    upper = carry.get("final_offset", about.end)
    return about.complete and about.contiguous and top != NONE and upper != NONE and upper > top + 1


def _gap(one: Mapping[str, int], carry: Carry, about: LogInfo) -> bool:
    top = max(one["high_point"], one["floor"])
    if about.complete or not (about.idempotent and about.contiguous) or top == NONE or "point" not in carry:
        return False
    return carry["point"] - top - carry["point_is_place"] > 0


def _jump(one: Mapping[str, int], carry: Carry) -> bool:
    return one["jump_need"] != NONE and carry.get("place", one["jump_need"]) < one["jump_need"]


def _onward(one: Mapping[str, int], carry: Carry) -> Carry:
    """What the chunk below is told."""
    fresh = dict(carry)
    for kind in KINDS_OF_PROOF:
        if one[kind] != NONE and one[kind] < carry.get(kind, one[kind] + 1):
            fresh |= {kind + part: one[kind + part] for part in _PARTS}
    if one["low_final"] != NONE:
        fresh |= {"final_offset": one["low_final"], "final_value": one["low_final_value"]}
        fresh |= {"final_at": one["low_final_at"]}
    if one["low_place"] != NONE:
        fresh["place"] = one["low_place"]
    if one["low_point"] != NONE:
        fresh |= {"point": one["low_point"], "point_is_place": one["low_is_place"]}
    return fresh


def below_of(summaries: Iterable[Mapping[str, int]]) -> dict[tuple[int, int], Carry]:
    """Of each chunk that has others below it: which acknowledged record down there was sent last."""
    found: dict[tuple[int, int], Carry] = {}
    carry: Carry = {}
    log = NONE
    for one in sorted(summaries, key=lambda one: (one["log"], one["chunk"])):
        if one["log"] != log:
            log, carry = one["log"], {}
        if carry:
            found[log, one["chunk"]] = carry
        if one["below"] > carry.get("below", NONE):
            carry = {name: one[name] for name in BELOW}
    return found

"""Changes of a plan: faults later, longer, of another role, left out, done twice, or those of another seed.

A guided search changes the plans of runs that have shown something new
(``wrackline.simulator.search.guidance``). A change has a number: the same seed and numbers give the same
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from wrackline.simulator.faults.kinds import ROLES, Fault

_MOST_CHANGES = 3
_OTHERS = 1 << 31

Plan = list[Fault]
PlanOf = Callable[[str], Plan]
"""Gives the plan of another seed, with the same options."""
_Change = Callable[[Random, Plan, PlanOf], Plan]


def graft(seed: int, numbers: Sequence[int], faults: Plan, plan_of: PlanOf) -> Plan:
    """Returns the plan with one change after another. Faults keep their ids, so they draw what they drew;
    new ones have ids of their own."""
    for number in numbers:
        draw = Random(f"{seed}/graft/{number}")
        for _ in range(draw.randint(1, _MOST_CHANGES)):
            faults = draw.choice(_CHANGES)(draw, faults, plan_of)
    return sorted(faults, key=lambda fault: (fault.at_ms, fault.id))


def _groups(faults: Plan) -> list[int]:
    return sorted({fault.sequence for fault in faults})


def _move(draw: Random, faults: Plan, _: PlanOf) -> Plan:
    """One plan of the whole (a fault, a pair, a sequence) begins earlier or later."""
    if not faults:
        return faults
    group, by_ms = draw.choice(_groups(faults)), draw.gauss(0, 700)
    return [
        replace(one, at_ms=max(0.0, one.at_ms + by_ms)) if one.sequence == group else one for one in faults
    ]


def _stretch(draw: Random, faults: Plan, _: PlanOf) -> Plan:
    if not faults:
        return faults
    number, factor = draw.choice(faults).id, draw.choice((0.25, 0.5, 2.0, 4.0))
    return [replace(one, for_ms=one.for_ms * factor) if one.id == number else one for one in faults]


def _aim(draw: Random, faults: Plan, _: PlanOf) -> Plan:
    if not faults:
        return faults
    number, role = draw.choice(faults).id, draw.choice(ROLES)
    return [replace(one, role=role) if one.id == number else one for one in faults]


def _leave_out(draw: Random, faults: Plan, _: PlanOf) -> Plan:
    if not faults:
        return faults
    group = draw.choice(_groups(faults))
    return [one for one in faults if one.sequence != group]


def _repeat(draw: Random, faults: Plan, _: PlanOf) -> Plan:
    """A plan of the whole is carried out a second time, some time after."""
    if not faults:
        return faults
    group, later_ms = draw.choice(_groups(faults)), draw.uniform(200, 3_000)
    return _with(faults, [one for one in faults if one.sequence == group], later_ms)


def _take_over(draw: Random, faults: Plan, plan_of: PlanOf) -> Plan:
    """From some time on the faults of another seed."""
    other = plan_of(str(draw.randrange(_OTHERS)))
    if not faults or not other:
        return faults
    from_ms = draw.choice(faults).at_ms
    early = {one.sequence for one in faults if one.at_ms < from_ms}
    late = {one.sequence for one in other if one.at_ms >= from_ms}
    kept = [one for one in faults if one.sequence in early]
    return _with(kept, [one for one in other if one.sequence in late], 0.0)


def _with(faults: Plan, more: Plan, later_ms: float) -> Plan:
    """Adds faults under ids and numbers of sequences that are free."""
    number = max((one.id for one in faults), default=-1) + 1
    group = max((one.sequence for one in faults), default=0) + 1
    sequences = {was: group + at for at, was in enumerate(_groups(more))}
    return faults + [
        replace(one, id=number + at, sequence=sequences[one.sequence], at_ms=one.at_ms + later_ms)
        for at, one in enumerate(more)
    ]


_CHANGES: tuple[_Change, ...] = (_move, _move, _stretch, _aim, _leave_out, _repeat, _take_over)

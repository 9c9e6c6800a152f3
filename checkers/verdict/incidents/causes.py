"""Between which changes of leader the cause of an incident lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wrackline.checkers.inputs.cited import Spot, epochs_at
from wrackline.checkers.verdict.incidents.joining import INCONSISTENT_OFFSET, Joined
from wrackline.checkers.verdict.incidents.parts import Part
from wrackline.checkers.verdict.leadership import Leaders, Leadership


def limit(leadership: Leadership, part: Part) -> None:
    """Between which changes of leader the cause of a part lies."""
    leaders = leadership.of(part.place)
    part.after, part.until = 0, len(leaders.changes)
    if part.first_ns is None or part.last_ns is None:
        return
    first, last = (np.array([time], dtype=np.int64) for time in (part.first_ns, part.last_ns))
    if part.anomaly.is_loss:
        part.after = int(leaders.surely_before(last)[0])
        _widen(leadership, leaders, part, part.last_ns)
    elif part.anomaly.right_then_wrong:
        part.after = int(leaders.surely_before(first)[0])
        if not part.at_end:
            part.until = max(part.after, int(leaders.maybe_before(last)[0]))
        if part.after == part.until or part.anomaly.name == INCONSISTENT_OFFSET:
            _widen(leadership, leaders, part, part.first_ns)


def _widen(leadership: Leadership, leaders: Leaders, part: Part, at_ns: int) -> None:
    """Adds the change before as a possible cause: a replaced leader that does not know it yet acknowledges
    what nobody else has, and answers what is over."""
    if part.after and leadership.may_act(leaders.changes[part.after - 1], at_ns):
        part.may_be_deposed = True
        part.after -= 1


def hold_against_epochs(files: Sequence[str], leadership: Leadership, parts: Sequence[Part]) -> None:
    """Leader epochs refute causes: of the record that is at the offset now, and of the lost one, where a
    consumer was given it. Raises OSError or ValueError."""
    asked: dict[Spot, list[Part]] = {}
    for part in parts:
        is_of_a_cut = part.anomaly.is_loss or part.anomaly.name == INCONSISTENT_OFFSET
        if is_of_a_cut and part.place is not None and part.first is not None and part.until > part.after:
            for event in (*part.final, *part.polls):
                asked.setdefault((event, part.place[1], part.first), []).append(part)
    for spot, epoch in (epochs_at(files, list(asked)) if asked else {}).items():
        for part in asked[spot]:
            if spot[0] in part.final:
                _hold_against_final(part, leadership.of(part.place).of_epoch(epoch))
            elif part.anomaly.is_loss and part.may_be_deposed:
                change = leadership.of(part.place).changes[part.after]
                older, newest = change.before.leader_epoch, change.after.leader_epoch
                if older is not None and newest is not None and older < newest:
                    _decide(part, is_of_deposed=epoch < newest)


def _hold_against_final(part: Part, came: int | None) -> None:
    """``came``: the change by which the leader came that gave the offset to what is there now: what was lost
    was lost then, or before."""
    if came is None or not part.after < came <= part.until:
        return
    if part.may_be_deposed:
        _decide(part, is_of_deposed=came == part.after + 1)
    part.until = came


def _decide(part: Part, *, is_of_deposed: bool) -> None:
    part.may_be_deposed = False
    part.after += not is_of_deposed
    if is_of_deposed:
        part.until = part.after + 1


def between(leadership: Leadership, incident: Joined) -> tuple[int, int]:
    """The changes of leader that an incident lies between: those that limit its cause, else those around
    the events that it cites."""
    if any(part.anomaly.is_loss or part.anomaly.right_then_wrong for part in incident.parts):
        return incident.after, incident.until
    leaders = leadership.of(incident.place)
    times = [time for part in incident.parts for time in (part.first_ns, part.last_ns) if time is not None]
    if not times:
        return 0, len(leaders.changes)
    first, last = (np.array([time], dtype=np.int64) for time in (min(times), max(times)))
    after = int(leaders.surely_before(first)[0])
    return after, max(after, int(leaders.maybe_before(last)[0]))

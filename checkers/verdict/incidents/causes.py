"""Between which changes of leader the cause of an incident lies."""

from __future__ import annotations

import numpy as np

from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.parts import Part
from wrackline.checkers.verdict.leadership import Leadership


def limit(leadership: Leadership, part: Part) -> None:
    """Between which changes of leader the cause of a part lies."""
    leaders = leadership.of(part.place)
    part.after, part.until = 0, len(leaders.changes)
    if part.first_ns is None or part.last_ns is None:
        return
    first, last = (np.array([time], dtype=np.int64) for time in (part.first_ns, part.last_ns))
    if part.anomaly.is_loss:
        part.after = int(leaders.surely_before(last)[0])
    elif part.anomaly.right_then_wrong:
        part.after = int(leaders.surely_before(first)[0])
        if not part.at_end:
            part.until = max(part.after, int(leaders.maybe_before(last)[0]))


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

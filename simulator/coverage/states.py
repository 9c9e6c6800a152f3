"""States of the cluster that a run has gone through, and from which to which, for guidance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wrackline.history.model import Event
from wrackline.simulator.coverage.probes import Way


def changes_of_state(events: Iterable[Event]) -> Iterator[Way]:
    """``state isr 3/3 elr 0 led > isr 1/3 elr 0 led``, for each change of a partition in the history."""
    before: dict[tuple[str, int], str] = {}
    for event in events:
        for one in (event.extra or {}).get("partitions", ()) if event.f == "cluster" else ():
            place, state = (one["topic"], one["partition"]), _state(one)
            former = before.get(place)
            if former != state:
                yield f"state {former} > {state}"
                before[place] = state


def _state(one: dict[str, Any]) -> str:
    leader = "led" if one["leader"] >= 0 else "without a leader"
    return f"isr {len(one['isr'])}/{len(one['replicas'])} elr {len(one.get('elr') or ())} {leader}"

"""Mutations of what does not move (wrackline.checkers.anomalies.liveness)."""

from __future__ import annotations

from collections.abc import Callable

from wrackline.history.model import LIVENESS
from wrackline.proving.model.looks import BOUND_LOOKS, PROMISES, stands_still
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.mutation import mutation


def _standstill(promise: str) -> Callable[[Edit], bool]:
    def stop(edit: Edit) -> bool:
        rows = [
            at
            for at, event in enumerate(edit.events)
            if event.f == LIVENESS and (event.extra or {})["promise"] == promise
        ]
        bounds = [extra["bound_s"] for at in rows if "bound_s" in (extra := edit.events[at].extra or {})]
        for at in rows[2 : 4 + BOUND_LOOKS] if bounds else ():
            number = (edit.events[at].extra or {})["look"]
            edit.change(at, extra={"promise": promise, "look": number, **stands_still("stuck", bounds[0])})
        return bool(bounds)

    stop.__name__ = f"stop_{promise}"
    return stop


for _promise in PROMISES:
    mutation(_promise, "something stands still for longer than it may", knobs={"looks": 12})(
        _standstill(_promise)
    )

"""Is there an order of the operations of a history, in keeping with real time, that a model allows?

A search takes time exponential in the number of operations that are open at once, and those of unknown
outcome stay open for ever. Registers, queues and logs whose values are written once have exact checks that
need no search (wrackline.checkers.exact.register, queue, log); this one decides everything else, and says
``UNKNOWN`` when a limit is reached. docs/models.md has what it does and the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from wrackline.checkers.exact.judgement import Answer, End, Judgement, Part
from wrackline.checkers.exact.part import Limits, Rows, decide
from wrackline.checkers.exact.transitions import Transitions
from wrackline.checkers.models.protocol import Model, ModelError, Operation, Outcome

__all__ = ["Answer", "End", "Judgement", "Part", "search"]

DEADLINE_S = 60.0
MEMORY_BYTES = 2 << 30
_MOST_SHARED = 100_000
"""States that parts share in one table; with more it begins anew, for the sake of memory."""
_Members = list[tuple[int, Operation]]
"""Operations with their places in the history."""


def search(
    history: Sequence[Operation],
    model: Model[Any],
    *,
    deadline_s: float = DEADLINE_S,
    memory_bytes: int = MEMORY_BYTES,
    progress: Callable[[str], None] = lambda _line: None,
) -> Judgement:
    """Decide each part of the history.

    ``deadline_s`` and ``memory_bytes`` are for each part; what is not decided within them is UNKNOWN.
    ``progress`` is called with a line now and then. Raises ModelError: the model is wrong, or not for this
    history."""
    limits = Limits(deadline_s, memory_bytes)
    shared = Transitions(model)
    done = []
    for key, members in _parts(history, model).items():
        narrowed = model.narrowed([one for _, one in members])
        if narrowed is not model:
            table = Transitions(narrowed)
        else:
            if len(shared.states) > _MOST_SHARED:
                shared = Transitions(model)
            table = shared
        done.append(decide(_rows(key, members, table), table, limits, progress))
    return Judgement(tuple(done))


def _parts(history: Sequence[Operation], model: Model[Any]) -> dict[Hashable, _Members]:
    """The operations of each part, without those that did not happen or that nobody saw the result of."""
    parts: dict[Hashable, _Members] = {}
    for place, one in enumerate(history):
        if model.operations and one.f not in model.operations:
            raise ModelError(
                f"operation {place} of the history: model {type(model).__name__} has no {one.f!r}, only "
                f"{', '.join(model.operations)}"
            )
        if one.ret is None and one.outcome is Outcome.OK:
            one = replace(one, outcome=Outcome.INFO, result=None)
        if one.ret is not None and one.ret < one.inv:
            raise ModelError(f"operation {place} of the history returns before it is invoked")
        members = parts.setdefault(model.partition(one), [])
        if one.outcome is Outcome.FAIL and (one.ret is None or not model.failed_tell):
            continue
        if one.outcome is Outcome.INFO and model.observes(one):
            continue
        members.append((place, one))
    return parts


def _rows(key: Hashable, members: _Members, table: Transitions) -> Rows:
    known = table.model.unknowns([one for _, one in members])
    places, inv, ret, symbols = [], [], [], []
    for n, (place, one) in enumerate(members):
        if one.outcome is Outcome.INFO:
            happened_by = known.get(n, -1)
            if happened_by is None:
                continue
            ret.append(None if happened_by == -1 else max(happened_by, one.inv))
        else:
            ret.append(one.ret)
        places.append(place)
        inv.append(one.inv)
        symbols.append(table.symbol(one))
    return Rows(key, places, inv, ret, symbols)

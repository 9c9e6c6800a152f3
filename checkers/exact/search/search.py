"""Is there an order of the operations of a history, in keeping with real time, that a model allows?

A search takes time exponential in the number of operations that are open at once, and those of unknown
outcome stay open for ever. Registers, queues and logs whose values are written once have exact checks that
need no search (wrackline.checkers.exact.register, queue, log); this one decides everything else, and says
``UNKNOWN`` when a limit is reached. docs/models.md has what it does and the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from wrackline.checkers.exact.judgement import Answer, End, Judgement, Part
from wrackline.checkers.exact.search.layout import Rows
from wrackline.checkers.exact.search.memory import Meter, free_bytes
from wrackline.checkers.exact.search.part import Limits, PartSearch, Search, load
from wrackline.checkers.exact.search.queue_search import QueueSearch
from wrackline.checkers.exact.search.several import KEPT, Means, Task, decide_all
from wrackline.checkers.exact.search.transitions import Transitions
from wrackline.checkers.models.protocol import Model, ModelError, Operation, Outcome, asked
from wrackline.checkers.models.queues import FifoQueue

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
    processes: int = 1,
    first: bool = False,
    progress: Callable[[str], None] = lambda _line: None,
) -> Judgement:
    """Decide each part of the history.

    ``deadline_s`` is for each part, ``memory_bytes`` for all that the search takes beside the history, in all
    processes at once (and never more than most of what the machine has left); what is not decided within them
    is UNKNOWN. With ``processes`` above 1, what is left after a second is shared among so
    many: they are forked, so do not ask for them in a program whose other threads hold locks. With ``first``
    the search ends once a part is INVALID, and others may stay UNKNOWN. ``progress`` is called with a line
    every few seconds, also from those processes. Raises ModelError: the model is wrong, or not for this
    history."""
    load()
    parts = _parts(history, model)
    at_once = max(1, min(processes, len(parts)))
    memory_bytes = min(memory_bytes, free_bytes())
    meter = Meter()
    most = memory_bytes if len(parts) == 1 else int(memory_bytes * (1 - KEPT))
    limits = Limits(deadline_s, most // at_once, meter)
    tables = _Tables(model, limits.memory_bytes // 4)
    tasks = [
        Task(key, len(members), partial(_search, key, members, tables, limits))
        for key, members in parts.items()
    ]
    means = Means(at_once, memory_bytes, partial(meter.begin, forked=True), progress)
    return Judgement(tuple(decide_all(tasks, first, means)))


class _Tables:
    """Transitions for each part. Parts share them where the model is the same for all."""

    def __init__(self, model: Model[Any], most_bytes: int) -> None:
        """A table that has more begins anew with the next part."""
        self.model, self._most_bytes = model, most_bytes
        self._shared = Transitions(model)

    def table(self, members: _Members) -> Transitions:
        with asked(self.model, "narrowed()"):
            narrowed = self.model.narrowed([one for _, one in members])
        if not isinstance(narrowed, Model):
            raise ModelError(
                f"model {type(self.model).__name__}: narrowed() gives {narrowed!r:.40}, which is no model"
            )
        if narrowed is not self.model:
            return Transitions(narrowed)
        if len(self._shared.states) > _MOST_SHARED or self._shared.bytes > self._most_bytes:
            self._shared = Transitions(self.model)
        return self._shared


def _search(key: Hashable, members: _Members, tables: _Tables, limits: Limits) -> Search:
    if type(tables.model) is FifoQueue:  # a subclass may have other steps
        return QueueSearch(key, members, tables.model, limits)
    table = tables.table(members)
    return PartSearch(_rows(key, members, table), table, limits)


def _parts(history: Sequence[Operation], model: Model[Any]) -> dict[Hashable, _Members]:
    """The operations of each part, without those that did not happen or that nobody saw the result of."""
    parts: dict[Hashable, _Members] = {}
    with asked(model, "partition() or observes()"):
        for place, one in enumerate(history):
            known = _readable(place, one, model)
            members = parts.setdefault(model.partition(known), [])
            if known.outcome is Outcome.FAIL and (known.ret is None or not model.failed_tell):
                continue
            if known.outcome is Outcome.INFO and model.observes(known):
                continue
            members.append((place, known))
    return parts


def _readable(place: int, one: Operation, model: Model[Any]) -> Operation:
    """The operation; of unknown outcome where it never returned. Raises ModelError."""
    if model.operations and one.f not in model.operations:
        has = ", ".join(model.operations)
        raise ModelError(
            f"operation {place} of the history: model {type(model).__name__} has no {one.f!r}, only {has}"
        )
    if one.ret is None:
        return replace(one, outcome=Outcome.INFO, result=None) if one.outcome is Outcome.OK else one
    if one.ret < one.inv:
        raise ModelError(f"operation {place} of the history returns before it is invoked")
    return one


def _rows(key: Hashable, members: _Members, table: Transitions) -> Rows:
    with asked(table.model, "unknowns()"):
        known = table.model.unknowns([one for _, one in members])
    places, inv, ret, deduced, symbols = [], [], [], [], []
    for n, (place, one) in enumerate(members):
        if one.outcome is Outcome.INFO:
            happened_by = known.get(n, -1)
            if happened_by is None:
                continue
            ret.append(None if happened_by == -1 else max(happened_by, one.inv))
        else:
            ret.append(one.ret)
        deduced.append(one.outcome is Outcome.INFO and ret[-1] is not None)
        places.append(place)
        inv.append(one.inv)
        symbols.append(table.symbol(one))
    return Rows(key, places, inv, ret, deduced, symbols)

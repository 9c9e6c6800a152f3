"""The answers of a model as a table of integers: a state and a distinct operation (a *symbol*) to the
state after it. The model is asked about each pair once, when the search first needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from wrackline.checkers.exact.search.kernel import MANY, REFUSE, relearn
from wrackline.checkers.exact.search.native import Longs, Words
from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    ModelError,
    OneOf,
    Operation,
    Outcome,
    asked,
    described,
    frozen,
)

_LARGE = 1 << 16
_SMALL_BYTES = 1 << 16
_PER_STATE = 150
"""Bytes of a state beside the object itself: its places in a list and a dictionary, and its number."""


class Transitions:
    """Grows as it is asked. Not for several threads at once."""

    def __init__(self, model: Model[Any]) -> None:
        """Raises ModelError."""
        self.model = model
        self.states: list[Hashable] = []
        self.symbols: list[Operation] = []
        """An operation of each symbol."""
        self.kinds: list[bool] = []
        """Of each symbol, whether it only looks."""
        self.keys: Longs = np.full(1 << 10, -1, np.int64)
        self.values: Words = np.full(1 << 10, -1, np.int32)
        self.many: Words = np.full((1, 2), -1, np.int32)
        self._rows = 0
        self._known = 0
        self._state_bytes = 0
        self._ids: dict[Hashable, int] = {}
        self._symbol_ids: dict[Hashable, int] = {}
        with asked(model, "initial()"):
            self.state_id(model.initial(), "initial()")

    @property
    def bytes(self) -> int:
        """Memory in use; of states it is an estimate that does not follow what they refer to."""
        return self._state_bytes + self.keys.nbytes + self.values.nbytes + self.many.nbytes

    def state_id(self, state: Hashable, answered: str) -> int:
        """The number of a state. ``answered``: who answered with it. Raises ModelError."""
        try:
            known = self._ids.get(state)
        except TypeError as error:
            raise self._error(f"{answered} gives {state!r:.60}, which is not hashable: {error}") from error
        if known is not None:
            return known
        if state is None:
            raise self._error(f"{answered} gives None; return a state, or REFUSED")
        self._ids[state] = len(self.states)
        self.states.append(state)
        self._state_bytes += sys.getsizeof(state) + _PER_STATE
        return len(self.states) - 1

    def symbol(self, operation: Operation) -> int:
        """The number of an operation: those of the same f, argument, result and outcome share one, and of the
        same process where that matters to the model."""
        answer = operation.result if operation.outcome is Outcome.OK else operation.outcome
        process = operation.process if self.model.names_process else None
        key = (operation.f, frozen(operation.argument), frozen(answer), operation.outcome, process)
        known = self._symbol_ids.get(key)
        if known is None:
            known = self._symbol_ids[key] = len(self.symbols)
            self.symbols.append(operation)
            with asked(self.model, "observes()"):
                self.kinds.append(self.model.observes(operation))
        return known

    def answer(self, needs: Longs, room: Callable[[], int]) -> bool:
        """Asks the model about the pairs in the first column of ``needs`` and puts its answers into the
        second. Tells whether there are new arrays now. Raises ModelError; MemoryError where these are more
        than ``room``."""
        keys, many = self.keys, self.many
        for row, pair in enumerate(needs[:, 0].tolist()):
            needs[row, 1] = self._step(pair >> 32, pair & 0xFFFFFFFF, room)
        self._known += len(needs)
        if 2 * self._known > len(keys):
            size = 2 * len(keys) if len(keys) > _LARGE else 4 * len(keys)
            new_keys, new_values = _array((size,), np.int64, room), _array((size,), np.int32, room)
            relearn(new_keys, new_values, keys, self.values)
            self.keys, self.values = new_keys, new_values
        return keys is not self.keys or many is not self.many

    def _step(self, state_id: int, symbol: int, room: Callable[[], int]) -> int:
        state, operation = self.states[state_id], self.symbols[symbol]
        try:
            after = self.model.step(state, operation)
        except ModelError:
            raise
        except Exception as error:  # a user's model may raise anything
            at = f"step({state!r:.60}, {described(operation):.80})"
            raise self._error(f"{at} raised {type(error).__name__}: {error}") from error
        if after is REFUSED:
            return REFUSE
        if not isinstance(after, OneOf):
            result = self.state_id(after, "step()")
            if result != state_id and self.kinds[symbol]:
                raise self._error(
                    f"{described(operation):.80} only looks, as observes() says, but step() changes "
                    f"{state!r:.60} to {after!r:.60}"
                )
            return result
        ids = list(dict.fromkeys(self.state_id(one, "step()") for one in after))
        if len(ids) < 2:
            return ids[0] if ids else REFUSE
        return MANY - self._row(ids, room)

    def _row(self, ids: list[int], room: Callable[[], int]) -> int:
        rows, width = self.many.shape
        if self._rows == rows or len(ids) > width:
            larger = _array((max(rows, 2 * self._rows), max(width, len(ids))), np.int32, room)
            larger[:rows, :width] = self.many
            self.many = larger
        self.many[self._rows, : len(ids)] = ids
        self._rows += 1
        return self._rows - 1

    def _error(self, what: str) -> ModelError:
        return ModelError(f"model {type(self.model).__name__}: {what}")


def _array(shape: tuple[int, ...], kind: type, room: Callable[[], int]) -> Any:
    """Returns an array full of -1. Raises MemoryError."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if size > _SMALL_BYTES and size > room():
        raise MemoryError
    return np.full(shape, -1, kind)

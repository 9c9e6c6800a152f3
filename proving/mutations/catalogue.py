"""All mutations (wrackline.proving.mutations.mutation), and how one is put into a history."""

from __future__ import annotations

from collections.abc import Iterator

from wrackline.history.model import Event
from wrackline.proving.model.made import Made
from wrackline.proving.mutations import (
    deletions,
    groups,
    integrity,
    liveness,
    loss,
    order,
    share,
    streams,
    transactions,
    visibility,
)
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.mutation import MUTATIONS, Mutation

_MODULES = (
    loss,
    integrity,
    order,
    visibility,
    deletions,
    transactions,
    groups,
    streams,
    share,
    liveness,
)
"""In the order of the anomalies' families."""


def mutations() -> Iterator[Mutation]:
    """All of them, in the order of the anomalies' families."""
    for module in _MODULES:
        yield from (one for one in MUTATIONS.values() if one.apply.__module__ == module.__name__)


def mutate(one: Mutation, made: Made) -> list[Event] | None:
    """The history with the anomaly in it, numbered anew. None where it has no place for it: take the next
    seed."""
    edit = Edit(made)
    return edit.numbered() if one.apply(edit) else None

"""Mutations of what an application makes of its input (wrackline.checkers.anomalies.streams)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from wrackline.history.model import parts_of
from wrackline.proving.model.application import OUTPUT_TOPIC
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.mutation import mutation

APPLICATION = {"application": True}


@mutation("wrong-state", "the last output has the count of the record after it", knobs=APPLICATION)
def count_an_output_twice(edit: Edit) -> bool:
    for at, event in edit.of("drain"):
        if event.topic == OUTPUT_TOPIC and event.records:
            extra = event.extra or {}
            edit.change(at, extra={**extra, "states": [*extra["states"][:-1], extra["states"][-1] + 1]})
            return True
    return False


@mutation("wrong-state", "an application takes two records of a key in the wrong order", knobs=APPLICATION)
def take_a_later_record_first(edit: Edit) -> bool:
    for at, event in edit.of("drain"):
        for first, (one, other) in enumerate(pairwise(event.records if event.topic == OUTPUT_TOPIC else ())):
            if parts_of(one.value)[0] != parts_of(other.value)[0]:
                continue
            extra = event.extra or {}
            states = list(extra["states"])
            states[first : first + 2] = reversed(states[first : first + 2])
            edit.change(at, extra={**extra, "states": states})
            _swap(edit, {one.value: other.value, other.value: one.value})
            return True
    return False


def _swap(edit: Edit, values: Mapping[int, int]) -> None:
    """Whoever sent or read an output has the other one."""
    for at, event in enumerate(edit.events):
        if event.topic == OUTPUT_TOPIC:
            edit.records(at, lambda r: r._replace(value=values.get(r.value, r.value)))

"""The list of parts that the entry points name, and whether each can be used: for `wrackline list parts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wrackline.harness.specification.sections import FLEET, SYSTEM, WORKLOAD
from wrackline.nemesis.spec import FAULTS
from wrackline.plugins.doors import Door
from wrackline.plugins.registry import Entry, Group, PluginError, entries, twins, two_of_one_name

DOORS: Mapping[Group, Door] = {door.group: door for door in (SYSTEM, FLEET, FAULTS, WORKLOAD)}
"""All but that of the checks, which no key of a specification holds."""


@dataclass(frozen=True, slots=True)
class Row:
    kind: str
    """Its group in the singular: ``system``, ``fleet``, ``check``."""
    name: str
    """As a specification names it; of a check, its module's entry point."""
    distribution: str
    version: str
    module: str
    problem: str = ""
    """Why it cannot be used, in one line; empty when it can."""


def listed() -> list[Row]:
    """Every part that was found. Each is imported; one that is broken says so and keeps no other back."""
    return [
        Row(group.singular, one.name, one.distribution, one.version, one.module, _problem(one))
        for group in Group
        for one in entries(group)
    ]


def _problem(entry: Entry) -> str:
    others = twins(entry)
    if others:
        return two_of_one_name([entry, *others])
    try:
        if entry.group in DOORS:
            DOORS[entry.group].check(entry)
        else:
            entry.load()
    except PluginError as error:
        return str(error)
    return ""

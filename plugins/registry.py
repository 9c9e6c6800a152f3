"""The doors: systems, fleets, faults, workloads and checks are found through entry points.

What is built in comes by the same door as what others add. Nothing is imported before it is asked for, so one
part that is broken is in nobody's way but that of whoever names it.

In a checkout our own entry points are read from pyproject.toml: the metadata that was installed with it is a
copy, and older than it after every change. `./wrack setup` makes the copy anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from wrackline.errors import InputError
from wrackline.release import NAME, checkout, version

OURS = NAME
LISTS_ALL = "`wrackline list parts` lists all"


class Group(StrEnum):
    """The groups of entry points, by what they hold."""

    SYSTEMS = "wrackline.systems"
    FLEETS = "wrackline.fleets"
    FAULTS = "wrackline.faults"
    WORKLOADS = "wrackline.workloads"
    CLIENTS = "wrackline.clients"
    CHECKS = "wrackline.checks"
    MODELS = "wrackline.models"

    @property
    def singular(self) -> str:
        """Returns the name of one entry of the group: ``system``."""
        return self.value.removeprefix("wrackline.").removesuffix("s")


class PluginError(InputError):
    """A part cannot be found or used. One line: which, where it comes from, what is wrong, how to mend."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry point, not loaded."""

    group: Group
    name: str
    """As a specification names it."""
    value: str
    """``module:attribute``, or a module."""
    distribution: str
    version: str

    @property
    def module(self) -> str:
        return self.value.partition(":")[0].strip()

    @property
    def package(self) -> str:
        """The one at the top."""
        return self.module.partition(".")[0]

    @property
    def is_ours(self) -> bool:
        return self.distribution == OURS

    @property
    def origin(self) -> str:
        return f"{self.distribution} {self.version}, {self.value}"

    def load(self) -> Any:
        """Import what it names, and where that is a package all its modules. Raises PluginError, whatever
        went wrong in it."""
        try:
            result = EntryPoint(self.name, self.value, self.group).load()
            if isinstance(result, ModuleType):
                for one in iter_modules(getattr(result, "__path__", ()), f"{result.__name__}."):
                    import_module(one.name)
            return result
        except Exception as error:  # what others wrote may raise anything
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            raise self.refused(f"cannot be loaded: {problem}") from error

    def refused(self, why: str) -> PluginError:
        """The error that says what is wrong with it."""
        mend = "run ./wrack setup" if self.is_ours else f"mend or uninstall {self.distribution}"
        return PluginError(f"the {self.group.singular} {self.name!r} ({self.origin}) {why}; {mend}")


@cache
def entries(group: Group) -> tuple[Entry, ...]:
    """All of a group, not loaded: ours first, then the others, each by name. Two may have one name: `named`
    refuses them."""
    result = [one for one in _all() if one.group is group]
    return tuple(sorted(result, key=lambda one: (not one.is_ours, one.name, one.distribution)))


def names(group: Group) -> tuple[str, ...]:
    """Returns the names of a group's entries, each once."""
    return tuple(dict.fromkeys(one.name for one in entries(group)))


def twins(entry: Entry) -> tuple[Entry, ...]:
    """The others of its group with its name."""
    return tuple(one for one in entries(entry.group) if one.name == entry.name and one != entry)


def named(group: Group, name: str) -> Entry:
    """The one entry of this name. Raises PluginError where there is none, or more than one."""
    result = [one for one in entries(group) if one.name == name]
    if not result:
        known = ", ".join(names(group)) or f"none: {OURS} is not installed whole, so install it again"
        raise PluginError(f"there is no {group.singular} {name!r}; there are {known}; {LISTS_ALL}")
    if len(result) > 1:
        raise PluginError(two_of_one_name(result))
    return result[0]


def two_of_one_name(found: Sequence[Entry]) -> str:
    """Returns why entries of one name are refused."""
    first = found[0]
    others = next((one.distribution for one in found if not one.is_ours), first.distribution)
    origins = " and ".join(one.origin for one in found)
    return (
        f"{len(found)} {first.group.singular}s are called {first.name!r}: {origins}; uninstall all but one "
        f"(pip uninstall {others})"
    )


def load(group: Group, name: str) -> Any:
    """Loads the object of the one entry of this name. Raises PluginError."""
    return named(group, name).load()


def load_all(group: Group) -> tuple[tuple[Entry, Any], ...]:
    """Every entry with what it stands for. Raises PluginError for the first that cannot be used."""
    return tuple((named(group, one.name), one.load()) for one in entries(group))


@cache
def _all() -> tuple[Entry, ...]:
    """Returns the entries of every group, by one look at each installed distribution."""
    return tuple(_found())


def _found() -> Iterator[Entry]:
    own = checkout()
    if own is not None:
        declared = own.get("entry-points", {})
        for group in Group:
            for name, value in declared.get(group.value, {}).items():
                yield Entry(group, name, value, OURS, version())
    seen = {OURS} if own is not None else set[str]()
    for each in distributions():
        name = _name(each)
        if name not in seen:  # the first on the path is the one that is imported
            seen.add(name)
            yield from _of(each, name)


def _of(each: Distribution, name: str) -> Iterator[Entry]:
    groups = {group.value: group for group in Group}
    for one in each.entry_points:
        if one.group in groups:
            yield Entry(groups[one.group], one.name, one.value, name, each.version)


def _name(each: Distribution) -> str:
    """Returns a distribution's name; empty for one without a name (a folder that was removed by halves)."""
    return str(each.metadata["Name"] or "").lower().replace("_", "-")


def forget() -> None:
    """Look at the installed distributions anew, once more were installed."""
    entries.cache_clear()
    _all.cache_clear()
    checkout.cache_clear()

"""The results of the invariants on the brokers' traces (the verdict's section ``invariants``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wrackline.harness.report.read.files import mapping, rows, texts, whole
from wrackline.history.wording import plural, seconds


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    id: str
    name: str
    at_ns: int
    where: str
    """The partition; empty: none."""
    node: str
    message: str
    place: str
    """File and line of the trace."""


@dataclass(frozen=True, slots=True)
class Invariants:
    sentence: str
    """How many were asked, after how many steps, and how many were broken."""
    broken: tuple[BrokenInvariant, ...]
    checked: tuple[str, ...]
    undecided: tuple[tuple[str, str], ...]
    """(invariants that have a reason in common, the reason why the traces do not decide them)."""
    partly: tuple[tuple[str, str], ...]
    """(invariant, what of it the traces do not decide)."""
    limits: tuple[str, ...]
    """What else the answer does not rest on."""


def invariants_of(verdict: Mapping[str, Any] | None) -> Invariants | None:
    result = mapping(verdict, "invariants")
    if not result:
        return None
    broken = tuple(
        BrokenInvariant(
            str(row.get("id", "?")),
            str(row.get("name", "?")),
            whole(row, "at_ns") or 0,
            str(row.get("tp") or ""),
            str(row.get("node", "?")),
            str(row.get("message", "")),
            str(row.get("place", "?")),
        )
        for row in rows(result, "broken")
    )
    checked = texts(result, "checked")
    undecided: dict[str, list[str]] = {}
    for name, why in mapping(result, "undecided").items():
        undecided.setdefault(str(why), []).append(str(name))
    return Invariants(
        _sentence(result, checked, broken),
        broken,
        checked,
        tuple((", ".join(names), why) for why, names in undecided.items()),
        tuple((str(name), str(what)) for name, what in mapping(result, "partly").items()),
        _limits(result),
    )


def _sentence(found: Mapping[str, Any], checked: tuple[str, ...], broken: tuple[BrokenInvariant, ...]) -> str:
    if not checked:
        return f"The invariants were not asked: {found.get('why') or 'nobody said why'}."
    asked = f"{plural(len(checked), 'invariant')} were asked after each of"
    steps = f"{plural(whole(found, 'steps') or 0, 'step')} ({plural(whole(found, 'lines') or 0, 'line')})"
    kinds = len({one.id for one in broken})
    result = f"{kinds} of them broken" if kinds else "none was broken"
    return f"{asked} {steps} of all nodes: {result}."


def _limits(found: Mapping[str, Any]) -> tuple[str, ...]:
    until, unordered, unread = (whole(found, name) for name in ("until_ns", "unordered", "unread"))
    limits = []
    if source := str(found.get("source") or ""):
        limits.append(
            f"these brokers write no trace: the steps are what {source} and the replicas' own files tell"
        )
    if until is not None:
        limits.append(
            f"only steps before {seconds(until)} were looked at: from there on lines are missing, or too many"
        )
    if unordered:
        limits.append(f"the cause of {plural(unordered, 'step')} is in no trace: taken by their time")
    if unread:
        limits.append(f"{plural(unread, 'line')} could not be read: cut short")
    return (*limits, *(f"nothing was said of {one}" for one in texts(found, "blind")))

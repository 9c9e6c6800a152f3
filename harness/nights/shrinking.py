"""A violation made smaller: faults, then clients, partitions and time are taken away while it still shows.

Runs on real hosts are no functions of their seed, so a smaller specification counts as one that shows the
violation as soon as one run of it does, and as one that does not after several runs without. The faults go by
delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Raw = dict[str, Any]
"""A specification as YAML has it."""
Shows = Callable[[Raw], bool]
CLIENTS = ("senders", "pollers", "enders", "members", "workers", "producers", "consumers")
"""Numbers of clients, in the workloads that there are."""
FIRST_FAULT_S = 2.0
TAIL_S = 3.0
SHORTEST_S = 5.0


def shrunk(start: Raw, shows: Shows) -> Raw:
    """The smallest specification that this way finds, of which ``shows`` says yes. ``start`` is one."""
    now = _with_fewer_faults(start, shows)
    for smaller in (_with_fewer_clients, _with_fewer_partitions, _sooner, _shorter):
        now = smaller(now, shows)
    return now


def faults_of(raw: Raw) -> list[Raw]:
    """The scheduled faults; none of a nemesis that follows a guided schedule."""
    return list((raw.get("nemesis") or {}).get("schedule") or ())


def _with_fewer_faults(start: Raw, shows: Shows) -> Raw:
    faults = faults_of(start)
    if len(faults) < 2:
        return start

    def fails(kept: Sequence[Raw]) -> bool:
        return shows(_with_faults(start, kept))

    pieces = 2
    while len(faults) >= 2:
        size = -(-len(faults) // pieces)
        parts = [faults[at : at + size] for at in range(0, len(faults), size)]
        rests = [[one for one in faults if one not in part] for part in parts] if len(parts) > 2 else []
        for kept in (*parts, *rests):
            if kept and fails(kept):
                faults, pieces = list(kept), 2 if kept in parts else max(pieces - 1, 2)
                break
        else:
            if pieces >= len(faults):
                break
            pieces = min(len(faults), 2 * pieces)
    return _with_faults(start, faults)


def _with_faults(raw: Raw, faults: Sequence[Raw]) -> Raw:
    made = copy.deepcopy(raw)
    made["nemesis"] = {**made["nemesis"], "schedule": list(faults)}
    return made


def _with_fewer_clients(now: Raw, shows: Shows) -> Raw:
    for name in CLIENTS:
        now = _halved(now, ("workload", name), shows)
    return now


def _with_fewer_partitions(now: Raw, shows: Shows) -> Raw:
    """Of several topics the last ones go first."""
    while len(topics := now.get("topics") or ()) > 1:
        fewer = {**copy.deepcopy(now), "topics": list(topics[:-1])}
        if not shows(fewer):
            break
        now = fewer
    return _halved(now, ("topic", "partitions"), shows)


def _halved(now: Raw, path: tuple[str, str], shows: Shows) -> Raw:
    """One first, then half as many again and again."""
    section, name = path
    count = (now.get(section) or {}).get(name)
    if not isinstance(count, int) or count < 2:
        return now
    for fewer in _fewer(count):
        smaller = _with(now, section, name, fewer)
        if shows(smaller):
            return smaller if fewer == 1 else _halved(smaller, path, shows)
    return now


def _fewer(count: int) -> Iterator[int]:
    yield 1
    if count > 3:
        yield count // 2


def _sooner(now: Raw, shows: Shows) -> Raw:
    """The faults begin as soon as the load is there."""
    faults = faults_of(now)
    if not faults:
        return now
    early = round(min(one["at_s"] for one in faults) - FIRST_FAULT_S, 3)
    if early <= 0:
        return now
    moved = _with_faults(now, [{**one, "at_s": round(one["at_s"] - early, 3)} for one in faults])
    lasts = max(SHORTEST_S, round(moved["workload"]["duration_s"] - early, 3))
    moved = _with(moved, "workload", "duration_s", lasts)
    return moved if shows(moved) else now


def _shorter(now: Raw, shows: Shows) -> Raw:
    """The run ends a moment after the last fault."""
    faults = faults_of(now)
    ends = max((one["at_s"] + one["duration_s"] for one in faults), default=0.0)
    lasts = max(SHORTEST_S, round(ends + TAIL_S, 3))
    if not faults or lasts >= now["workload"]["duration_s"]:
        return now
    shorter = _with(now, "workload", "duration_s", lasts)
    return shorter if shows(shorter) else now


def _with(raw: Raw, section: str, name: str, value: Any) -> Raw:
    made = copy.deepcopy(raw)
    made[section][name] = value
    return made

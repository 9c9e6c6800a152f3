"""Consistency models of transactions, by the names that Elle has for them, and what refutes each."""

from __future__ import annotations

from enum import StrEnum


class Order(StrEnum):
    """The constraint on an order of the transactions, beside what they read."""

    REALTIME = "realtime"
    """Who completed before another was invoked comes first."""
    PROCESS = "process"
    """So do the transactions of one process among themselves."""
    NONE = "none"


STRICT = "strict-serializable"
ORDERS = {
    STRICT: Order.REALTIME,
    "strong-serializable": Order.REALTIME,
    "strong-session-serializable": Order.PROCESS,
    "serializable": Order.NONE,
    "conflict-serializable": Order.NONE,
    "view-serializable": Order.NONE,
}
"""Those that hold if and only if there is an order of all transactions, one after another."""
_OF_SESSIONS = ("strong-session-snapshot-isolation", "strong-snapshot-isolation")
_UNCOMMITTED = ("read-uncommitted", "strong-session-read-uncommitted", "strong-read-uncommitted")
_COMMITTED = (
    "read-committed",
    "strong-read-committed",
    "strong-session-read-committed",
    "cursor-stability",
    "monotonic-view",
    "monotonic-snapshot-read",
    "monotonic-atomic-view",
    "consistent-view",
    "forward-consistent-view",
    "update-serializable",
    "repeatable-read",
)
"""They exclude G1a and G1b; what a transaction sees of its own writes they leave open."""
_ATOMIC = (
    "read-atomic",
    "causal-cerone",
    "update-atomic",
    "parallel-snapshot-isolation",
    "prefix",
    "snapshot-isolation",
    "strong-session-snapshot-isolation",
    "strong-snapshot-isolation",
)
LEVELS = (*ORDERS, *_ATOMIC, *_COMMITTED, *_UNCOMMITTED)

_IMPOSSIBLE = ("garbage-read", "duplicate-elements")
_DIRTY = ("G1a", "G1b", "incompatible-order", "future-read")


def excludes(level: str, anomaly: str) -> bool:
    """Tells whether a history that shows the anomaly at one look does not satisfy the level."""
    if anomaly in _IMPOSSIBLE:
        return True
    if anomaly in _DIRTY:
        return level not in _UNCOMMITTED
    return level in ORDERS or level in _ATOMIC


def weakest(anomaly: str) -> str:
    """The weakest level that excludes what one look shows."""
    if anomaly in _IMPOSSIBLE:
        return "read-uncommitted"
    return "read-committed" if anomaly in _DIRTY else "read-atomic"


def of_cycle(name: str, level: str) -> tuple[str, ...]:
    """The weakest levels that exclude a cycle of this name; only ``level`` where the name does not say."""
    return _OF_CYCLES.get(name, (level,))


_OF_CYCLES = {
    "G0": ("read-uncommitted",),
    "G1c": ("read-committed",),
    "G-single-item": ("consistent-view", "repeatable-read"),
    "G-nonadjacent-item": ("repeatable-read", "snapshot-isolation"),
    "G2-item": ("repeatable-read",),
    "G0-process": ("strong-session-read-uncommitted",),
    "G1c-process": ("strong-session-read-committed",),
    "G-single-item-process": ("strong-session-snapshot-isolation",),
    "G-nonadjacent-item-process": ("strong-session-snapshot-isolation",),
    "G2-item-process": ("strong-session-serializable",),
    "G0-realtime": ("strong-read-uncommitted",),
    "G1c-realtime": ("strong-read-committed",),
    "G-single-item-realtime": ("strong-snapshot-isolation",),
    "G-nonadjacent-item-realtime": ("strong-snapshot-isolation",),
    "G2-item-realtime": (STRICT,),
}


def assumed_of_keys(level: str) -> tuple[str, ...]:
    """Returns the assumptions that Elle's rw-register may make of each key where it is asked about this
    level: no history of the level breaks them.

    A transaction that writes what it read wrote the later version, unless dirty reads are allowed (else: a
    cycle of a wr and a ww edge, G1c). Where a snapshot has all that its session had committed before,
    versions of a key follow the session's order. That they follow real time (``linearizable-keys?``) would be
    true where everybody's commits are seen, but Elle 0.2.6 finds cycles there that are none."""
    result = [] if level in _UNCOMMITTED else ["wfr-keys?"]
    if ORDERS.get(level, Order.NONE) is not Order.NONE or level in _OF_SESSIONS:
        result.append("sequential-keys?")
    return tuple(result)

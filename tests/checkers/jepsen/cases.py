"""Histories by hand for each checker: what it calls, and the nearest neighbours that it does not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.checkers.jepsen.events import done

Event = tuple[Any, ...]
I, OK, FAIL, INFO = "invoke", "ok", "fail", "info"  # noqa: E741
UNDECIDED = ["undecided"]


@dataclass(frozen=True)
class Case:
    checker: str
    name: str
    events: list[Event]
    rules: list[str] = field(default_factory=list)
    """Those that are broken; UNDECIDED where nobody can tell."""
    settings: dict[str, Any] = field(default_factory=dict)


def read(*values: Any, process: int = 9, f: str = "read") -> list[Event]:
    return done(process, f, None, list(values))


def balances(*values: int | None, process: int = 9) -> list[Event]:
    return done(process, "read", None, dict(zip("abcdefgh", values, strict=False)))


def transfer(source: str, target: str, amount: int, process: int = 0) -> list[Event]:
    return done(process, "transfer", {"from": source, "to": target, "amount": amount})


def r(**values: int | None) -> list[list[Any]]:
    return [["r", key, value] for key, value in values.items()]


def reads(process: int, **values: int | None) -> list[Event]:
    return done(process, "read", r(**dict.fromkeys(values)), r(**values))


def writes(key: str, process: int = 0, value: int = 1) -> list[Event]:
    return done(process, "write", [["w", key, value]])


def insert(process: int, pair: list[Any], outcome: str = OK, key: int = 1) -> list[Event]:
    return [(process, I, "insert", [key, pair]), (process, outcome, "insert", [key, pair])]


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"val": val, "sts": sts} for val, sts in values]


BANK = [
    Case("bank-totals", "moved", [*balances(10, 10), *transfer("a", "b", 3), *balances(7, 13)]),
    Case(
        "bank-totals", "made", [*balances(10, 10), *transfer("a", "b", 3), *balances(10, 13)], ["wrong total"]
    ),
    Case("bank-totals", "given total", [*balances(10, 10)], ["wrong total"], {"total": 21}),
    Case("bank-totals", "the given total", [*balances(10, 11)], [], {"total": 21}),
    Case(
        "bank-totals",
        "fractions",
        [*done(1, "read", None, {"a": 0.1, "b": 0.2}), *done(1, "read", None, {"a": 0.0, "b": 0.3})],
    ),
    Case(
        "bank-totals",
        "fractions made",
        [*done(1, "read", None, {"a": 0.5, "b": 1})],
        ["wrong total"],
        {"total": 2.5},
    ),
    Case("bank-totals", "in the red", [*balances(-1, 21)], ["negative balance"]),
    Case("bank-totals", "in the red, allowed", [*balances(-1, 21)], [], {"negative": True}),
    Case("bank-totals", "no balance", [*balances(10, None)], ["no balance"]),
    Case(
        "bank-totals", "a stranger", [*balances(10, 5, 5)], ["unexpected account"], {"accounts": ["a", "b"]}
    ),
    Case("bank-totals", "no stranger", [*balances(10, 5, 5)], [], {"accounts": ["a", "b", "c"]}),
    Case("bank-totals", "never read", [*transfer("a", "b", 3)], UNDECIDED),
    Case(
        "bank-totals",
        "reads without an answer",
        [*balances(10, 10), (2, I, "read", None), (2, INFO, "read", {"a": 1}), (3, I, "read", None)],
    ),
    Case(
        "bank-totals", "a failed read", [*balances(10, 10), (2, I, "read", None), (2, FAIL, "read", {"a": 1})]
    ),
]

SETS = [
    Case("final-set", "all there", [*done(0, "add", 1), *done(0, "add", 2), *read(1, 2)]),
    Case("final-set", "lost", [*done(0, "add", 1), *done(0, "add", 2), *read(1)], ["lost"]),
    Case("final-set", "lost, then found", [*done(0, "add", 1), *read(), *read(1)]),
    Case(
        "final-set", "read at the same time", [(1, I, "read", None), *done(0, "add", 1), (1, OK, "read", [])]
    ),
    Case("final-set", "unknown add", [(0, I, "add", 1), (0, INFO, "add", 1), *read()]),
    Case("final-set", "recovered", [(0, I, "add", 1), (0, INFO, "add", 1), *read(1)]),
    Case("final-set", "add without an end", [(0, I, "add", 1), *read(1)]),
    Case("final-set", "from nowhere", [*done(0, "add", 1), *read(1, 7)], ["unexpected"]),
    Case("final-set", "failed add", [(0, I, "add", 1), (0, FAIL, "add", 1), *read(1)], ["unexpected"]),
    Case(
        "final-set",
        "failed, then added",
        [(0, I, "add", 1), (0, FAIL, "add", 1), *done(0, "add", 1), *read(1)],
    ),
    Case("final-set", "before it was added", [*read(1), *done(0, "add", 1)], ["unexpected"]),
    Case("final-set", "twice", [*done(0, "add", 1), *read(1, 1)], ["duplicate"]),
    Case("final-set", "never read", [*done(0, "add", 1)], UNDECIDED),
    Case(
        "final-set",
        "read without an answer",
        [*done(0, "add", 1), (1, I, "read", None), (1, INFO, "read", [])],
        UNDECIDED,
    ),
    Case("set-full", "all there", [*done(0, "add", 1), *read(1), *done(0, "add", 2), *read(1, 2)]),
    Case("set-full", "lost", [*done(0, "add", 1), *read(1), *read()], ["lost"]),
    Case("set-full", "lost though never shown", [*done(0, "add", 1), *done(0, "add", 2), *read(2)], ["lost"]),
    Case(
        "set-full",
        "lost though never acknowledged",
        [(0, I, "add", 1), (0, INFO, "add", 1), *read(1), *read()],
        ["lost"],
    ),
    Case("set-full", "stale", [*done(0, "add", 1), *read(), *read(1)]),
    Case(
        "set-full",
        "stale, and no set",
        [*done(0, "add", 1), *read(), *read(1)],
        ["stale"],
        {"linearizable": True},
    ),
    Case(
        "set-full",
        "stale beside its add",
        [(0, I, "add", 1), *read(), (0, OK, "add", 1), *read(1)],
        [],
        {"linearizable": True},
    ),
    Case(
        "set-full",
        "two reads at once",
        [
            *done(0, "add", 1),
            (1, I, "read", None),
            (2, I, "read", None),
            (2, OK, "read", []),
            (1, OK, "read", [1]),
        ],
    ),
    Case(
        "set-full",
        "two reads at once, and no set",
        [
            *done(0, "add", 1),
            (1, I, "read", None),
            (2, I, "read", None),
            (2, OK, "read", []),
            (1, OK, "read", [1]),
        ],
        ["stale"],
        {"linearizable": True},
    ),
    Case(
        "set-full",
        "added again",
        [*done(0, "add", 1), *read(1), (0, I, "add", 1), (0, INFO, "add", 1), *read()],
        ["lost"],
    ),
    Case("set-full", "never read", [*done(0, "add", 1)], UNDECIDED),
    Case("set-full", "read only before", [*read(), *done(0, "add", 1)], UNDECIDED),
    Case("set-full", "from nowhere", [*done(0, "add", 1), *read(1, 7)], ["unexpected"]),
    Case("set-full", "failed add", [(0, I, "add", 1), (0, FAIL, "add", 1), *read(1)], ["unexpected"]),
    Case(
        "set-full",
        "shown by the earlier of two reads",
        [
            (1, I, "read", None),
            (2, I, "read", None),
            (2, OK, "read", [1]),
            (0, I, "add", 1),
            (0, OK, "add", 1),
            (1, OK, "read", [1]),
        ],
        ["unexpected"],
    ),
    Case(
        "set-full",
        "one of two twice",
        [*done(0, "add", 1), *done(0, "add", 2), *read(1, 2, 1)],
        ["duplicate"],
    ),
    Case("set-full", "twice", [*done(0, "add", 1), *read(1, 1)], ["duplicate"]),
    Case(
        "set-full",
        "from Jepsen's own tests: missing",
        [
            (0, I, "add", 0),
            (1, I, "add", 1),
            *done(2, "read", None, [1]),
            (0, OK, "add", 0),
            (1, OK, "add", 1),
            *read(0, 1),
            *read(0),
            *read(),
        ],
        ["lost"],
    ),
    Case(
        "set-full",
        "from Jepsen's own tests, which call it: 0 may have come back",
        [
            *done(0, "add", 0),
            (1, I, "add", 1),
            *done(2, "read", None, [1]),
            (1, OK, "add", 1),
            (2, I, "read", None),
            *done(3, "read", None, [1]),
            (2, OK, "read", [0]),
        ],
    ),
]

QUEUES = [
    Case("queue", "in and out", [*done(0, "enqueue", 1), *done(1, "dequeue", None, 1)]),
    Case("queue", "left in", [*done(0, "enqueue", 1)]),
    Case("queue", "at the same time", [(1, I, "dequeue", None), (0, I, "enqueue", 1), (1, OK, "dequeue", 1)]),
    Case("queue", "from nowhere", [*done(1, "dequeue", None, 1)], ["unexpected"]),
    Case(
        "queue", "out before it is in", [*done(1, "dequeue", None, 1), *done(0, "enqueue", 1)], ["unexpected"]
    ),
    Case(
        "queue",
        "failed",
        [(0, I, "enqueue", 1), (0, FAIL, "enqueue", 1), *done(1, "dequeue", None, 1)],
        ["unexpected"],
    ),
    Case("queue", "unknown", [(0, I, "enqueue", 1), (0, INFO, "enqueue", 1), *done(1, "dequeue", None, 1)]),
    Case(
        "queue",
        "twice",
        [*done(0, "enqueue", 1), *done(1, "dequeue", None, 1), *done(2, "dequeue", None, 1)],
        ["duplicate"],
    ),
    Case("queue", "twice in, twice out", [*done(0, "enqueue", 1) * 2, *done(1, "dequeue", None, 1) * 2]),
    Case(
        "queue",
        "twice out before twice in",
        [*done(0, "enqueue", 1), *done(1, "dequeue", None, 1) * 2, *done(0, "enqueue", 1)],
        ["duplicate"],
    ),
    Case(
        "queue",
        "unknown dequeue",
        [
            *done(0, "enqueue", 1),
            (1, I, "dequeue", None),
            (1, INFO, "dequeue", 1),
            *done(2, "dequeue", None, 1),
        ],
    ),
    Case(
        "queue",
        "empty",
        [(0, I, "dequeue", None), (0, OK, "dequeue", None), *done(0, "dequeue", None, "empty")],
    ),
    Case(
        "queue", "drained", [*done(0, "enqueue", 1), *done(0, "enqueue", 2), *done(1, "drain", None, [2, 1])]
    ),
    Case(
        "queue",
        "drained from nowhere",
        [*done(0, "enqueue", 1), *done(1, "drain", None, [2, 1])],
        ["unexpected"],
    ),
    Case("queue", "drained twice", [*done(0, "enqueue", 1), *done(1, "drain", None, [1, 1])], ["duplicate"]),
    Case("total-queue", "in and out", [*done(0, "enqueue", 1), *done(1, "dequeue", None, 1)]),
    Case(
        "total-queue",
        "drained",
        [*done(0, "enqueue", 1), *done(0, "enqueue", 2), *done(1, "drain", None, [2, 1])],
    ),
    Case(
        "total-queue",
        "lost",
        [*done(0, "enqueue", 1), *done(0, "enqueue", 2), *done(1, "drain", None, [2])],
        ["lost"],
    ),
    Case(
        "total-queue",
        "lost before an empty answer",
        [*done(0, "enqueue", 1), *done(1, "dequeue", None, "empty")],
        ["lost"],
    ),
    Case(
        "total-queue",
        "lost before an empty failure",
        [*done(0, "enqueue", 1), (1, I, "dequeue", None), (1, FAIL, "dequeue", None, {"error": "empty"})],
        ["lost"],
    ),
    Case(
        "total-queue",
        "failed for another reason",
        [*done(0, "enqueue", 1), (1, I, "dequeue", None), (1, FAIL, "dequeue", None, {"error": "refused"})],
        UNDECIDED,
    ),
    Case("total-queue", "never drained", [*done(0, "enqueue", 1)], UNDECIDED),
    Case(
        "total-queue", "drained too early", [*done(1, "drain", None, []), *done(0, "enqueue", 1)], UNDECIDED
    ),
    Case(
        "total-queue",
        "drained at the same time",
        [(0, I, "enqueue", 1), (1, I, "drain", None), (0, OK, "enqueue", 1), (1, OK, "drain", [])],
        UNDECIDED,
    ),
    Case(
        "total-queue",
        "perhaps taken",
        [
            *done(0, "enqueue", 1),
            (1, I, "dequeue", None),
            (1, INFO, "dequeue", None),
            *done(2, "drain", None, []),
        ],
    ),
    Case(
        "total-queue",
        "one perhaps taken, two missing",
        [
            *done(0, "enqueue", 1),
            *done(0, "enqueue", 2),
            (1, I, "dequeue", None),
            *done(2, "drain", None, []),
        ],
        ["lost"],
    ),
    Case(
        "total-queue",
        "a drain without an end",
        [
            *done(0, "enqueue", 1),
            *done(0, "enqueue", 2),
            (1, I, "drain", None),
            (1, INFO, "drain", None),
            *done(2, "drain", None, []),
        ],
    ),
    Case(
        "total-queue",
        "unknown enqueue",
        [(0, I, "enqueue", 1), (0, INFO, "enqueue", 1), *done(1, "drain", None, [])],
    ),
    Case(
        "total-queue",
        "recovered",
        [(0, I, "enqueue", 1), (0, INFO, "enqueue", 1), *done(1, "drain", None, [1])],
    ),
    Case("total-queue", "from nowhere", [*done(1, "drain", None, [1])], ["unexpected"]),
    Case(
        "total-queue",
        "failed",
        [(0, I, "enqueue", 1), (0, FAIL, "enqueue", 1), *done(1, "drain", None, [1])],
        ["unexpected"],
    ),
    Case("total-queue", "twice", [*done(0, "enqueue", 1), *done(1, "drain", None, [1, 1])]),
    Case(
        "total-queue",
        "twice, and once was said",
        [*done(0, "enqueue", 1), *done(1, "drain", None, [1, 1])],
        ["duplicate"],
        {"exactly_once": True},
    ),
    Case(
        "total-queue",
        "one of two alike",
        [*done(0, "enqueue", 1) * 2, *done(1, "drain", None, [1])],
        ["lost"],
    ),
]

IDS = [
    Case("unique-ids", "distinct", [*done(0, "generate", None, 1), *done(1, "generate", None, 2)]),
    Case(
        "unique-ids",
        "the same",
        [*done(0, "generate", None, 1), *done(1, "generate", None, 1)],
        ["duplicate"],
    ),
    Case(
        "unique-ids",
        "unknown",
        [*done(0, "generate", None, 1), (1, I, "generate", None), (1, INFO, "generate", 1)],
    ),
    Case(
        "unique-ids",
        "failed",
        [*done(0, "generate", None, 1), (1, I, "generate", None), (1, FAIL, "generate", 1)],
    ),
    Case("unique-ids", "lists", [*done(0, "generate", None, [1, 2]), *done(1, "generate", None, [2, 1])]),
    Case("unique-ids", "the same lists", [*done(0, "generate", None, [1, 2]) * 2], ["duplicate"]),
]

COUNTERS = [
    Case("counter-bounds", "at first", [*done(0, "read", None, 0)]),
    Case("counter-bounds", "not at first", [*done(0, "read", None, 1)], ["out of bounds"]),
    Case("counter-bounds", "from five", [*done(0, "read", None, 5)], [], {"initial": 5}),
    Case("counter-bounds", "added", [*done(0, "add", 2), *done(0, "read", None, 2)]),
    Case("counter-bounds", "not added", [*done(0, "add", 2), *done(0, "read", None, 1)], ["out of bounds"]),
    Case("counter-bounds", "too much", [*done(0, "add", 2), *done(0, "read", None, 3)], ["out of bounds"]),
    Case(
        "counter-bounds",
        "failed",
        [(0, I, "add", 2), (0, FAIL, "add", 2), *done(0, "read", None, 2)],
        ["out of bounds"],
    ),
    Case(
        "counter-bounds",
        "unknown",
        [(0, I, "add", 2), (0, INFO, "add", 2), *done(1, "read", None, 2), *done(1, "read", None, 0)],
    ),
    Case(
        "counter-bounds",
        "at the same time",
        [(0, I, "add", 2), *done(1, "read", None, 2), (0, OK, "add", 2), *done(1, "read", None, 2)],
    ),
    Case("counter-bounds", "added later", [*done(1, "read", None, 2), *done(0, "add", 2)], ["out of bounds"]),
    Case("counter-bounds", "taken away", [*done(0, "add", -2), *done(0, "read", None, -2)]),
    Case(
        "counter-bounds",
        "not taken away",
        [*done(0, "add", -2), *done(0, "read", None, -1)],
        ["out of bounds"],
    ),
    Case(
        "counter-bounds",
        "perhaps taken away",
        [*done(0, "add", 3), (1, I, "add", -2), *done(0, "read", None, 1), *done(0, "read", None, 3)],
    ),
    Case(
        "counter-bounds",
        "too much perhaps taken away",
        [*done(0, "add", 3), (1, I, "add", -2), *done(0, "read", None, 0)],
        ["out of bounds"],
    ),
    Case(
        "counter-bounds",
        "from Jepsen's own tests",
        [
            (0, I, "read", None),
            (1, I, "add", 1),
            (0, OK, "read", 0),
            (0, I, "read", None),
            (1, OK, "add", 1),
            (1, I, "add", 2),
            (0, OK, "read", 3),
            (0, I, "read", None),
            (1, OK, "add", 2),
            (0, OK, "read", 5),
        ],
        ["out of bounds"],
    ),
]

FORKS = [
    Case("long-fork", "one order", [*writes("x"), *reads(1, x=1, y=None), *writes("y"), *reads(2, x=1, y=1)]),
    Case(
        "long-fork",
        "a fork",
        [*writes("x"), *writes("y", 3), *reads(1, x=1, y=None), *reads(2, x=None, y=1)],
        ["long fork"],
    ),
    Case(
        "long-fork",
        "a fork of unknown writes",
        [
            (0, I, "write", [["w", "x", 1]]),
            (3, I, "write", [["w", "y", 1]]),
            *reads(1, x=1, y=None),
            *reads(2, x=None, y=1),
        ],
        ["long fork"],
    ),
    Case(
        "long-fork",
        "the same twice",
        [*writes("x"), *writes("y", 3), *reads(1, x=1, y=None), *reads(2, x=1, y=None)],
    ),
    Case(
        "long-fork",
        "three keys in a circle",
        [
            *[event for key in "xyz" for event in writes(key)],
            *reads(1, x=1, y=None),
            *reads(1, y=1, z=None),
            *reads(1, z=1, x=None),
        ],
        ["long fork"],
    ),
    Case(
        "long-fork",
        "three keys in a line",
        [
            *[event for key in "xyz" for event in writes(key)],
            *reads(1, x=1, y=None),
            *reads(1, y=1, z=None),
            *reads(1, z=None, x=1),
        ],
    ),
    Case(
        "long-fork", "written twice", [*writes("x"), *writes("x", value=2), *reads(1, x=2, y=None)], UNDECIDED
    ),
    Case(
        "long-fork",
        "written again after a failure",
        [
            (0, I, "write", [["w", "x", 1]]),
            (0, FAIL, "write", [["w", "x", 1]]),
            *writes("x"),
            *reads(1, x=1, y=None),
        ],
    ),
    Case("long-fork", "from nowhere", [*writes("x"), *reads(1, x=2, y=None)], ["unexpected"]),
    Case(
        "long-fork",
        "from a failed write",
        [(0, I, "write", [["w", "x", 1]]), (0, FAIL, "write", [["w", "x", 1]]), *reads(1, x=1)],
        ["unexpected"],
    ),
    Case("long-fork", "from a later write", [*reads(1, x=1), *writes("x")], ["unexpected"]),
    Case(
        "long-fork",
        "two values at once",
        [*writes("x"), *done(1, "read", r(x=None), [["r", "x", None], ["r", "x", 1]])],
        ["two values"],
    ),
    Case(
        "long-fork",
        "as :txn",
        [
            *done(0, "txn", [["w", "x", 1]]),
            *done(3, "txn", [["w", "y", 1]]),
            *done(1, "txn", r(x=None, y=None), r(x=1, y=None)),
            *done(1, "txn", r(x=None, y=None), r(x=None, y=1)),
        ],
        ["long fork"],
    ),
]

CAUSAL = [
    Case(
        "causal",
        "one after another",
        [
            *done(0, "read-init", None, 0),
            *done(0, "write", 1),
            *done(0, "read", None, 1),
            *done(0, "write", 2),
            *done(0, "read", None, 2),
        ],
    ),
    Case(
        "causal",
        "stale",
        [*done(0, "write", 1), *done(0, "read", None, 1), *done(0, "write", 2), *done(0, "read", None, 1)],
        ["wrong read"],
    ),
    Case("causal", "not even one", [*done(0, "write", 1), *done(0, "read", None, 0)], ["wrong read"]),
    Case(
        "causal", "nil", [*done(0, "write", 1), (0, I, "read", None), (0, OK, "read", None)], ["wrong read"]
    ),
    Case(
        "causal",
        "nil at first",
        [(0, I, "read-init", None), (0, OK, "read-init", None), *done(0, "write", 1)],
    ),
    Case("causal", "something at first", [*done(0, "read-init", None, 5)], ["wrong read"]),
    Case("causal", "five at first", [*done(0, "read-init", None, 5)], [], {"initial": 5}),
    Case(
        "causal",
        "unknown write, seen",
        [(0, I, "write", 1), (0, INFO, "write", 1), *done(1, "read", None, 1)],
    ),
    Case(
        "causal",
        "unknown write, not seen",
        [(0, I, "write", 1), (0, INFO, "write", 1), *done(1, "read", None, 0)],
    ),
    Case(
        "causal",
        "unknown write, seen late",
        [(0, I, "write", 1), (0, INFO, "write", 1), *done(1, "write", 2), *done(1, "read", None, 1)],
    ),
    Case(
        "causal",
        "unknown write, seen and gone",
        [(0, I, "write", 1), (0, INFO, "write", 1), *done(1, "read", None, 1), *done(1, "read", None, 0)],
        ["wrong read"],
    ),
    Case(
        "causal",
        "failed write",
        [(0, I, "write", 1), (0, FAIL, "write", 1), *done(0, "read", None, 1)],
        ["wrong read"],
    ),
    Case(
        "causal",
        "failed write, not seen",
        [(0, I, "write", 1), (0, FAIL, "write", 1), *done(0, "read", None, 0)],
    ),
    Case(
        "causal",
        "links",
        [
            (0, I, "write", 1),
            (0, OK, "write", 1, {"link": "init", "position": 7}),
            (0, I, "read", None),
            (0, OK, "read", 1, {"link": 7, "position": 8}),
        ],
    ),
    Case(
        "causal",
        "a broken link",
        [
            (0, I, "write", 1),
            (0, OK, "write", 1, {"link": "init", "position": 7}),
            (0, I, "read", None),
            (0, OK, "read", 1, {"link": 6, "position": 8}),
        ],
        ["broken link"],
    ),
    Case(
        "causal",
        "a link past what failed",
        [
            (0, I, "write", 1),
            (0, OK, "write", 1, {"link": "init", "position": 7}),
            (0, I, "write", 2),
            (0, FAIL, "write", 2, {"position": 8}),
            (0, I, "read", None),
            (0, OK, "read", 1, {"link": 7, "position": 9}),
        ],
    ),
    Case("causal-reverse", "in order", [*done(0, "write", 1), *done(0, "write", 2), *read(1), *read(1, 2)]),
    Case(
        "causal-reverse",
        "reversed",
        [*done(0, "write", 1), *done(0, "write", 2), *read(2)],
        ["causal reverse"],
    ),
    Case(
        "causal-reverse",
        "at the same time",
        [
            (0, I, "write", 1),
            (1, I, "write", 2),
            (0, OK, "write", 1),
            (1, OK, "write", 2),
            *read(2),
            *read(1),
        ],
    ),
    Case(
        "causal-reverse",
        "first unknown",
        [(0, I, "write", 1), (0, INFO, "write", 1), *done(1, "write", 2), *read(2)],
    ),
    Case(
        "causal-reverse",
        "second unknown",
        [*done(0, "write", 1), (1, I, "write", 2), (1, INFO, "write", 2), *read(2)],
        ["causal reverse"],
    ),
    Case(
        "causal-reverse",
        "first failed",
        [(0, I, "write", 1), (0, FAIL, "write", 1), *done(1, "write", 2), *read(2)],
    ),
    Case("causal-reverse", "stale", [*done(0, "write", 1), *done(0, "write", 2), *read(1), *read()]),
    Case(
        "causal-reverse",
        "written twice",
        [*done(0, "write", 2), *done(0, "write", 1), *done(0, "write", 2), *read(2)],
    ),
    Case("causal-reverse", "from nowhere", [*done(0, "write", 1), *read(1, 3)], ["unexpected"]),
]

SEQUENTIAL = [
    Case("sequential", "all", [*done(0, "write", 5), *done(1, "read", 5, [5, ["5_1", "5_0"]])]),
    Case("sequential", "none", [*done(0, "write", 5), *done(1, "read", 5, [5, [None, None]])]),
    Case("sequential", "the first alone", [(0, I, "write", 5), *done(1, "read", 5, [5, [None, "5_0"]])]),
    Case(
        "sequential",
        "the last alone",
        [(0, I, "write", 5), *done(1, "read", 5, [5, ["5_1", None]])],
        ["out of order"],
    ),
    Case(
        "sequential",
        "a hole",
        [*done(0, "write", 5), *done(1, "read", 5, [5, [None, "5_1", None, "5_0"]])],
        ["out of order"],
    ),
    Case(
        "sequential",
        "in part, of a failed write",
        [(0, I, "write", 5), (0, FAIL, "write", 5), *done(1, "read", 5, [5, [None, "5_0"]])],
    ),
    Case(
        "sequential",
        "from nowhere",
        [*done(0, "write", 5), *done(1, "read", 6, [6, [None, "6_0"]])],
        ["unexpected"],
    ),
    Case(
        "sequential",
        "from a later write",
        [*done(1, "read", 6, [6, ["6_1", "6_0"]]), *done(0, "write", 6)],
        ["unexpected"],
    ),
    Case("sequential", "unknown read", [*done(0, "write", 5), (1, I, "read", 5), (1, INFO, "read", 5)]),
]

MONOTONIC = [
    Case(
        "monotonic",
        "rising",
        [*done(0, "add", 0, {"val": 0, "sts": "10"}), *read(*rows((-1, "0"), (0, "10"), (1, "11")))],
    ),
    Case("monotonic", "falling", [*read(*rows((1, "10"), (0, "11")))], ["values out of order"]),
    Case(
        "monotonic",
        "falling far away",
        [*read(*rows((3, "10"), (4, "11"), (2, "12")))],
        ["values out of order"],
    ),
    Case("monotonic", "rising past nine", [*read(*rows((0, "9"), (1, "10")))]),
    Case("monotonic", "one time", [*read(*rows((1, "10"), (0, "10"), (2, "11")))]),
    Case(
        "monotonic",
        "one time, then less",
        [*read(*rows((1, "10"), (3, "10"), (2, "11")))],
        ["values out of order"],
    ),
    Case("monotonic", "not sorted", [*read(*rows((1, "11"), (0, "10")))], ["times out of order"]),
    Case("monotonic", "twice", [*read(*rows((0, "10"), (0, "11")))], ["duplicate"]),
    Case(
        "monotonic", "lost", [*done(0, "add", 0, {"val": 0, "sts": "10"}), *read(*rows((1, "11")))], ["lost"]
    ),
    Case(
        "monotonic",
        "lost for a while",
        [*done(0, "add", 0, {"val": 0, "sts": "10"}), *read(), *read(*rows((0, "10")))],
    ),
    Case(
        "monotonic",
        "added at the same time",
        [(1, I, "read", None), *done(0, "add", 0, {"val": 0, "sts": "10"}), (1, OK, "read", [])],
    ),
    Case(
        "monotonic",
        "revived",
        [(0, I, "add", {"val": 0}), (0, FAIL, "add", {"val": 0}), *read(*rows((0, "10")))],
        ["revived"],
    ),
    Case(
        "monotonic",
        "recovered",
        [(0, I, "add", {"val": 0}), (0, INFO, "add", {"val": 0}), *read(*rows((0, "10")))],
    ),
    Case(
        "monotonic",
        "a failed add, and its value by another",
        [(0, I, "add", 0), (0, FAIL, "add", 0), *read(*rows((0, "10")))],
    ),
    Case(
        "monotonic",
        "a failed add of a value that another added",
        [
            (0, I, "add", {"val": 0}),
            (0, FAIL, "add", {"val": 0}),
            *done(1, "add", {"val": 0}),
            *read(*rows((0, "10"))),
        ],
    ),
    Case("monotonic", "an add that tells nothing", [*done(0, "add"), *read(*rows((0, "10")))]),
    Case("monotonic", "fractions of times", [*read(*rows((0, "10.5"), (1, 10.75)))]),
    Case(
        "monotonic",
        "fractions of times, falling",
        [*read(*rows((1, "10.5"), (0, 10.75)))],
        ["values out of order"],
    ),
    Case("monotonic", "never read", [*done(0, "add", 0, {"val": 0, "sts": "10"})], UNDECIDED),
    Case("monotonic", "values alone", [*read(1, 2, 3)]),
    Case("monotonic", "values alone, falling", [*read(1, 3, 2)], ["values out of order"]),
]

ADYA = [
    Case("adya", "one", [*insert(0, [1, None]), *insert(1, [None, 2], FAIL)]),
    Case("adya", "both", [*insert(0, [1, None]), *insert(1, [None, 2])], ["G2"]),
    Case("adya", "one unknown", [*insert(0, [1, None]), *insert(1, [None, 2], INFO)]),
    Case("adya", "two keys", [*insert(0, [1, None]), *insert(1, [None, 2], key=2)]),
    Case("adya", "without a key", [*done(0, "insert", [1, None]), *done(1, "insert", [None, 2])], ["G2"]),
]

CASES = [*BANK, *SETS, *QUEUES, *IDS, *COUNTERS, *FORKS, *CAUSAL, *SEQUENTIAL, *MONOTONIC, *ADYA]

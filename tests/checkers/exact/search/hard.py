"""For each model a history that no search decides: all operations but the last are open at once, in any
order, and the last one shows what none of these orders leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wrackline.checkers.models import Operation

Move = tuple[str, Any, Any]
"""f, argument, result."""
OPEN = 60
"""Operations that are open at once."""
LAST = 1_000


def hard(model: str, *, key: Any = None, open_ones: int = OPEN) -> list[Operation]:
    """The history. ``key``: of a model whose keys are parts."""
    moves = _MOVES[model](open_ones, key)
    found = [
        Operation(n, f, argument, result, n, LAST + n) for n, (f, argument, result) in enumerate(moves[:-1])
    ]
    f, argument, result = moves[-1]
    return [*found, Operation(len(found), f, argument, result, 3 * LAST, 3 * LAST + 1)]


def _twice(n: int, _key: Any) -> list[Move]:
    return [*(("write", at // 2, at // 2) for at in range(n)), ("read", None, "never")]


def _strict(n: int, _key: Any) -> list[Move]:
    return [*_twice(n, None)[:-1], ("cas", ["never", 0], ["never", 0])]


def _txns(n: int, _key: Any) -> list[Move]:
    writes = [[["w", f"k{at}", at]] for at in range(n)]
    shown = [["r", f"k{at}", at] for at in range(n)]
    asked = [["r", f"k{at}", None] for at in range(n)]
    return [
        *(("txn", one, one) for one in writes),
        ("txn", [*asked, ["r", "x", None]], [*shown, ["r", "x", 7]]),
    ]


def _adds(n: int, _key: Any) -> list[Move]:
    return [*(("add", 1 << at, 1 << at) for at in range(n)), ("read", None, 1 << n)]


def _elements(n: int, _key: Any) -> list[Move]:
    return [*(("add", at, at) for at in range(n)), ("read", None, [*range(n), n])]


def _puts(n: int, key: Any) -> list[Move]:
    puts = [[key, at // 2] for at in range(n)]
    return [*(("put", one, one) for one in puts), ("get", [key, None], [key, "never"])]


def _transfers(n: int, _key: Any) -> list[Move]:
    moves = [{"from": f"a{at}", "to": f"b{at}", "amount": 1} for at in range(n)]
    return [*(("transfer", one, one) for one in moves), ("read", None, {"a0": 7})]


def _records(n: int, _key: Any) -> list[Move]:
    """Of each value one record was shown: the other may be anywhere between these."""
    appends: list[Move] = [("append", at // 2, [None, at // 2]) for at in range(n)]
    shown: Move = ("read", None, [[2 * at, at] for at in range(n // 2)])
    return [*appends, shown, ("end", None, 2 * n)]


def _pairs(n: int, _key: Any) -> list[Move]:
    """Two more go in than come out, and nothing is said to be left."""
    puts: list[Move] = [("enqueue", at // 2, at // 2) for at in range(n // 2 + 2)]
    gets: list[Move] = [("dequeue", None, at // 2) for at in range(n // 2)]
    return [*puts, *gets, ("dequeue", None, "empty")]


def _bag(n: int, _key: Any) -> list[Move]:
    return [*(("enqueue", at, at) for at in range(n)), ("dequeue", None, "never")]


_MOVES: Mapping[str, Callable[[int, Any], list[Move]]] = {
    "register": _twice,
    "cas-register": _twice,
    "strict-cas-register": _strict,
    "multi-register": _txns,
    "counter": _adds,
    "set": _elements,
    "kv": _puts,
    "bank": _transfers,
    "log": _records,
    "fifo-queue": _pairs,
    "unordered-queue": _bag,
}
HARD = tuple(_MOVES)
"""The models."""
LOCKS = (
    "mutex",
    "owner-aware-mutex",
    "fenced-mutex",
    "reentrant-mutex",
    "reentrant-fenced-mutex",
    "semaphore",
    "share",
)
"""None of these is hard: few hold one at a time, and who waits has no place before they give it up."""

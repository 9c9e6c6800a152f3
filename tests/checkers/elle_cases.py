"""Histories of transactions, each with one thing wrong or nothing: what Elle says of them is in
golden/elle.jsonl.

A transaction is [process, outcome, inv, ret, [[act, key, value], ...]].
"""

from __future__ import annotations

from typing import Any

CASES: list[dict[str, Any]] = []


def case(name: str, model: str, *txns: list[Any]) -> None:
    CASES.append({"name": name, "model": model, "txns": list(txns)})


def ok(process: int, inv: int, *mops: list[Any], ret: int | None = None) -> list[Any]:
    return [process, "ok", inv, inv + 1 if ret is None else ret, list(mops)]


LIST, REGISTERS = "list-append", "rw-register"
X, Y = 1, 2

case(
    "good: one after another",
    LIST,
    ok(0, 0, ["append", X, 1]),
    ok(1, 2, ["append", X, 2], ["r", X, [1, 2]]),
    ok(0, 4, ["r", X, [1, 2]]),
)
case(
    "good: an append of unknown outcome is seen",
    LIST,
    ok(0, 0, ["append", X, 1]),
    [1, "info", 1, None, [["append", X, 2]]],
    ok(0, 4, ["r", X, [1, 2]]),
)
case(
    "G1a: an aborted append is read",
    LIST,
    [0, "fail", 0, 1, [["append", X, 1]]],
    ok(1, 2, ["r", X, [1]]),
)
case(
    "G1b: the middle of a transaction is read",
    LIST,
    ok(0, 0, ["append", X, 1], ["append", X, 2]),
    ok(1, 0, ["r", X, [1]], ret=3),
)
case(
    "G0: two writers in two orders",
    LIST,
    ok(0, 0, ["append", X, 1], ["append", Y, 1], ret=9),
    ok(1, 0, ["append", X, 2], ["append", Y, 2], ret=9),
    ok(2, 10, ["r", X, [1, 2]], ["r", Y, [2, 1]]),
)
case(
    "G1c: each reads what the other wrote",
    LIST,
    ok(0, 0, ["append", X, 1], ["r", Y, [1]], ret=9),
    ok(1, 0, ["append", Y, 1], ["r", X, [1]], ret=9),
)
case(
    "G-single: a read misses a write it should have seen",
    LIST,
    ok(0, 0, ["append", X, 1], ["append", Y, 1], ret=9),
    ok(1, 0, ["r", X, [1]], ["r", Y, []], ret=9),
    ok(2, 10, ["r", X, [1]], ["r", Y, [1]]),
)
case(
    "G2: write skew",
    LIST,
    ok(0, 0, ["r", X, []], ["append", Y, 1], ret=9),
    ok(1, 0, ["r", Y, []], ["append", X, 1], ret=9),
    ok(2, 10, ["r", X, [1]], ["r", Y, [1]]),
)
case(
    "realtime: a stale read",
    LIST,
    ok(0, 0, ["append", X, 1]),
    ok(1, 2, ["r", X, []]),
    ok(2, 4, ["r", X, [1]]),
)
case(
    "incompatible orders",
    LIST,
    ok(0, 0, ["append", X, 1], ret=9),
    ok(1, 0, ["append", X, 2], ret=9),
    ok(2, 10, ["r", X, [1, 2]]),
    ok(3, 10, ["r", X, [2, 1]]),
)
case(
    "good: registers one after another",
    REGISTERS,
    ok(0, 0, ["w", X, 1]),
    ok(1, 2, ["r", X, 1], ["w", X, 2]),
    ok(0, 4, ["r", X, 2]),
)
case("G1a of registers", REGISTERS, [0, "fail", 0, 1, [["w", X, 1]]], ok(1, 2, ["r", X, 1]))
case(
    "G1c of registers",
    REGISTERS,
    ok(0, 0, ["w", X, 1], ["r", Y, 1], ret=9),
    ok(1, 0, ["w", Y, 1], ["r", X, 1], ret=9),
)
case(
    "internal: a transaction forgets its own write",
    REGISTERS,
    ok(0, 0, ["w", X, 1], ["r", X, 2]),
    ok(1, 0, ["w", X, 2]),
)

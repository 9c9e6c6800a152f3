"""Recorded verdicts: small histories made by ``golden/ask.py``, and what Knossos, Porcupine and Elle said of them.

One JSON object a line. ``ops``: [f, value, inv, ret]; value is null where it is not known, "empty" for an empty queue,
[old, new] for a cas, a list for the elements of a set; ret is null where the operation never returned. ``txns`` (Elle):
[process, outcome, inv, ret, [[act, key, value], ...]].
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from checkers.columns import NEVER, NOTHING, Columns, columns
from checkers.jvm.calls import (
    EMPTY,
    NIL,
    SHAPES,
    Act,
    Calls,
    Model,
    Outcome,
    Transactions,
    TransactionsBuilder,
)

GOLDEN = Path(__file__).parent / "golden"
LINEARIZABLE = GOLDEN / "linearizable.jsonl"
ELLE = GOLDEN / "elle.jsonl"
INITIAL = -1
"""Of registers: a value, since a read of nil is nobody's proof."""
Golden = dict[str, Any]
_ACTS = {"append": Act.APPEND, "w": Act.WRITE, "r": Act.READ}
_OUTCOMES = {"ok": Outcome.OK, "fail": Outcome.FAIL, "info": Outcome.INFO}


def load(path: Path) -> list[Golden]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def calls(golden: Golden) -> Calls:
    model = Model(golden["model"])
    names = list(SHAPES[model])
    flat: list[int] = []
    rows = []
    for f, value, inv, ret in golden["ops"]:
        match value:
            case None:
                a, b = NIL, NIL
            case "empty":
                a, b = EMPTY, NIL
            case [old, new] if f == "cas":
                a, b = old, new
            case list():
                a, b = len(flat), len(flat) + len(value)
                flat += value
            case _:
                a, b = value, NIL
        rows.append((names.index(f), a, b, inv, NEVER if ret is None else ret))
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    initial = INITIAL if model in (Model.REGISTER, Model.CAS_REGISTER) else None
    f, a, b, inv, ret = (np.ascontiguousarray(column) for column in table.T)
    return Calls(model, f, a, b, inv, ret, np.array(flat, dtype=np.int64), initial)


def as_columns(golden: Golden) -> Columns:
    """A register's or a FIFO queue's history for the exact checks."""
    nothing = INITIAL if golden["model"] == Model.REGISTER else NOTHING
    rows = [
        (
            f in ("write", "enqueue"),
            nothing if value in (None, "empty") else value,
            inv,
            NEVER if ret is None else ret,
        )
        for f, value, inv, ret in golden["ops"]
    ]
    return columns(rows)


def transactions(golden: Golden) -> Transactions:
    builder = TransactionsBuilder()
    lists = golden["model"] == "list-append"
    for process, outcome, inv, ret, mops in golden["txns"]:
        acts = [
            (Act.READ_LIST if lists and act == "r" else _ACTS[act], key, value) for act, key, value in mops
        ]
        builder.add(process, inv, NEVER if ret is None else ret, _OUTCOMES[outcome], acts)
    return builder.build()


def make(model: Model, rng: random.Random, size: int) -> Golden:
    """A random history: what a correct object would have answered, then some answers replaced."""
    points = list(range(2 * size))
    rng.shuffle(points)
    spread = rng.choice((4, 8, 2 * size))  # how far apart an operation's two ends are in order
    starts = [rng.randrange(2 * size) for _ in range(size)]
    spans = [(s, s + 1 + rng.randrange(spread)) for s in starts]
    effect = sorted((rng.randint(*span), n) for n, span in enumerate(spans))
    act = _MAKERS[model]
    state: dict[str, Any] = {"held": [], "value": INITIAL, "put": []}
    spoil = rng.choice((0.0, 0.1, 0.25))
    ops = []
    for _, n in effect:
        inv, ret = spans[n]
        lost = rng.random() < 0.1
        happens = not lost or rng.random() < 0.5
        f, value = act(state, rng, 100 + n, happens, spoil)
        if lost and f in ("read", "dequeue"):
            value = None
        ops.append([f, value, inv, None if lost else ret])
    rng.shuffle(ops)
    return {"model": str(model), "ops": ops}


def _register(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
    if rng.random() < 0.5:
        state["put"].append(fresh)
        if happens:
            state["value"] = fresh
        return "write", fresh
    return "read", rng.choice([INITIAL, *state["put"]]) if rng.random() < spoil else state["value"]


def _cas(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
    del fresh
    old, new = rng.randrange(3), rng.randrange(3)
    kind = rng.choice(("read", "write", "cas", "cas"))
    wrong = rng.random() < spoil
    if kind == "read":
        return "read", old if wrong else state["value"]
    if kind == "write":
        state["value"] = new if happens else state["value"]
        return "write", new
    old = old if wrong else state["value"]
    if happens and old == state["value"]:
        state["value"] = new
    return "cas", [old, new]


def _mutex(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
    del fresh
    f = "release" if state["held"] else "acquire"
    if rng.random() < spoil:
        f = rng.choice(("acquire", "release"))
    elif happens:
        state["held"] = not state["held"]
    return f, None


def _set(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
    if rng.random() < 0.6:
        state["put"].append(fresh)
        if happens:
            state["held"].append(fresh)
        return "add", fresh
    there = sorted(state["held"])
    if there and rng.random() < spoil:
        there.remove(rng.choice(there))
    return "read", there


def _queue(pick: Callable[[random.Random, list[int]], int]) -> Callable[..., tuple[str, Any]]:
    def act(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
        if rng.random() < 0.55:
            state["put"].append(fresh)
            if happens:
                state["held"].append(fresh)
            return "enqueue", fresh
        if rng.random() < spoil:
            return "dequeue", rng.choice(["empty", *state["put"]])
        if not state["held"]:
            return "dequeue", "empty"
        value = pick(rng, state["held"])
        if happens:
            state["held"].remove(value)
        return "dequeue", value

    return act


_MAKERS: dict[Model, Callable[..., tuple[str, Any]]] = {
    Model.REGISTER: _register,
    Model.CAS_REGISTER: _cas,
    Model.MUTEX: _mutex,
    Model.SET: _set,
    Model.UNORDERED_QUEUE: _queue(lambda rng, held: rng.choice(held)),
    Model.FIFO_QUEUE: _queue(lambda _, held: held[0]),
}


def histories(seed: int, counts: dict[Model, int]) -> Iterator[Golden]:
    for model, count in counts.items():
        for number in range(count):
            rng = random.Random(f"{seed}/{model}/{number}")
            golden = make(model, rng, rng.randint(4, 16))
            if model is Model.UNORDERED_QUEUE:  # dequeues of unknown outcome are not modelled there
                golden["ops"] = [op for op in golden["ops"] if op[0] == "enqueue" or op[3] is not None]
            yield golden

"""Recorded verdicts: small histories made by ``golden/ask.py``, transactions by hand, and what Knossos,
Porcupine and Elle said of them.

One JSON object a line. ``ops``: [f, value, inv, ret]; value is null where it is not known, "empty" for an
empty queue, [old, new] for a cas, a list for the elements of a set, [[r or w, key, value], ...] for a
transaction over registers; ret is null where the operation never returned. Of a log: [value, offset or null]
for an append, the end that was told, and for a read {"covered": [from, to], "records": [[offset, value],
...]}. ``txns`` (Elle): [process, outcome, inv, ret, [[act, key, value], ...]].
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from wrackline.checkers.exact.log import NOWHERE, Append, End, Read, check_log
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, columns
from wrackline.checkers.exact.transactions.columns import NIL, Act, Transactions, TransactionsBuilder
from wrackline.checkers.jvm.calls import EMPTY, SHAPES, Calls, Model
from wrackline.checkers.jvm.log_calls import LogCalls
from wrackline.checkers.models.protocol import Outcome

GOLDEN = Path(__file__).parent / "golden"
LINEARIZABLE = GOLDEN / "linearizable.jsonl"
ELLE = GOLDEN / "elle.jsonl"
INITIAL = -1
"""Of registers: a value, since a read of nil is nobody's proof."""
KEYS = range(3)
"""Of several registers."""
LOGS = (Model.LOG, Model.SOME_OF_LOG)
Golden = dict[str, Any]
_ACTS = {"append": Act.APPEND, "w": Act.WRITE, "r": Act.READ}
_OUTCOMES = {"ok": Outcome.OK, "fail": Outcome.FAIL, "info": Outcome.INFO}


def load(path: Path) -> list[Golden]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def calls(golden: Golden) -> Calls:
    model = Model(golden["model"])
    if model in LOGS:
        return _log_calls(golden, model)
    names = list(SHAPES[model])
    flat: list[int] = []
    initial = INITIAL if model in (Model.REGISTER, Model.CAS_REGISTER) else None
    if model is Model.MULTI_REGISTER:
        flat, initial = [word for key in KEYS for word in (key, INITIAL)], len(KEYS)
    rows = []
    for f, value, inv, ret in golden["ops"]:
        match value:
            case None:
                a, b = NIL, NIL
            case "empty":
                a, b = EMPTY, NIL
            case [old, new] if f == "cas":
                a, b = old, new
            case list() if f == "txn":
                begin = len(flat)
                for act, key, what in value:
                    flat += (int(act == "w"), key, NIL if what is None else what)
                a, b = begin, len(flat)
            case list():
                a, b = len(flat), len(flat) + len(value)
                flat += value
            case _:
                a, b = value, NIL
        rows.append((names.index(f), a, b, inv, NEVER if ret is None else ret))
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    f, a, b, inv, ret = (np.ascontiguousarray(column) for column in table.T)
    return Calls(model, f, a, b, inv, ret, np.array(flat, dtype=np.int64), initial)


def _log_calls(golden: Golden, model: Model) -> Calls:
    found = LogCalls()
    for f, value, inv, ret in golden["ops"]:
        match f:
            case "append":
                found.append(value[0], inv, NEVER if ret is None else ret, value[1])
            case "read":
                found.read(value["records"], inv, ret, tuple(value["covered"]))
            case _:
                found.end(value, inv, ret)
    return found.build(model)


def golden_of_log(calls: Calls) -> Golden:
    """A log's columns as they would be written here."""
    names = list(SHAPES[calls.model])
    ops: list[Any] = []
    for f, a, b, inv, ret in zip(
        *(c.tolist() for c in (calls.f, calls.a, calls.b, calls.inv, calls.ret)), strict=True
    ):
        match names[f]:
            case "append":
                value: Any = [a, None if b == NIL else b]
            case "read":
                flat = calls.flat[a:b].tolist()
                records = [[offset, what] for offset, what in zip(flat[2::3], flat[3::3], strict=True)]
                value = {"covered": flat[:2], "records": records}
            case _:
                value = a
        ops.append([names[f], value, inv, None if ret == NEVER else ret])
    return {"model": str(calls.model), "ops": ops}


def check_golden_log(golden: Golden) -> str:
    """What the exact rules say of a log's history."""
    appends: list[Append] = []
    reads: list[Read] = []
    ends: list[End] = []
    for f, value, inv, ret in golden["ops"]:
        match f:
            case "append":
                offset = NOWHERE if value[1] is None else value[1]
                appends.append(Append(value[0], inv, NEVER if ret is None else ret, offset))
            case "read":
                reads += [Read(ret, offset, what) for offset, what in value["records"]]
            case _:
                ends.append(End(inv, ret, value))
    every = golden["model"] == Model.LOG
    if not every:  # what nobody here appended, others did, before everything
        ours = {one.value for one in appends}
        appends += [Append(value, -1) for value in {one.value for one in reads} - ours]
    return "invalid" if holes(golden) or check_log(appends, reads, ends, holes=every) else "valid"


def holes(golden: Golden) -> bool:
    """Whether a read of a log shows no record somewhere in a range that it covered."""
    reads = [value for f, value, _, _ in golden["ops"] if f == "read"]
    return any(
        not set(range(*read["covered"])) <= {offset for offset, _ in read["records"]} for read in reads
    )


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
    state: dict[str, Any] = {"held": [], "value": INITIAL, "registers": {}, "put": []}
    spoil = rng.choice((0.0, 0.1, 0.25))
    ops = []
    for _, n in effect:
        inv, ret = spans[n]
        lost = rng.random() < 0.1
        happens = not lost or rng.random() < 0.5
        f, value = act(state, rng, 100 + n, happens, spoil)
        if lost and model in LOGS:
            if f != "append":
                continue
            value = [value[0], None]
        if lost and f in ("read", "dequeue"):
            value = None
        if lost and f == "txn":
            value = [[act, key, what if act == "w" else None] for act, key, what in value]
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


def _txn(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
    """One to three reads and writes of a few values, one after another."""
    del fresh
    held, mops = dict(state["registers"]), []
    for _ in range(rng.randint(1, 3)):
        key, value = rng.choice(KEYS), rng.randrange(3)
        if rng.random() < 0.5:
            held[key] = value
            mops.append(["w", key, value])
        else:
            mops.append(["r", key, value if rng.random() < spoil else held.get(key, INITIAL)])
    if happens:
        state["registers"] = held
    return "txn", mops


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


def _log(state: Any, rng: random.Random, fresh: int, happens: bool, spoil: float) -> tuple[str, Any]:
    held, kind = state["held"], rng.random()
    wrong = rng.random() < spoil
    wobble = rng.choice((-1, 1)) if wrong else 0
    if kind < 0.5:
        offset = None if rng.random() < 0.15 else max(0, len(held) + wobble)
        state["put"].append(fresh)
        if happens:
            held.append(fresh)
        return "append", [fresh, offset]
    if kind < 0.7:
        return "end", max(0, len(held) + wobble)
    begin = rng.randint(0, len(held))
    to = rng.randint(begin, len(held))
    records = [[offset, held[offset]] for offset in range(begin, to)]
    covered = [begin, to] if rng.random() < 0.6 else [0, 0]
    if wrong and records:
        at = rng.randrange(len(records))
        match rng.choice(("gone", "moved", "other")):
            case "gone":
                del records[at]
            case "moved":
                records[at][0] = max(0, records[at][0] + wobble)
            case _:
                records[at][1] = rng.choice([99, *state["put"]])
    return "read", {"covered": covered, "records": records}


_MAKERS: dict[Model, Callable[..., tuple[str, Any]]] = {
    Model.REGISTER: _register,
    Model.CAS_REGISTER: _cas,
    Model.MULTI_REGISTER: _txn,
    Model.MUTEX: _mutex,
    Model.SET: _set,
    Model.UNORDERED_QUEUE: _queue(lambda rng, held: rng.choice(held)),
    Model.FIFO_QUEUE: _queue(lambda _, held: held[0]),
    Model.LOG: _log,
    Model.SOME_OF_LOG: _log,
}


def histories(seed: int, counts: dict[Model, int]) -> Iterator[Golden]:
    for model, count in counts.items():
        for number in range(count):
            rng = random.Random(f"{seed}/{model}/{number}")
            golden = make(model, rng, rng.randint(4, 16))
            if model is Model.UNORDERED_QUEUE:  # dequeues of unknown outcome are not modelled there
                golden["ops"] = [op for op in golden["ops"] if op[0] == "enqueue" or op[3] is not None]
            if model is Model.SOME_OF_LOG:
                golden["ops"] = [op for op in golden["ops"] if rng.random() < 0.6]
            yield golden

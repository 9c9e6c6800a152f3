"""Histories of an object that many clients use, drawn at random: what happened is known, since a model makes
it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wrackline.checkers.models import REFUSED, Model, OneOf, Operation, Outcome
from wrackline.checkers.models.counter import Counter
from wrackline.checkers.models.kv import Kv
from wrackline.checkers.models.locks import Mutex
from wrackline.checkers.models.log import Log
from wrackline.checkers.models.queues import FifoQueue, UnorderedQueue
from wrackline.checkers.models.registers import CasRegister, Register, StrictCasRegister
from wrackline.checkers.models.sets import Set
from wrackline.checkers.models.transactions import Bank, MultiRegister

Move = tuple[str, Any, list[Any]]
"""f, argument, and results of which the model allows at least one in some state."""
FEW = range(3)


def _register(rng: random.Random) -> Move:
    return ("write", rng.choice(FEW), [None]) if rng.random() < 0.5 else ("read", None, [None, *FEW])


def _cas(rng: random.Random) -> Move:
    return ("cas", rng.sample(FEW, 2), [None]) if rng.random() < 0.4 else _register(rng)


def _mutex(rng: random.Random) -> Move:
    return rng.choice(["acquire", "release"]), None, [None]


def _counter(rng: random.Random) -> Move:
    by = rng.choice([1, 1, 2, -1])
    both = [[by, total] for total in range(-6, 12)]
    return rng.choice([("add", by, [None]), ("read", None, list(range(-6, 12))), ("add-and-get", by, both)])


def _growing(rng: random.Random) -> Move:
    return ("add", rng.choice([1, 2]), [None]) if rng.random() < 0.5 else ("read", None, list(range(12)))


def _set(rng: random.Random) -> Move:
    subsets = [[n for n in FEW if bits >> n & 1] for bits in range(8)]
    return rng.choice(
        [("add", rng.choice(FEW), [None]), ("remove", rng.choice(FEW), [None]), ("read", None, subsets)]
    )


def _only_added(rng: random.Random) -> Move:
    subsets = [[n for n in FEW if bits >> n & 1] for bits in range(8)]
    return ("add", rng.choice(FEW), [None]) if rng.random() < 0.5 else ("read", None, subsets)


def _kv(rng: random.Random) -> Move:
    key, value = rng.choice("ab"), rng.choice("xy")
    texts = ["x", "y", "xx", "xy", "yx", "yy", "xyx", "yxy"]
    return rng.choice(
        [
            ("put", [key, value], [[key, value]]),
            ("append", [key, value], [[key, value]]),
            ("get", [key, None], [[key, None], *([key, text] for text in texts)]),
            ("get", [key, None], [[key, None], *([key, text] for text in texts)]),
            ("cas", [key, ["x", "xy"]], [[key, ["x", "xy"]]]),
            ("delete", [key, None], [[key, None]]),
        ]
    )


def _queue(rng: random.Random) -> Move:
    return ("enqueue", rng.choice(FEW), [None]) if rng.random() < 0.5 else ("dequeue", None, ["empty", *FEW])


def _txn(rng: random.Random) -> Move:
    match rng.randrange(3):
        case 0:
            write = ["w", "x", rng.choice(FEW)]
            return "txn", [write], [[write]]
        case 1:
            return (
                "txn",
                [["r", "x", None], ["r", "y", None]],
                [[["r", "x", x], ["r", "y", y]] for x in (None, *FEW) for y in (None, *FEW)],
            )
    write = ["w", "y", rng.choice(FEW)]
    return "txn", [["r", "x", None], write], [[["r", "x", x], write] for x in (None, *FEW)]


def _bank(rng: random.Random) -> Move:
    if rng.random() < 0.5:
        source, target = rng.sample("abc", 2)
        return "transfer", {"from": source, "to": target, "amount": rng.choice([1, 2])}, [None]
    return "read", None, [{"a": a, "b": b, "c": 6 - a - b} for a in range(7) for b in range(7 - a)]


def _log(rng: random.Random) -> Move:
    value = rng.choice(FEW)
    records = [[at, held] for at in range(5) for held in FEW]
    pairs = [[one, other] for one in records for other in records if other[0] == one[0] + 1]
    return rng.choice(
        [
            ("append", value, [[offset, value] for offset in (None, *range(6))]),
            ("append", value, [[offset, value] for offset in (None, *range(6))]),
            ("read", None, [*([one] for one in records), *pairs]),
            ("end", None, list(range(6))),
        ]
    )


@dataclass(frozen=True)
class Kind:
    model: Model[Any]
    move: Callable[[random.Random], Move]


KINDS: Mapping[str, Kind] = {
    "register": Kind(Register(), _register),
    "cas-register": Kind(CasRegister(), _cas),
    "strict-cas-register": Kind(StrictCasRegister(), _cas),
    "mutex": Kind(Mutex(), _mutex),
    "counter": Kind(Counter(), _counter),
    "counter that grows": Kind(Counter(), _growing),
    "set": Kind(Set(), _set),
    "set that grows": Kind(Set(), _only_added),
    "kv": Kind(Kv(), _kv),
    "fifo-queue": Kind(FifoQueue(), _queue),
    "unordered-queue": Kind(UnorderedQueue(), _queue),
    "multi-register": Kind(MultiRegister(), _txn),
    "bank": Kind(Bank(2), _bank),
    "log": Kind(Log(), _log),
}


@dataclass
class _Client:
    operation: Operation
    results: list[Any]
    happened: bool = False


def drawn(
    kind: Kind, rng: random.Random, operations: int, clients: int, *, unknown: float = 0.0, ties: bool = False
) -> list[Operation]:
    """A linearizable history. A client whose operation has an unknown outcome is replaced. With ``ties`` some
    events have equal times."""
    model, done = kind.model, list[Operation]()
    states: dict[Any, Any] = {}
    active: dict[int, _Client] = {}
    begun, clock, process = 0, 0, 0
    while begun < operations or active:
        clock += not ties or rng.random() < 0.6
        if begun < operations and len(active) < clients and rng.random() < 0.5:
            f, argument, results = kind.move(rng)
            results = [argument] if results == [None] else results  # Jepsen repeats what was asked for
            active[process] = _Client(
                Operation(process, f, argument, None, clock, None, Outcome.INFO), results
            )
            begun, process = begun + 1, process + 1
        elif active:
            who = rng.choice(list(active))
            one = active[who]
            if not one.happened:
                _happen(one, model, states, rng)
            if one.happened or rng.random() < 0.3:
                if rng.random() >= unknown:
                    outcome = Outcome.OK if one.happened else Outcome.FAIL
                    result = one.operation.result if one.happened else None
                    one.operation = replace(one.operation, ret=clock, outcome=outcome, result=result)
                else:
                    one.operation = replace(one.operation, outcome=Outcome.INFO, result=None)
                done.append(active.pop(who).operation)
    rng.shuffle(done)
    return done


def _happen(one: _Client, model: Model[Any], states: dict[Any, Any], rng: random.Random) -> None:
    """Let it take effect now, with a result that the model allows, if there is one."""
    part = model.partition(one.operation)
    state = states.get(part, model.initial())
    for result in rng.sample(one.results, len(one.results)):
        tried = replace(one.operation, result=result, outcome=Outcome.OK)
        after = model.step(state, tried)
        if after is not REFUSED:
            states[part] = rng.choice(after) if isinstance(after, OneOf) else after
            one.operation, one.happened = tried, True
            return


def spoilt(kind: Kind, history: Sequence[Operation], rng: random.Random) -> list[Operation]:
    """One result is another one, or what failed is said to have happened; that may or may not make the
    history wrong."""
    found = list(history)
    known = [n for n, one in enumerate(found) if one.outcome is not Outcome.INFO]
    for n in rng.sample(known, len(known)):
        if found[n].outcome is Outcome.FAIL and rng.random() < 0.5:
            continue
        for _ in range(20):
            f, argument, results = kind.move(rng)
            failed = found[n].outcome is Outcome.FAIL
            if (f, argument) == (found[n].f, found[n].argument) and (failed or len(results) > 1):
                found[n] = replace(found[n], result=rng.choice(results), outcome=Outcome.OK)
                return found
    return found

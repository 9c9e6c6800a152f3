"""Transactions over registers or lists as a store would have done them, and an oracle for few of them.

A store is one function: what a transaction reads, and what its writes lead to. ``serial`` is right; each
other one is wrong in a way that people have met. The oracle tries every order, and shares no line with what
it judges.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from wrackline.checkers.exact.operations import NEVER
from wrackline.checkers.exact.transactions.columns import Act, Transactions, TransactionsBuilder
from wrackline.checkers.models.protocol import Outcome

LIST, REGISTERS = "list-append", "rw-register"


@dataclass(slots=True)
class Drawn:
    process: int
    inv: int
    mops: list[list[Any]]
    """[writes, key, value]; of a list that is read, a tuple."""
    ret: int = NEVER
    outcome: Outcome = Outcome.INFO
    began: int = 0
    """How many states there had been when it was invoked."""


@dataclass(slots=True)
class Shape:
    model: str = REGISTERS
    transactions: int = 6
    processes: int = 3
    keys: int = 2
    mops: int = 3
    unknown: float = 0.1
    failed: float = 0.1


Store = dict[int, Any]
"""Each key and what it holds; None or () at first."""
Commit = Callable[[random.Random, list[Store], "Drawn", str], Store]


def put(store: Store, key: int, value: int, model: str) -> Store:
    held = (*store.get(key, ()), value) if model == LIST else value
    return {**store, key: held}


def carry_out(reads: Store, writes: Store, one: Drawn, model: str) -> Store:
    """Reads from one state, with what it did itself; writes go to another, which comes back."""
    mine: Store = {}
    for mop in one.mops:
        is_write, key, value = mop
        if is_write:
            writes = put(writes, key, value, model)
            mine = put({key: mine.get(key, reads.get(key, ()))}, key, value, model) | {
                other: held for other, held in mine.items() if other != key
            }
        else:
            mop[2] = mine.get(key, reads.get(key, () if model == LIST else None))
    return writes


def serial(_rng: random.Random, past: list[Store], one: Drawn, model: str) -> Store:
    return carry_out(past[-1], past[-1], one, model)


def stale(rng: random.Random, past: list[Store], one: Drawn, model: str) -> Store:
    """It reads an old state, and writes to the newest: stale reads, lost updates, write skew."""
    return carry_out(past[-rng.randint(1, min(3, len(past)))], past[-1], one, model)


def read_only_stale(rng: random.Random, past: list[Store], one: Drawn, model: str) -> Store:
    """Who only reads may be told an old state: serializable, and not strictly."""
    writes = any(mop[0] for mop in one.mops)
    return (serial if writes else stale)(rng, past, one, model)


def skewed(rng: random.Random, past: list[Store], one: Drawn, model: str) -> Store:
    """Each key is read from a state of its own: read skew, long forks."""
    mixed = {key: rng.choice(past[-3:]).get(key) for key in past[-1]}
    return carry_out({key: held for key, held in mixed.items() if held is not None}, past[-1], one, model)


def uncommitted(rng: random.Random, past: list[Store], one: Drawn, model: str) -> Store:
    """Its writes become visible one by one: intermediate values."""
    now = past[-1]
    for mop in one.mops:
        part = Drawn(one.process, one.inv, [mop])
        now = carry_out(now if rng.random() < 0.7 else rng.choice(past[-3:]), now, part, model)
        past.append(now)
    return now


def snapshot(rng: random.Random, past: list[Store], one: Drawn, model: str, begun: int = 0) -> Store:
    """Snapshot isolation: an old state is read, but none since which its own keys were written."""
    for at in range(len(past) - 1, begun, -1):
        if any(past[at].get(key) != past[at - 1].get(key) for writes, key, _ in one.mops if writes):
            begun = at
            break
    return carry_out(past[rng.randrange(begun, len(past))], past[-1], one, model)


def strong_snapshot(rng: random.Random, past: list[Store], one: Drawn, model: str) -> Store:
    """The state that is read is none from before its invocation: write skew."""
    return snapshot(rng, past, one, model, one.began - 1)


STORES: dict[str, Commit] = {
    one.__name__: one
    for one in (serial, stale, read_only_stale, skewed, uncommitted, snapshot, strong_snapshot)
}


def draw(rng: random.Random, shape: Shape, commit: Commit) -> list[Drawn]:
    """Clients take turns at random: one begins, the transaction of one takes effect, one is answered."""
    done: list[Drawn] = []
    past: list[Store] = [{}]
    open_ones: list[list[Any]] = []
    """[transaction, whether it took effect, its fate]."""
    clock, value, process = 0, 0, list(range(shape.processes))
    while len(done) < shape.transactions or open_ones:
        clock += 1
        free = [one for one in process if one not in [each[0].process for each in open_ones]]
        if free and len(done) < shape.transactions and rng.random() < 0.45:
            mops = []
            for _ in range(rng.randint(1, shape.mops)):
                value += 1
                writes = rng.random() < 0.5
                mops.append([writes, rng.randrange(shape.keys), value if writes else None])
            one = Drawn(rng.choice(free), clock, mops, began=len(past))
            done.append(one)
            fate = rng.random()
            fails = shape.unknown <= fate < shape.unknown + shape.failed
            open_ones.append([one, False, "info" if fate < shape.unknown else "fail" if fails else "ok"])
        elif open_ones:
            chosen = rng.choice(open_ones)
            one, took_effect, fate = chosen
            if not took_effect:
                chosen[1] = True
                if fate == "ok" or (fate == "info" and rng.random() < 0.5):
                    past.append(commit(rng, past, one, shape.model))
                elif fate == "fail" and commit is uncommitted:
                    commit(rng, past, Drawn(0, 0, [list(mop) for mop in one.mops]), shape.model)
                    past.append(past[rng.randrange(len(past))])
                continue
            open_ones.remove(chosen)
            if fate == "info":
                process[process.index(one.process)] += 100
            else:
                one.ret = clock
                one.outcome = Outcome[fate.upper()]
    for one in done:
        if one.outcome is not Outcome.OK:
            for mop in one.mops:
                mop[2] = mop[2] if mop[0] else None
    return done


def mutate(rng: random.Random, history: list[Drawn], model: str) -> None:
    """Change one thing: what one read, or when one was."""
    one = rng.choice(history)
    reads = [mop for other in history if other.outcome is Outcome.OK for mop in other.mops if not mop[0]]
    what = rng.random()
    if what < 0.6 and reads:
        mop = rng.choice(reads)
        same = [other[2] for other in reads if other[1] == mop[1]]
        written = [other[2] for each in history for other in each.mops if other[0] and other[1] == mop[1]]
        nothing: Any = () if model == LIST else None
        if model == LIST:
            mop[2] = rng.choice([*same, nothing, mop[2][:-1]])
        else:
            mop[2] = rng.choice([*same, *written, nothing])
    elif what < 0.8 and one.ret != NEVER:
        one.ret = rng.randint(one.inv + 1, one.ret)
    elif one.outcome is Outcome.OK:
        one.outcome = Outcome.FAIL


def columns(history: list[Drawn], model: str) -> Transactions:
    found = TransactionsBuilder()
    for one in history:
        mops = []
        for writes, key, value in one.mops:
            act = (
                (Act.APPEND if writes else Act.READ_LIST)
                if model == LIST
                else (Act.WRITE if writes else Act.READ)
            )
            mops.append((act, key, value))
        found.add(one.process, one.inv, one.ret, one.outcome, mops)
    return found.build()


def is_possible(history: list[Drawn], model: str, *, before: Callable[[Drawn, Drawn], bool]) -> bool:
    """Whether some order of those that are ok, and of any of those of unknown outcome, explains all reads."""
    sure = [one for one in history if one.outcome is Outcome.OK]
    maybe = [one for one in history if one.outcome is Outcome.INFO]
    for count in range(len(maybe) + 1):
        for some in combinations(maybe, count):
            if _has_order([*sure, *some], {}, model, before, set()):
                return True
    return False


def _has_order(
    left: list[Drawn], store: Store, model: str, before: Callable[[Drawn, Drawn], bool], dead: set[Any]
) -> bool:
    if not left:
        return True
    state = frozenset(id(one) for one in left), frozenset(store.items())
    if state in dead:
        return False
    for one in left:
        if any(before(other, one) for other in left if other is not one):
            continue
        after = _stepped(one, store, model)
        if after is not None and _has_order(
            [other for other in left if other is not one], after, model, before, dead
        ):
            return True
    dead.add(state)
    return False


def _stepped(one: Drawn, store: Store, model: str) -> Store | None:
    for writes, key, value in one.mops:
        if writes:
            store = put(store, key, value, model)
        elif one.outcome is Outcome.OK and store.get(key, () if model == LIST else None) != value:
            return None
    return store


def in_real_time(one: Drawn, other: Drawn) -> bool:
    return one.ret < other.inv


def in_session(one: Drawn, other: Drawn) -> bool:
    return one.process == other.process and one.inv < other.inv


def in_any_order(_one: Drawn, _other: Drawn) -> bool:
    return False


def drawn(seed: int, shape: Shape) -> Iterator[tuple[str, list[Drawn]]]:
    """One history of each store, and one of the right store with one thing changed."""
    for name, commit in STORES.items():
        yield name, draw(random.Random(f"{seed} {name}"), shape, commit)
    rng = random.Random(f"{seed} mutated")
    history = draw(rng, shape, serial)
    mutate(rng, history, shape.model)
    yield "mutated", history

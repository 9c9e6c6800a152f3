"""Drawn histories: what a server that keeps its promise shows is never called, and what is called is what
trying everything out finds impossible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.checkers.jepsen import oracles, servers
from tests.checkers.jepsen.drawn import changed, simulate
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import load_decider
from wrackline.checkers.models.protocol import Operation


@dataclass(frozen=True)
class Trial:
    name: str
    world: Callable[[Random], servers.World]
    possible: oracles.Possible
    settings: dict[str, Any] = field(default_factory=dict)


TRIALS = [
    Trial("bank-totals", servers.bank, oracles.bank, {"total": 30}),
    Trial("final-set", servers.grow_only("add"), oracles.final_set),
    Trial("set-full", servers.grow_only("add"), oracles.set_full),
    Trial("set-full", servers.grow_only("add"), oracles.linearizable_set, {"linearizable": True}),
    Trial("queue", servers.queue, oracles.queue),
    Trial("total-queue", servers.queue, oracles.total_queue),
    Trial("total-queue", servers.queue, oracles.once_only_queue, {"exactly_once": True}),
    Trial("unique-ids", servers.ids, oracles.ids),
    Trial("counter-bounds", servers.counter, oracles.counter),
    Trial("long-fork", servers.once, oracles.long_fork),
    Trial("causal", servers.chain, oracles.causal),
    Trial("causal-reverse", servers.grow_only("write"), oracles.causal_reverse),
    Trial("sequential", servers.parts, oracles.sequential),
    Trial("monotonic", servers.rows, oracles.monotonic),
    Trial("adya", servers.predicates, oracles.adya),
    Trial("owner-aware-mutex", servers.lock(1, named=True), oracles.lock(1, fenced=False)),
    Trial("reentrant-mutex", servers.lock(2, named=False), oracles.lock(2, fenced=False)),
    Trial("fenced-mutex", servers.lock(1, named=False), oracles.lock(1, fenced=True)),
    Trial("reentrant-fenced-mutex", servers.lock(2, named=True), oracles.lock(2, fenced=True)),
    Trial("semaphore", servers.permits(2), oracles.lock(0, fenced=False, permits=2)),
]
NAMES = [" ".join([trial.name, *trial.settings]) for trial in TRIALS]


def answer(trial: Trial, history: Sequence[Operation]) -> Answer:
    decider = load_decider(trial.name, **trial.settings)
    if isinstance(decider, Checker):
        found = decider.check(history)
        if found.problems:
            return Answer.INVALID
        return Answer.UNKNOWN if found.undecided else Answer.VALID
    return search(history, decider, deadline_s=20).answer


def draw(trial: Trial, seed: int, *, wrong: bool, longer: int = 1) -> list[Operation]:
    """``longer``: so many times as many clients and operations as can be tried out."""
    chance = Random(seed)
    world = trial.world(chance)
    history = simulate(
        world.server,
        world.draw,
        chance,
        clients=world.clients * longer if world.clients > 1 else 1,
        operations=chance.randint(2, world.operations) * longer * longer,
        last=world.last,
    )
    return changed(history, chance, world.change, moves=world.moves) if wrong else history


def tally(trial: Trial, seeds: Sequence[int], *, wrong: bool) -> Counter[str]:
    """How many histories were possible and impossible, and where the checker differs: with the seed."""
    found: Counter[str] = Counter()
    for seed in seeds:
        history = draw(trial, seed, wrong=wrong)
        possible, said = trial.possible(history), answer(trial, history)
        found["possible" if possible else "impossible"] += 1
        found["undecided"] += said is Answer.UNKNOWN
        if possible and said is Answer.INVALID:
            found[f"false alarm {seed}"] += 1
        if not possible and said is not Answer.INVALID:
            found[f"missed {seed}"] += 1
    return found


@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("trial", TRIALS, ids=NAMES)
def test_a_server_that_keeps_its_promise_is_never_called(trial: Trial, times: int) -> None:
    for seed in range(60 * times):
        assert answer(trial, draw(trial, seed, wrong=False)) is not Answer.INVALID, seed
    for seed in range(10 * times):
        assert answer(trial, draw(trial, seed, wrong=False, longer=3)) is not Answer.INVALID, seed


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("trial", TRIALS, ids=NAMES)
def test_what_is_called_is_what_is_impossible(trial: Trial, times: int) -> None:
    found = tally(trial, range(150 * times), wrong=True)
    assert not [name for name in found if name.startswith(("false alarm", "missed"))]
    assert found["impossible"] > 15
    assert found["possible"] > 15

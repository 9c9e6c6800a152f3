"""A search takes no more memory than it is given, and says so where that does not suffice."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.checkers.exact.search.hard import HARD, LOCKS, hard
from wrackline.checkers.exact.search import several
from wrackline.checkers.exact.search.part import load as load_native_code
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Operation, load
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.counter import Counter
from wrackline.checkers.models.loading import known, load_decider

LIMIT = 8 << 20
MARGIN = 4 << 20


def _status(name: str) -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) << 10


def _most_of_each(told: Connection) -> None:
    """In a process of its own: what it has in memory would else be what earlier tests left."""
    load_native_code()
    for name in HARD:
        search(hard(name, open_ones=2), load(name))  # what it imports and compiles is no memory of a search
        Path("/proc/self/clear_refs").write_text("5")  # begins VmHWM anew
        before = _status("VmRSS")
        (part,) = search(hard(name), load(name), memory_bytes=LIMIT).parts
        told.send((name, part.answer, part.why, _status("VmHWM") - before))


def test_a_search_of_any_model_keeps_to_its_memory() -> None:
    models = {name for name in known() if not isinstance(load_decider(name), Checker)}
    assert models - set(HARD) == set(LOCKS), "is there a model without a hard history?"
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_most_of_each, args=(theirs,))
    process.start()
    theirs.close()
    for model in HARD:
        name, answer, why, most = ours.recv()
        assert (name, answer) == (model, Answer.UNKNOWN)
        assert why.startswith("8 MB of memory are used up: ")
        assert most <= LIMIT + MARGIN, name
    process.join()


def test_a_part_that_took_all_of_it_leaves_some_to_the_next() -> None:
    keys = range(5)
    history = [one for key in keys for one in hard("kv", key=key, open_ones=60 if key != 4 else 4)]
    found = search(history, load("kv"), memory_bytes=LIMIT)
    answers = [part.answer for part in found.parts]
    assert answers == [*[Answer.UNKNOWN] * 4, Answer.INVALID]


def test_a_process_that_is_killed_leaves_its_part_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class PerClient(Counter):
        def partition(self, operation: Operation) -> int:
            return operation.process

        def step(self, state: int, operation: Operation) -> Any:
            if operation.process == 1 and os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().step(state, operation)

    parent = os.getpid()
    monkeypatch.setattr(several, "ALONE_S", -1.0)
    history = [Operation(n, "add-and-get", 1 + n, [1 + n, 1 + n], 2 * n, 2 * n + 1) for n in range(3)]
    found = search(history, PerClient(), processes=2)
    assert [part.answer for part in found.parts] == [Answer.VALID, Answer.UNKNOWN, Answer.VALID]
    assert "was ended from outside" in found.parts[1].why

"""Asks Knossos and Elle, and never waits longer than it was told to.

One child process holds the JVM (wrackline.checkers.jvm.child). Neither Knossos' own time limit nor Elle's can
be relied on, so the limit is the child's life: at the deadline it is killed, and the next question starts
another. What was not decided is ``UNKNOWN``, with the reason, and is nobody's proof.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.operations import NEVER, Ints
from wrackline.checkers.exact.transactions.answers import Case, Edge
from wrackline.checkers.exact.transactions.columns import NIL, Transactions
from wrackline.checkers.exact.transactions.levels import STRICT, assumed_of_keys
from wrackline.checkers.jvm.answers import Judgement, State
from wrackline.checkers.jvm.calls import (
    EMPTY,
    MEMOISED,
    SHAPES,
    Calls,
    Model,
    events_in_order,
)
from wrackline.checkers.jvm.classpath import JvmUnavailable, required_classpath
from wrackline.checkers.jvm.compiled import LOOK_S, loadable
from wrackline.checkers.jvm.processor_time import Allowance
from wrackline.history.jepsen.edn import forms

DEFAULT_HEAP = "2g"
DEFAULT_DEADLINE_S = 60.0
START_S = 120.0
"""Of processor time, for the JVM and the first load of the sources; not part of a question's deadline."""
_OUT_OF_MEMORY = 3
"""The exit code of -XX:+ExitOnOutOfMemoryError."""


class _Undecided(Exception):
    pass


class Bridge:
    """A bridge to a JVM with Knossos and Elle; not for use from several threads at once. Use it as a
    context, or ``close`` it."""

    def __init__(
        self,
        classpath: Sequence[str] | None = None,
        *,
        heap: str = DEFAULT_HEAP,
        progress: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Starts nothing yet. ``progress`` is told what takes long once. Raises JvmUnavailable."""
        self.started = 0
        """How many JVMs were started."""
        self._progress = progress
        self._classpath = tuple(classpath) if classpath is not None else required_classpath()
        self._heap = heap
        self._child: subprocess.Popen[bytes] | None = None
        self._ready: set[str] = set()

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, whatever it is doing. Idempotent."""
        child, self._child = self._child, None
        self._ready.clear()
        if child is None:
            return
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                # What it was never able to read is still in our buffer, and nobody is there to take it.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._words.close()
        self._folder.cleanup()

    @property
    def pid(self) -> int | None:
        """Returns the process id of the child, for callers that want to see or bound what it uses; None
        while there is none."""
        return None if self._child is None else self._child.pid

    def versions(self) -> tuple[str, str]:
        """(Java, Clojure). Raises JvmUnavailable."""
        try:
            java, clojure = self._ask("hello", (), None)
        except _Undecided as error:
            raise JvmUnavailable(f"the JVM did not start: {error}") from error
        return java, clojure

    def load(self, name: str) -> None:
        """Load ``knossos`` or ``elle``, so that a question's deadline is its own. Raises JvmUnavailable."""
        if name in self._ready:
            return
        try:
            self._ask("load", (name,), None)
        except _Undecided as error:
            raise JvmUnavailable(f"{name.capitalize()} cannot be loaded: {error}") from error
        self._ready.add(name)

    def linearizable(self, calls: Calls, *, deadline_s: float = DEFAULT_DEADLINE_S) -> Judgement:
        """Is there an order of these operations that the model allows? Raises JvmUnavailable."""
        if calls.model is Model.UNORDERED_QUEUE and bool(((calls.f == 1) & (calls.a == NIL)).any()):
            return Judgement(
                Answer.UNKNOWN, "a dequeue of unknown outcome may have taken any value: not modelled"
            )
        self.load("knossos")
        shapes = SHAPES[calls.model]
        arguments = (
            *(str(calls.model), calls.initial, calls.model in MEMOISED, list(shapes)),
            *(_longs(list(shapes.values())), calls.f, calls.a, calls.b, calls.flat, calls.order()),
            np.flatnonzero(calls.ret == NEVER),
            *(NIL, EMPTY),
        )
        try:
            valid, row, states = self._ask("knossos", arguments, deadline_s)
        except _Undecided as error:
            return Judgement(Answer.UNKNOWN, str(error))
        return Judgement(
            _answer(valid),
            "" if valid >= 0 else "Knossos does not say",
            row if row >= 0 else None,
            tuple(
                State(tuple(holds), size, tuple(placed), tuple(waiting))
                for (size, *holds), placed, waiting in states
            ),
        )

    def serializable(
        self,
        model: str,
        history: Transactions,
        *,
        consistency: str = STRICT,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> Judgement:
        """Elle's ``list-append`` or ``rw-register``, which may assume of each register what ``consistency``
        implies. Raises JvmUnavailable."""
        self.load("elle")
        if not _one_at_a_time(history):  # as a process of Jepsen's does; so its order cannot be asked for
            history = replace(history, process=np.arange(len(history), dtype=np.int64))
        order = events_in_order(history.inv, history.ret)
        # Elle looks for who wrote a value among completions: what never returned completes, as unknown, at
        # the end.
        order = np.concatenate([order, -1 - np.flatnonzero(history.ret == NEVER)])
        arguments = (
            *(model, consistency, list(assumed_of_keys(consistency)), max(1, int(deadline_s * 500))),
            *(order, history.process, history.outcome),
            *(history.starts, history.act, history.key, history.a, history.b, history.flat, NIL),
        )
        try:
            valid, anomalies, refuted = self._ask("elle", arguments, deadline_s)
        except _Undecided as error:
            return Judgement(Answer.UNKNOWN, str(error))
        result = {kind: (count, tuple(_case(order, *one) for one in some)) for kind, count, some in anomalies}
        why = "" if valid >= 0 else f"Elle does not say: {', '.join(result) or 'no reason given'}"
        return Judgement(_answer(valid), why, anomalies=result, refuted=tuple(refuted))

    def _ask(self, function: str, arguments: tuple[Any, ...], deadline_s: float | None) -> Any:
        """``deadline_s``: None to wait for START_S of processor time. Raises _Undecided where there is no
        answer, with the reason."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        began = time.monotonic()
        try:
            pickle.dump((function, arguments), child.stdin)
            child.stdin.flush()
            late = _waited(child, deadline_s)
            if late:
                self.close()
                raise _Undecided(late)
            answer = pickle.load(child.stdout)
        except (BrokenPipeError, EOFError) as gone:
            raise _Undecided(self._last_words(time.monotonic() - began)) from gone
        except BaseException:
            self.close()
            raise
        if isinstance(answer, tuple) and answer[:1] == ("error",):
            raise _Undecided(answer[1])
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (as long-lived as the child)
        started_with = loadable(self._classpath, progress=self._progress)
        self._folder = tempfile.TemporaryDirectory(prefix="wrackline-jvm-", ignore_cleanup_errors=True)
        self.started += 1
        command = [
            *(sys.executable, "-m", "wrackline.checkers.jvm.child", self._folder.name),
            *(self._heap, os.pathsep.join(started_with.classpath), *started_with.options),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us: we end the child
        )
        return self._child

    def _last_words(self, after_s: float) -> str:
        """Returns the reason why the child is gone."""
        assert self._child is not None
        code = self._child.wait()
        self._words.seek(0)
        said = [line for line in self._words.read().decode(errors="replace").splitlines() if line.strip()]
        self.close()
        if code == _OUT_OF_MEMORY:
            return f"out of memory ({self._heap}) after {after_s:.1f} s"
        last = said[-1] if said else "it said nothing"
        return f"the process of the JVM ended with code {code}: {last}"


def _waited(child: subprocess.Popen[bytes], deadline_s: float | None) -> str:
    """Waits until there is an answer to be read; returns an empty string then, else the reason, in words,
    why there will be none."""
    assert child.stdout is not None
    if deadline_s is not None:
        ready, _, _ = select.select([child.stdout], [], [], deadline_s)
        return "" if ready else f"no answer within {deadline_s:g} s"
    allowance = Allowance(child.pid, START_S)
    while True:
        ready, _, _ = select.select([child.stdout], [], [], LOOK_S)
        why = "" if ready else allowance.spent()
        if ready or why:
            return why


def _answer(valid: int) -> Answer:
    return {1: Answer.VALID, 0: Answer.INVALID}.get(valid, Answer.UNKNOWN)


def _case(
    order: Ints, indexes: list[int], text: str, cycle: tuple[list[int], list[tuple[Any, ...]]], facts: str
) -> Case:
    """``order``: the row of the event with each index, of a completion -1 - row. ``facts`` is EDN."""

    def row(index: int) -> int:
        at = int(order[index])
        return -1 - at if at < 0 else at

    def known(number: int) -> int | None:
        return None if number == NIL else number

    def by_row(fact: Any) -> Any:
        match fact:
            case {"operation": int(index)}:
                return {"operation": row(index)}
            case dict():
                return {key: by_row(one) for key, one in fact.items()}
            case tuple():
                return [by_row(one) for one in fact]
        return fact

    around, edges = cycle
    return Case(
        tuple(dict.fromkeys(row(index) for index in indexes)),
        text,
        tuple(
            Edge(kind, row(before), row(after), *(known(number) for number in numbers))
            for before, after, (kind, *numbers) in zip(around, [*around[1:], *around[:1]], edges, strict=True)
        ),
        by_row(next(iter(forms([facts])), {})),
    )


def _one_at_a_time(history: Transactions) -> bool:
    order = np.lexsort((history.inv, history.process))
    same = np.diff(history.process[order]) == 0
    return not bool((same & (history.ret[order][:-1] > history.inv[order][1:])).any())


def _longs(values: Sequence[int]) -> Any:
    return np.array(values, dtype=np.int64)

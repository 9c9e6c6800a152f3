"""Decides many parts: one after another, and in several processes where that takes long."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from wrackline.checkers.exact.judgement import Answer, Part

ALONE_S = 1.0
"""So long one process works by itself: to start others takes a while too."""
_TURN_S = 0.25
"""What one part gets before the others have had theirs."""
_MOST_KEPT_BYTES = 256 << 20
"""Of the searches that wait for their next turn; others begin again then."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
Progress = Callable[[str], None]


class Search(Protocol):
    """Of one part. It may be left for a while and gone on with."""

    @property
    def bytes(self) -> int:
        """Memory in use."""

    def go(self, turn_s: float, progress: Progress) -> Part | None:
        """Search for so long at most; None where that did not suffice. Raises ModelError."""


@dataclass(frozen=True, slots=True)
class Task:
    """One part. To make its search takes time and memory already."""

    key: Hashable
    operations: int
    make: Callable[[], Search]


_work: tuple[Sequence[Task], Mapping[int, Search], Progress]
"""Of the processes that are forked: what they go on with."""


def decide_all(tasks: Sequence[Task], processes: int, first: bool, progress: Progress) -> list[Part]:
    """The parts, in the same order. With ``first`` nobody goes on once a part is INVALID. Raises
    ModelError."""
    done: dict[int, Part] = {}
    begun: dict[int, Search] = {}
    for number, part in _in_turn(tasks, begun, processes, progress):
        done[number] = part
        if first and part.answer is Answer.INVALID:
            break
    else:
        return [done[number] for number in range(len(tasks))]
    why = "not gone on with, since another part is not linearizable"
    return [
        done.get(number) or Part(task.key, Answer.UNKNOWN, task.operations, why)
        for number, task in enumerate(tasks)
    ]


def _in_turn(
    tasks: Sequence[Task], begun: dict[int, Search], processes: int, progress: Progress
) -> Iterator[tuple[int, Part]]:
    """Each part has a short turn first, so that one that is hard keeps nobody waiting."""
    began = time.monotonic()
    kept_bytes = 0
    left = []
    for number, task in enumerate(tasks):
        if processes > 1 and time.monotonic() - began > ALONE_S:
            break
        search = task.make()
        part = search.go(_TURN_S, progress)
        if part is not None:
            yield number, part
            continue
        left.append(number)
        kept_bytes += search.bytes
        if kept_bytes < _MOST_KEPT_BYTES:
            begun[number] = search
    else:
        number = len(tasks)
    left += range(number, len(tasks))
    if processes > 1 and len(left) > 1:
        yield from _in_processes(left, tasks, begun, processes, progress)
        return
    for number in left:
        yield number, _to_the_end(number, tasks, begun, progress)


def _to_the_end(number: int, tasks: Sequence[Task], begun: Mapping[int, Search], progress: Progress) -> Part:
    search = begun.get(number) or tasks[number].make()
    part = None
    while part is None:
        part = search.go(float("inf"), progress)
    return part


def _in_processes(
    left: list[int], tasks: Sequence[Task], begun: Mapping[int, Search], processes: int, progress: Progress
) -> Iterator[tuple[int, Part]]:
    """They are forked, so that they have the model, the operations and what was already searched without
    being sent them."""
    global _work
    _work = (tasks, begun, progress)
    context = multiprocessing.get_context("fork")
    with context.Pool(min(processes, len(left)), initializer=_end_with_parent) as pool:
        yield from pool.imap_unordered(_one, left)


def _one(number: int) -> tuple[int, Part]:
    tasks, begun, progress = _work
    return number, _to_the_end(number, tasks, begun, progress)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by this; a handler of the parent's is none of theirs

"""Decides many parts: one after another, and in several processes where that takes long."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized

from wrackline.checkers.exact.judgement import Answer, Part
from wrackline.checkers.exact.search.part import Progress, Search

ALONE_S = 1.0
"""So long one process works by itself: to start others takes a while too."""
_TURN_S = 0.25
"""What one part gets before the others have had theirs."""
KEPT = 1 / 8
"""Share of the memory for searches that wait for their next turn; others begin again then."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Task:
    """One part. To make its search takes time and memory already."""

    key: Hashable
    operations: int
    make: Callable[[], Search]


@dataclass(frozen=True, slots=True)
class Means:
    """The resources that the parts are decided with."""

    processes: int
    memory_bytes: int
    """For all of them at once."""
    forked: Callable[[], None]
    """Called in each process before anything else."""
    progress: Progress


@dataclass(frozen=True, slots=True)
class _Work:
    """The work that the forked processes go on with."""

    left: Sequence[int]
    tasks: Sequence[Task]
    begun: Mapping[int, Search]
    means: Means
    at: Synchronized[int]
    """How many of ``left`` somebody has taken."""


def decide_all(tasks: Sequence[Task], first: bool, means: Means) -> list[Part]:
    """The parts, in the same order. With ``first`` nobody goes on once a part is INVALID. Raises
    ModelError."""
    done: dict[int, Part] = {}
    why = "the process that searched it was ended from outside; the machine may have had no memory left"
    for number, part in _in_turn(tasks, means):
        done[number] = part
        if first and part.answer is Answer.INVALID:
            why = "not gone on with, since another part is not linearizable"
            break
    return [
        done.get(number) or Part(task.key, Answer.UNKNOWN, task.operations, why)
        for number, task in enumerate(tasks)
    ]


def _in_turn(tasks: Sequence[Task], means: Means) -> Iterator[tuple[int, Part]]:
    """Each part has a short turn first, so that one that is hard keeps nobody waiting."""
    began = time.monotonic()
    begun: dict[int, Search] = {}
    room = means.memory_bytes * KEPT
    left: list[int] = []
    for number, task in enumerate(tasks):
        if means.processes > 1 and time.monotonic() - began > ALONE_S:
            left += range(number, len(tasks))
            break
        search = task.make()
        part = search.go(_TURN_S if len(tasks) > 1 else float("inf"), means.progress)
        if part is not None:
            yield number, part
        else:
            left.append(number)
            if search.bytes <= room:
                room -= search.bytes
                begun[number] = search
        del search  # its memory is the next one's
    if means.processes > 1 and len(left) > 1:
        yield from _in_processes(left, tasks, begun, means)
        return
    for number in left:
        yield (
            number,
            _to_the_end(begun.pop(number) if number in begun else tasks[number].make(), means.progress),
        )


def _to_the_end(search: Search, progress: Progress) -> Part:
    part = None
    while part is None:
        part = search.go(float("inf"), progress)
    return part


def _in_processes(
    left: list[int], tasks: Sequence[Task], begun: Mapping[int, Search], means: Means
) -> Iterator[tuple[int, Part]]:
    """They are forked, so that they have the model, the operations and what was already searched without
    being sent them. A part whose process was ended from outside is left out."""
    context = multiprocessing.get_context("fork")
    work = _Work(left, tasks, begun, means, context.Value("q", 0))
    processes: dict[Connection, ForkProcess] = {}
    try:
        for _ in range(min(means.processes, len(left))):
            mine, theirs = context.Pipe(duplex=False)
            processes[mine] = context.Process(target=_decide_some, args=(work, theirs), daemon=True)
            processes[mine].start()
            theirs.close()
        while processes:
            for one in wait(list(processes)):
                assert isinstance(one, Connection)
                try:
                    told = one.recv()
                except EOFError:
                    processes.pop(one).join()
                    continue
                if isinstance(told, Exception):
                    raise told
                yield told
    finally:
        for process in processes.values():
            process.kill()
            process.join()


def _decide_some(work: _Work, told: Connection) -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a handler of the parent's is none of theirs
    work.means.forked()
    while True:
        with work.at.get_lock():
            at = work.at.value
            work.at.value += 1
        if at >= len(work.left):
            return
        number = work.left[at]
        try:
            search = work.begun.get(number) or work.tasks[number].make()
            told.send((number, _to_the_end(search, work.means.progress)))
        except Exception as error:  # noqa: BLE001 (the parent raises it)
            told.send(error)
            return
        del search

"""Small histories of registers and queues, good and bad, on the partitions of one run."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.checkers.goldens import INITIAL, as_columns, make
from tests.checkers.histories import TOPIC, History
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, columns
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register
from wrackline.checkers.inputs.row_groups import splits_of
from wrackline.checkers.inputs.runs import Run, open_run, scanned, scanned_split
from wrackline.checkers.jvm.calls import Model
from wrackline.history.model import FAILED, UNKNOWN, Record, TopicInfo, Type

Said = set[tuple[Any, ...]]
"""(partition, rule, value, other, contradicted, invocations of the operations that prove it)."""
WORKLOADS = {Model.REGISTER: "register", Model.FIFO_QUEUE: "queue"}
CHECKS: dict[Model, Callable[[Columns], list[Any]]] = {
    Model.REGISTER: check_register,
    Model.FIFO_QUEUE: check_queue,
}
LOGS = 24


def spoil(table: Columns, rng: random.Random) -> None:
    """Exchange what two gets returned, or let one return what nobody put, or a put fail; or leave it as it
    is."""
    gets, puts = np.flatnonzero(~table.puts), np.flatnonzero(table.puts & (table.ret != NEVER))
    what = rng.randrange(4)
    if what in (0, 3) and len(gets) > 1:
        some = sorted(gets.tolist(), key=lambda row: int(table.inv[row]))
        at = rng.randrange(len(some) - 1)
        one, other = rng.sample(some, 2) if what == 0 else some[at : at + 2]
        table.value[[one, other]] = table.value[[other, one]]
    elif what == 1 and len(gets):
        table.value[rng.choice(gets.tolist())] = 999 << 4
    elif what == 2 and len(puts):
        table.failed[rng.choice(puts.tolist())] = True


def overlapping(model: Model, rng: random.Random) -> Columns:
    table = as_columns(make(model, rng, rng.randint(3, 14)))
    nothing = (table.value == INITIAL) | (table.value == NOTHING)
    table.value[:] = np.where(nothing, NOTHING, table.value << 4)
    spoil(table, rng)
    return table


def in_turn(model: Model, rng: random.Random, most: int = 40) -> Columns:
    """One operation after another: what is exchanged or not told is wrong, over many stretches of time. Some
    dequeues never come back; most of these took something."""
    rows: list[tuple[bool, int, int, int]] = []
    held: list[int] = []
    queue = model is Model.FIFO_QUEUE
    puts = rng.choice([0.45, 0.55, 0.65])
    for step in range(rng.randint(most // 4, most)):
        begin, end = 2 * step, 2 * step + 1
        if rng.random() < puts:
            held = [*held, 16 * step] if queue else [16 * step]
            rows.append((True, 16 * step, begin, end))
        elif queue and rng.random() < 0.2:
            held = held[1:] if rng.random() < 0.7 else held
            rows.append((False, NOTHING, begin, NEVER))
        else:
            rows.append((False, held[0] if held else NOTHING, begin, end))
            held = held[1:] if queue else held
    table = columns(rows)
    gets, wrong = np.flatnonzero(~table.puts & (table.ret != NEVER)), rng.choice([0.0, 0.04, 0.15])
    for at in range(len(gets) - 1):
        if rng.random() < wrong:
            table.value[gets[[at, at + 1]]] = table.value[gets[[at + 1, at]]]
        elif rng.random() < wrong:
            table.failed[gets[at]] = True
    return table


def objects(
    model: Model, seed: int, logs: int = LOGS, again: float = 0.0, most: int = 0
) -> tuple[History, list[Columns]]:
    """A run with a small history on each partition, all at once, and the operations of each; times are
    indexes. ``again``: of the gets some are there several times. ``most``: all are of operations in turn, up
    to so many."""
    rng = random.Random(f"{model}/{seed}")
    topics = (TopicInfo(TOPIC, logs, 3, 2),)
    run = History(f"{model}-{seed}", workload=WORKLOADS[model], reads="marker", topics=topics)
    run.assignment().phase("main")
    tables, moments = [], []
    for log in range(logs):
        table = in_turn(model, rng, most or 40) if most or log % 6 == 0 else overlapping(model, rng)
        few = [row for row in range(len(table)) if not table.puts[row] and rng.random() < again]
        table = table.rows([*range(len(table)), *(few * 4)])
        tables.append(table)
        stamps = [(int(inv), 0, row) for row, inv in enumerate(table.inv)]
        stamps += [(int(ret), 1, row) for row, ret in enumerate(table.ret) if ret != NEVER]
        # Each history keeps its own order; of equal stamps invocations come first.
        times = sorted(rng.random() for _ in stamps)
        moments += [(time, log, *stamp[1:]) for time, stamp in zip(times, sorted(stamps), strict=True)]
    for _, log, done, row in sorted(moments):
        at = event_of(run, tables[log], log, row, log * 1000 + row, bool(done), rng)
        (tables[log].ret if done else tables[log].inv)[row] = at
    return run, tables


def event_of(
    run: History, table: Columns, log: int, row: int, process: int, done: bool, rng: random.Random
) -> int:
    put, value, failed = bool(table.puts[row]), int(table.value[row]), bool(table.failed[row])
    f = "send" if put else "read" if run.info.workload == "register" else "dequeue"
    offset = UNKNOWN if not done else FAILED if failed else rng.randrange(1000)
    records = (Record(log, offset, value),) if put or (done and value != NOTHING) else ()
    kind = Type.INVOKE if not done else Type.FAIL if failed else Type.OK
    run.event(process, kind, f, topic=TOPIC, partition=log, records=records)
    return len(run.events) - 1


def loaded(history: History, folder: Path, row_group: int | None) -> Run:
    run = open_run(history.write(folder, row_group))
    if row_group:
        run.splits = splits_of(0, run.files[0], events=1)
    return scanned(run, [scanned_split(split) for split in run.splits])


def expected(model: Model, tables: list[Columns]) -> Said:
    """What the exact checks say."""
    return {
        (
            log,
            str(one.rule),
            one.value,
            one.other,
            one.contradicted,
            frozenset(table.inv[[*one.rows]].tolist()),
        )
        for log, table in enumerate(tables)
        for one in CHECKS[model](table)
    }


def rough(said: Said) -> Said:
    """Of an empty answer that several stretches of time contradict together, how many values do is not the
    fewest; and of a long chain of values only the first are told."""
    return {(log, rule, value, *(() if rule == "not empty" else rest)) for log, rule, value, *rest in said}

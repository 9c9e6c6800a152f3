"""Writes the operations of a group's members as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from wrackline.proving.model.columns import (
    LOST_ERROR,
    TOPIC,
    Block,
    events,
    offsets_at,
    polls,
    rebalanced,
)
from wrackline.proving.model.drawing import Ints
from wrackline.proving.model.group_server import (
    COMMIT,
    COMMITTED,
    LOST,
    NONE,
    NOTHING,
    OK,
    POLL,
    REFUSED,
    Group,
)
from wrackline.proving.model.log_server import Outcome

_TYPES = {OK: "ok", REFUSED: "fail", LOST: "info"}
FENCED_ERROR = "ILLEGAL_GENERATION"


def members(outcome: Outcome, group: Group) -> Iterator[Block]:
    if not len(group.invoke_op):
        return
    yield from _subscriptions(outcome, group)
    yield from _rebalances(outcome, group)
    rows = np.flatnonzero(group.kind_op == POLL)
    yield from polls(outcome, group, rows, group.outcome_op[rows] == REFUSED)
    yield from _commits(outcome, group)
    yield from _asked(group)


def _subscriptions(outcome: Outcome, group: Group) -> Iterator[Block]:
    """Just before its first poll, which also tells it of partitions unless it is a newcomer that must
    wait."""
    there = np.flatnonzero(group.kind_op != NOTHING)
    first = there[np.diff(group.process_op[there], prepend=NONE) != 0]
    starts = np.diff(group.member_op, prepend=NONE) != 0
    first = first[group.joins_op[first] | starts[first]]
    expected = {"group": group.name, "partitions": list(range(outcome.knobs.partitions))}
    extra = [orjson.dumps(expected).decode()] * len(first)
    for before, kind in ((2, "invoke"), (1, "ok")):
        at = group.invoke_op[first] - before
        yield Block(at, group.process_op[first], kind, "subscribe", topic=TOPIC, extra=extra)


def _reported(outcome: Outcome, group: Group, row: int) -> dict[str, object]:
    """Returns the group, and member and generation where the client tells them."""
    said: dict[str, object] = {"group": group.name}
    if outcome.knobs.generations_told:
        said["member"] = f"{group.name}-{group.member_op[row]}"
        said["generation"] = int(group.generation_op[row])
    return said


def _rebalances(outcome: Outcome, group: Group) -> Iterator[Block]:
    """Yields the rebalances, each in the middle of a poll."""
    rows = np.flatnonzero(group.joins_op)
    answers = rebalanced(
        group, rows, group.begin_op, (_reported(outcome, group, row) for row in rows.tolist())
    )
    yield Block(group.asked_op[rows], group.process_op[rows], "ok", "rebalance", topic=TOPIC, extra=answers)


def _commits(outcome: Outcome, group: Group) -> Iterator[Block]:
    rows = np.flatnonzero(group.kind_op == COMMIT)
    extra = [
        orjson.dumps(
            {
                "offsets": offsets_at(
                    group.offset_op[row], np.flatnonzero(group.offset_op[row] != NONE).tolist()
                )
            }
            | _reported(outcome, group, row)
        ).decode()
        for row in rows.tolist()
    ]
    yield from _operations(group, rows, "commit", extra, extra, FENCED_ERROR)


def _asked(group: Group) -> Iterator[Block]:
    rows = np.flatnonzero(group.kind_op == COMMITTED)
    who: dict[str, Any] = {"group": group.name}
    everything = list(range(group.offset_op.shape[1]))
    answers = [
        orjson.dumps({"offsets": offsets_at(group.offset_op[row], everything)} | who).decode()
        for row in rows.tolist()
    ]
    extras = [orjson.dumps(who).decode()] * len(rows)
    yield from _operations(group, rows, "committed", extras, answers, LOST_ERROR)


def _operations(
    group: Group, rows: Ints, f: str, extras: list[str], answers: list[str], failure: str
) -> Iterator[Block]:
    """Invocations, and the completions that are on record."""
    yield events(group, rows, "invoke", f, extra=extras)
    outcomes = group.outcome_op[rows]
    for number, kind in _TYPES.items():
        done = np.flatnonzero(outcomes == number)
        texts = answers if number == OK else extras
        error = {OK: None, REFUSED: failure, LOST: LOST_ERROR}[number]
        extra = [texts[at] for at in done.tolist()]
        yield events(group, rows[done], kind, f, error=error, extra=extra)

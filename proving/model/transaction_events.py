"""Polls of transactions as events: in the form in which wrackline.history.jepsen imports Jepsen's
``:txn``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wrackline.history.labels import CONSUMERS
from wrackline.proving.model.columns import TOPIC, Block, given, positions
from wrackline.proving.model.log_server import Outcome


def polls(outcome: Outcome) -> Iterator[Block]:
    """A poll is invoked and completes with the sends of its transaction, and gives nothing where that
    aborts."""
    of, sends = outcome.transactions, outcome.sends
    if not len(of.op):
        return
    process, invoke, complete = sends.process_op[of.op] + CONSUMERS, sends.invoke_op, sends.complete_op
    joins = np.flatnonzero(of.joins_op)
    starts = positions(of.begin_op[joins], of.holds_op[joins])
    for before, kind in ((2, "invoke"), (1, "ok")):
        at = invoke[of.op[joins]] - before
        yield Block(at, process[joins], kind, "assign", topic=TOPIC, extra=starts)
    numbers = [f'"txn":{one}' for one in sends.txn_op[of.op].tolist()]
    bare = [f"{{{one}}}" for one in numbers]
    yield Block(invoke[of.op], process, "invoke", "poll", topic=TOPIC, extra=bare)
    for kind, mine in sends.kinds().items():
        rows = np.flatnonzero(mine[of.op] & sends.recorded_op[of.op])
        some = None
        extra: list[str | None] = [bare[row] for row in rows.tolist()]
        if kind == "ok":
            holds = of.holds_op[rows]
            some = given(outcome, of.begin_op[rows], of.end_op[rows], holds)
            stands = positions(of.end_op[rows], holds)
            extra = [f"{{{numbers[row]},{at[1:]}" for row, at in zip(rows.tolist(), stands, strict=True)]
        error = {"ok": None, "fail": "INVALID_TXN_STATE", "info": "_TIMED_OUT"}[kind]
        at = complete[of.op[rows]]
        yield Block(at, process[rows], kind, "poll", topic=TOPIC, records=some, error=error, extra=extra)

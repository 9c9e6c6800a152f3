"""Cases of sends and reads out of order."""

from __future__ import annotations

from tests.checkers.cases.base import A, B, C, D, case, two
from tests.checkers.histories import TOPIC, History
from wrackline.history.model import Record, Type


@case("append-order", append_order=1, not_linearizable=1)
def _(h: History) -> History:
    return h.send(1, (A, 1)).send(4, (B, 0)).drain((0, B), (1, A))


@case("good: concurrent sends in any order")
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B).complete_send(1, (A, 1))
    return h.complete_send(4, (B, 0)).drain((0, B), (1, A))


@case("good: order against a lost record is no order", lost_write=1, not_linearizable=1)
def _(h: History) -> History:
    return h.send(1, (A, 1)).send(4, (B, 0)).drain((0, B))


@case("session-order", session_order=1, append_order=1, not_linearizable=1)
def _(h: History) -> History:
    return h.send(1, (A, 1)).send(1, (B, 0)).drain((0, B), (1, A))


@case("good: several records of one operation")
def _(h: History) -> History:
    return h.send(1, (A, 0), (B, 1)).send(1, (C, 2)).drain((0, A), (1, B), (2, C))


@case("batch-order", batch_order=1)
def _(h: History) -> History:
    return h.send(1, (A, 1), (B, 0)).drain((0, B), (1, A))


@case("good: records of one operation in two partitions")
def _(h: History) -> History:
    records = (Record(0, 1, A), Record(1, 0, B), Record(0, 2, C))
    h.send(4, (D, 0)).event(1, Type.INVOKE, "send", topic=TOPIC, records=records)
    h.event(1, Type.OK, "send", topic=TOPIC, records=records)
    return h.drain((0, D), (1, A), (2, C)).drain((0, B), partition=1)


@case("poll-skip within one poll", poll_skip=1)
def _(h: History) -> History:
    h.send(1, (A, 0), (B, 1), (C, 2))
    return h.assign(2, 0).poll(2, (0, A), (2, C))


@case("poll-skip across polls", poll_skip=1)
def _(h: History) -> History:
    h.send(1, (A, 0), (B, 1), (C, 2))
    return h.assign(2, 0).poll(2, (0, A)).poll(2, (2, C)).drain((0, A), (1, B), (2, C))


@case("poll-skip right after assign", poll_skip=1)
def _(h: History) -> History:
    return two(h).assign(2, 0).poll(2, (1, B))


@case("good: a gap in which nothing is known")
def _(h: History) -> History:
    h.invoke_send(4, B)
    h.send(1, (A, 0)).send(1, (C, 2))
    return h.assign(2, 0).poll(2, (0, A), (2, C))


@case("good: a new assignment may go anywhere")
def _(h: History) -> History:
    h.send(1, (A, 0), (B, 1), (C, 2))
    return h.assign(2, 0).poll(2, (0, A)).assign(2, 2).poll(2, (2, C)).assign(2, 1).poll(2, (1, B), (2, C))


@case("poll-rewind across polls", poll_rewind=1)
def _(h: History) -> History:
    return two(h).assign(2, 0).poll(2, (0, A), (1, B)).poll(2, (1, B))


@case("poll-rewind within one poll", poll_rewind=1)
def _(h: History) -> History:
    return two(h).assign(2, 0).poll(2, (0, A), (1, B), (0, A), (1, B))


@case("good: where a rebalance puts a consumer it may go on")
def _(h: History) -> History:
    h.send(1, (A, 0), (B, 1), (C, 2)).assign(2, 0).poll(2, (0, A))
    h.event(2, Type.INVOKE, "poll", topic=TOPIC).rebalance(2, 1, p0=2)
    return h.event(2, Type.OK, "poll", topic=TOPIC, records=(Record(0, 2, C),)).drain((0, A), (1, B), (2, C))


@case("poll-rewind to before where a rebalance put it", poll_rewind=1)
def _(h: History) -> History:
    return two(h).rebalance(2, 1, p0=1).poll(2, (0, A), (1, B))

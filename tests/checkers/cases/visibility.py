"""Cases in which somebody sees too much or too little, or sees it too late."""

from __future__ import annotations

from tests.checkers.cases.base import A, B, C, case, two
from tests.checkers.histories import TOPIC, History
from wrackline.history.model import Record, Type


@case("stale-read", stale_read=1, not_linearizable=1)
def _(h: History) -> History:
    return two(h).end(3, 1).drain((0, A), (1, B))


@case("good: an end offset asked for before the ack came")
def _(h: History) -> History:
    h.send(1, (A, 0)).invoke_send(1, B)
    h.event(3, Type.INVOKE, "end", topic=TOPIC, partition=0).complete_send(1, (B, 1))
    h.event(3, Type.OK, "end", topic=TOPIC, partition=0, high_watermark=1)
    return h.drain((0, A), (1, B))


@case("future-read", future_read=1, not_linearizable=1)
def _(h: History) -> History:
    return h.assign(2, 0).poll(2, (0, A)).send(1, (A, 0)).drain((0, A))


@case("watermark-regression", watermark_regression=1, not_linearizable=1)
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B)
    return h.end(3, 2).end(3, 1).drain((0, A), (1, B))


@case("watermark-regression after a read", watermark_regression=1, not_linearizable=1)
def _(h: History) -> History:
    h.invoke_send(1, A)
    return h.assign(2, 0).poll(2, (0, A)).end(3, 0).drain((0, A))


@case("good: end offsets of overlapping operations")
def _(h: History) -> History:
    h.invoke_send(1, A)
    h.event(3, Type.INVOKE, "end", topic=TOPIC, partition=0)
    h.end(5, 1)
    h.event(3, Type.OK, "end", topic=TOPIC, partition=0, high_watermark=0)
    return h.drain((0, A))


@case("not-linearizable: sent after the log was known to be longer", not_linearizable=1)
def _(h: History) -> History:
    h.invoke_send(4, C)
    return h.end(3, 1).send(1, (A, 0)).drain((0, A), (1, C))


@case("not-linearizable: a hole in the final read", not_linearizable=1)
def _(h: History) -> History:
    h.invoke_send(4, C)
    return h.send(1, (A, 0)).send(1, (B, 2)).drain((0, A), (2, B))


@case("not-linearizable: an end offset that no send can account for", not_linearizable=1)
def _(h: History) -> History:
    return h.send(1, (A, 0)).end(3, 2)


@case("good: without idempotence a retry may account for it", idempotence=0)
def _(h: History) -> History:
    return h.send(1, (A, 0)).end(3, 2)


@case("good: a send of unknown outcome accounts for the end offset")
def _(h: History) -> History:
    return h.invoke_send(4, C).send(1, (A, 0)).end(3, 2)


@case("good: so does one that only a replica's own log has")
def _(h: History) -> History:
    return h.invoke_send(4, C).send(1, (A, 0)).end(3, 2).replicas((0, A, 0), (1, C, 0))


@case("good: two partitions have nothing to do with each other")
def _(h: History) -> History:
    h.send(1, (A, 0), partition=0)
    h.send(4, (B, 0), partition=1).end(3, 1, partition=1).end(3, 1, partition=0)
    return h.drain((0, A)).drain((0, B), partition=1)


@case("good: records read with leader epochs the client does not tell")
def _(h: History) -> History:
    records = (Record(0, 0, A, -1), Record(0, 1, B, -1))
    two(h).event(901, Type.INVOKE, "drain", topic=TOPIC, partition=0)
    return h.event(
        901,
        Type.OK,
        "drain",
        topic=TOPIC,
        partition=0,
        offset=0,
        high_watermark=2,
        records=records,
        extra={"complete": True},
    )

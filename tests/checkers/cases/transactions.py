"""Cases of transactions, and of sends of several records."""

from __future__ import annotations

from tests.checkers.cases.base import A, B, C, D, E, case, two
from tests.checkers.histories import TOPIC, History
from wrackline.history.model import FAILED, UNKNOWN, Record, Type


@case("write-cycle", write_cycle=1)
def _(h: History) -> History:
    one = (1, 1, ((0, 0, A), (1, 1, B)), ())
    other = (2, 4, ((0, 1, C), (1, 0, D)), ())
    return h.transaction(one, other).drain((0, A), (1, C)).drain((0, D), (1, B), partition=1)


@case("write-cycle that reads lead into and out of", write_cycle=1, write_read_cycle=1)
def _(h: History) -> History:
    """Neither hides the other."""
    first = (1, 1, ((0, 0, A),), ((0, 2, C),))
    one, other = (2, 4, ((0, 1, B), (1, 1, D)), ()), (3, 5, ((0, 2, C), (1, 0, E)), ())
    h.transaction(first, one, other)
    return h.drain((0, A), (1, B), (2, C)).drain((0, E), (1, D), partition=1)


@case("write-cycle within which a transaction reads the other", write_cycle=1)
def _(h: History) -> History:
    one = (1, 1, ((0, 0, A), (1, 1, B)), ())
    other = (2, 4, ((0, 1, C), (1, 0, D)), ((0, 0, A),))
    return h.transaction(one, other).drain((0, A), (1, C)).drain((0, D), (1, B), partition=1)


@case("read-cycle", read_cycle=1)
def _(h: History) -> History:
    one = (1, 1, ((0, 0, A),), ((1, 0, B),))
    other = (2, 4, ((1, 0, B),), ((0, 0, A),))
    return h.transaction(one, other).drain((0, A)).drain((0, B), partition=1)


@case("write-cycle through real time", write_cycle=1)
def _(h: History) -> History:
    values = (Record(0, 0, A), Record(1, 1, B))
    asked = tuple(record._replace(offset=UNKNOWN) for record in values)
    h.event(1, Type.INVOKE, "send", topic=TOPIC, records=asked, extra={"txn": 1})
    h.transaction((2, 4, ((0, 1, C),), ())).transaction((3, 5, ((1, 0, D),), ()))
    h.event(1, Type.OK, "send", topic=TOPIC, records=values, extra={"txn": 1})
    return h.drain((0, A), (1, C)).drain((0, D), (1, B), partition=1)


@case("precommitted-read", precommitted_read=1)
def _(h: History) -> History:
    h.transaction((1, 1, ((0, 0, A),), ((0, 0, A),))).transaction((2, 4, ((0, 1, B),), ((0, 0, A),)))
    return h.drain((0, A), (1, B))


@case("good: transactions one after another, read by the next")
def _(h: History) -> History:
    h.transaction((1, 1, ((0, 0, A), (1, 0, B)), ())).transaction(
        (2, 4, ((0, 1, C),), ((0, 0, A), (1, 0, B)))
    )
    return h.drain((0, A), (1, C)).drain((0, B), partition=1)


def sends(h: History, *begun: tuple[int, tuple[tuple[int, int, int], ...]]) -> History:
    """Sends that overlap: (process, records as (partition, offset, value))."""
    for process, sent in begun:
        h.event(
            process,
            Type.INVOKE,
            "send",
            topic=TOPIC,
            records=tuple(Record(p, UNKNOWN, value) for p, _, value in sent),
        )
    for process, sent in begun:
        h.event(process, Type.OK, "send", topic=TOPIC, records=tuple(Record(*one) for one in sent))
    return h


@case("good: plain sends to two partitions, in another order in each")
def _(h: History) -> History:
    sends(h, (1, ((0, 0, A), (1, 1, B))), (2, ((0, 1, C), (1, 0, D))))
    return h.drain((0, A), (1, C)).drain((0, D), (1, B), partition=1)


@case("good: one plain send lies between another's records")
def _(h: History) -> History:
    sends(h, (1, ((0, 0, A), (0, 3, B))), (2, ((0, 1, C), (0, 2, D))))
    return h.drain((0, A), (1, C), (2, D), (3, B))


@case("good: plain sends that go in a circle through real time")
def _(h: History) -> History:
    asked = (Record(0, UNKNOWN, A), Record(1, UNKNOWN, B))
    h.event(1, Type.INVOKE, "send", topic=TOPIC, records=asked)
    sends(h, (2, ((0, 1, C), (0, 2, C + 1))))
    sends(h, (3, ((1, 0, D), (1, 1, D + 1))))
    h.event(1, Type.OK, "send", topic=TOPIC, records=(Record(0, 0, A), Record(1, 2, B)))
    return h.drain((0, A), (1, C), (2, C + 1)).drain((0, D), (1, D + 1), (2, B), partition=1)


@case("no circle through an offset that a lost record had", lost_write=1)
def _(h: History) -> History:
    sends(h, (1, ((0, 0, A), (0, 3, B))), (2, ((0, 1, C), (0, 2, D))))
    return h.drain((0, A), (1, C), (2, D))


@case("good: sends to two partitions, one after another in both")
def _(h: History) -> History:
    sends(h, (1, ((0, 0, A), (1, 0, B))), (2, ((0, 1, C), (1, 1, D))))
    return h.drain((0, A), (1, C)).drain((0, B), (1, D), partition=1)


@case("good: a send of one record lies between another's records")
def _(h: History) -> History:
    sends(h, (1, ((0, 0, A), (0, 2, B))), (2, ((0, 1, C),)))
    return h.drain((0, A), (1, C), (2, B))


def asked_to(h: History, n: int, process: int, kind: Type, asked: str, *sent: Record) -> History:
    """A transaction whose end is asked for right before this completion."""
    extra = {"txn": n, "asked": asked, "end_ns": h.clock_ns}
    codes = {Type.INFO: UNKNOWN, Type.FAIL: FAILED}
    records = tuple(record._replace(offset=codes.get(kind, record.offset)) for record in sent)
    asked_for = tuple(record._replace(offset=UNKNOWN) for record in sent)
    h.event(process, Type.INVOKE, "send", topic=TOPIC, records=asked_for, extra={"txn": n})
    return h.event(process, kind, "send", topic=TOPIC, records=records, extra=extra)


@case("torn-transaction", torn_transaction=1)
def _(h: History) -> History:
    asked_to(h, 1, 1, Type.INFO, "commit", Record(0, 0, A), Record(1, 0, B))
    return h.drain((0, A)).drain(partition=1)


@case("torn-transaction that was committed", torn_transaction=1, lost_write=1)
def _(h: History) -> History:
    asked_to(h, 1, 1, Type.OK, "commit", Record(0, 0, A), Record(1, 0, B))
    return h.drain((0, A)).drain(partition=1)


@case("aborted-read of a transaction and of one whose abort failed", aborted_read=3)
def _(h: History) -> History:
    asked_to(h, 1, 1, Type.FAIL, "abort", Record(0, 0, A))
    asked_to(h, 2, 2, Type.INFO, "abort", Record(0, 1, B), Record(1, 0, C), Record(1, 1, D))
    return h.drain((0, A), (1, B)).drain((0, C), partition=1)


@case("good: transactions that were committed, aborted, or nobody knows")
def _(h: History) -> History:
    asked_to(h, 1, 1, Type.OK, "commit", Record(0, 0, A), Record(1, 0, B))
    asked_to(h, 2, 2, Type.FAIL, "abort", Record(0, 1, C))
    asked_to(h, 3, 3, Type.INFO, "commit", Record(0, 1, D), Record(1, 1, E))
    return h.drain((0, A), (1, D)).drain((0, B), (1, E), partition=1)


@case("write-read-cycle", write_read_cycle=1)
def _(h: History) -> History:
    one = (1, 1, ((0, 0, A),), ((1, 0, C),))
    other = (2, 4, ((0, 1, B), (1, 0, C)), ())
    return h.transaction(one, other).drain((0, A), (1, B)).drain((0, C), partition=1)


def given_to_an_aborted_transaction(h: History) -> History:
    """The first of two records, to a consumer that reads for a group."""
    two(h)
    for kind in (Type.INVOKE, Type.OK):
        h.event(3, kind, "assign", topic=TOPIC, extra={"positions": {"0": 0}, "group": "g"})
    h.event(3, Type.INVOKE, "poll", topic=TOPIC, extra={"txn": 9})
    undone = {"txn": 9, "aborted": "fail"}
    h.event(3, Type.OK, "poll", topic=TOPIC, records=(Record(0, 0, A),), extra=undone)
    return asked_to(h, 4, 9, Type.FAIL, "abort", Record(0, 2, C))


@case("unprocessed-input", unprocessed_input=1)
def _(h: History) -> History:
    return given_to_an_aborted_transaction(h).poll(3, (1, B)).commit(5, 2, 1).drain((0, A), (1, B))


@case("good: what an aborted transaction was given is processed later")
def _(h: History) -> History:
    given_to_an_aborted_transaction(h).assign(3, 0).poll(3, (0, A), (1, B))
    return h.commit(5, 2, 1).drain((0, A), (1, B))

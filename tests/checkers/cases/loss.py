"""Cases that lose records."""

from __future__ import annotations

from tests.checkers.cases.base import A, B, C, case, two
from tests.checkers.histories import History
from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, Type


@case("lost-write at the tail", lost_write=1)
def _(h: History) -> History:
    return two(h).drain((0, A))


@case(
    "lost-write in the middle, another value there", lost_write=1, inconsistent_offset=1, not_linearizable=1
)
def _(h: History) -> History:
    return two(h).send(4, (C, 1)).drain((0, A), (1, C))


@case("lost-write in the middle, nothing there", lost_write=1, not_linearizable=1)
def _(h: History) -> History:
    return two(h).send(4, (C, 2)).drain((0, A), (2, C))


@case("lost-write at an unknown offset", lost_write=1)
def _(h: History) -> History:
    return h.send(1, (A, 0)).send(1, (B, ACKED_WITHOUT_OFFSET)).drain((0, A))


@case("lost-write of one record of several", lost_write=1)
def _(h: History) -> History:
    return h.send(1, (A, 0), (B, 1)).drain((0, A))


@case("good: the final read did not reach the end, so nothing was lost")
def _(h: History) -> History:
    return two(h).drain((0, A), end=2, complete=False)


@case("good: no final read at all")
def _(h: History) -> History:
    return two(h)


@case("good: an acked value without offset is in the final read")
def _(h: History) -> History:
    return h.send(1, (A, ACKED_WITHOUT_OFFSET)).drain((0, A))


@case("good: a send of unknown outcome may be there or not")
def _(h: History) -> History:
    return h.send(1, (A, UNKNOWN), kind=Type.INFO).send(4, (B, UNKNOWN), kind=Type.INFO).drain((0, A))


@case("good: an invocation that never completed")
def _(h: History) -> History:
    return h.invoke_send(1, A).send(4, (B, 0)).end(3, 2).drain((0, B), (1, A))


@case("good: a completion that does not repeat its records says nothing of them")
def _(h: History) -> History:
    return h.invoke_send(1, A).complete_send(1, kind=Type.INFO).drain((0, A))


@case("vanished-read at the tail", vanished_read=1)
def _(h: History) -> History:
    h.send(1, (A, 0)).send(4, (B, UNKNOWN), kind=Type.INFO)
    return h.assign(2, 0).poll(2, (0, A), (1, B)).drain((0, A))


@case("vanished-read, acked as well", vanished_read=1, lost_write=1)
def _(h: History) -> History:
    return two(h).assign(2, 0).poll(2, (0, A), (1, B)).drain((0, A))


@case("lost-committed, with the largest end of several", lost_committed=1)
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B).end(3, 2).end(3, 3).end(3, 3)
    return h.drain((0, A))


@case("lost-committed beside what lost it", lost_committed=1, lost_write=1)
def _(h: History) -> History:
    return two(h).end(3, 2).drain((0, A))


@case("good: an end offset asked for after the final read")
def _(h: History) -> History:
    return h.send(1, (A, 0)).invoke_send(4, B).drain((0, A)).end(3, 2)


@case("lost-on-replica of what nobody knew the outcome of", lost_on_replica=1)
def _(h: History) -> History:
    h.send(1, (A, 0)).invoke_send(4, B).drain((0, A, 0), (1, B, 0))
    return h.replica("n1", (0, A, 0), (1, B, 0)).replica("n2", (0, A, 0))


@case("good: a replica begins later than the final read")
def _(h: History) -> History:
    two(h).drain((0, A, 0), (1, B, 0))
    return h.replica("n1", (0, A, 0), (1, B, 0)).replica("n2", (1, B, 0), start=1)


@case("lost-on-replica", lost_on_replica=1)
def _(h: History) -> History:
    two(h).drain((0, A, 0), (1, B, 0))
    return h.replica("n1", (0, A, 0), (1, B, 0)).replica("n2", (0, A, 0)).replica("n3", (0, A, 0), (1, B, 0))


@case("good: a replica out of the ISR may lack records")
def _(h: History) -> History:
    two(h).drain((0, A, 0), (1, B, 0))
    return h.replica("n1", (0, A, 0), (1, B, 0)).replica("n2", (0, A, 0), in_isr=False)


@case("good: a replica that was not read whole proves nothing")
def _(h: History) -> History:
    two(h).drain((0, A, 0), (1, B, 0))
    return h.replica("n1", (0, A, 0), (1, B, 0)).replica("n2", (0, A, 0), complete=False)

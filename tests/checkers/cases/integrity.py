"""Cases in which records are not what was sent."""

from __future__ import annotations

from tests.checkers.cases.base import A, B, C, D, case, two
from tests.checkers.histories import History
from wrackline.history.model import ACKED_WITHOUT_OFFSET, CORRUPT, FAILED, FOREIGN, Type


@case("inconsistent-offset between two acks", inconsistent_offset=1, not_linearizable=1)
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B).complete_send(1, (A, 0))
    return h.complete_send(4, (B, 0))


@case("inconsistent-offset between polls", inconsistent_offset=1, not_linearizable=1)
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B)
    return h.assign(2, 0).poll(2, (0, A)).assign(3, 0).poll(3, (0, B))


@case("replica-divergence in value", replica_divergence=1)
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B)
    return h.replica("n1", (0, A, 0)).replica("n2", (0, B, 0))


@case("replica-divergence in leader epoch", replica_divergence=1)
def _(h: History) -> History:
    h.send(1, (A, 0)).drain((0, A, 1))
    return h.replica("n1", (0, A, 0)).replica("n2", (0, A, 1))


@case("good: replicas may differ above a high watermark")
def _(h: History) -> History:
    h.send(1, (A, 0)).invoke_send(4, B)
    h.invoke_send(5, C)
    return h.replica("n1", (0, A, 0), (1, B, 0)).replica("n2", (0, A, 0), (1, C, 1), hw=1)


@case("duplicate in the final read", duplicate=1)
def _(h: History) -> History:
    return h.send(1, (A, 0)).drain((0, A), (1, A))


@case("duplicate of a value of unknown outcome", duplicate=2)
def _(h: History) -> History:
    return h.invoke_send(1, A).drain((0, A), (1, A), (2, A))


@case(
    "wrong-offset: acked at one offset, found at another",
    wrong_offset=1,
    inconsistent_offset=1,
    not_linearizable=1,
)
def _(h: History) -> History:
    return h.invoke_send(4, B).send(1, (A, 1)).drain((0, A), (1, B))


@case("wrong-offset of a poll, which is no duplicate and vanished nowhere", wrong_offset=1)
def _(h: History) -> History:
    h.invoke_send(1, A).assign(2, 1).poll(2, (1, A))
    return h.drain((0, A))


@case("wrong-offset beside a copy", wrong_offset=1, duplicate=1)
def _(h: History) -> History:
    return h.send(1, (A, 5)).drain((0, A), (1, A))


@case("duplicate, where the acked offset may lie past what was read", duplicate=1, idempotence=0)
def _(h: History) -> History:
    return h.send(1, (A, 5)).drain((0, A), end=6, complete=False)


@case("aborted-read by a poll", aborted_read=1)
def _(h: History) -> History:
    return h.send(1, (A, FAILED), kind=Type.FAIL).assign(2, 0).poll(2, (0, A))


@case("aborted-read in the final read", aborted_read=1)
def _(h: History) -> History:
    return h.send(1, (A, FAILED), kind=Type.FAIL).drain((0, A))


@case("good: a failed value that nobody saw")
def _(h: History) -> History:
    return h.send(1, (A, FAILED), kind=Type.FAIL).send(1, (B, 0)).drain((0, B))


@case("phantom", phantom=1)
def _(h: History) -> History:
    return h.send(1, (A, 0)).drain((0, A), (1, D))


@case("phantom of another run", phantom=2)
def _(h: History) -> History:
    return h.drain((0, FOREIGN), (1, FOREIGN))


@case("phantom in a replica's log alone", phantom=1)
def _(h: History) -> History:
    return h.send(1, (A, 0)).drain((0, A, 0)).replica("n1", (0, A, 0), (1, D, 0))


@case("misrouted", misrouted=1)
def _(h: History) -> History:
    return h.invoke_send(1, A, partition=0).drain(partition=0).drain((0, A), partition=1)


@case("misrouted though acked: it is not lost", misrouted=1)
def _(h: History) -> History:
    return h.send(1, (A, ACKED_WITHOUT_OFFSET)).drain((0, A), partition=1)


@case("corrupt", corrupt=2)
def _(h: History) -> History:
    h.invoke_send(1, A).invoke_send(4, B)
    wrong = [{"partition": 0, "offset": 0, "detail": "checksum 1, content 2"}]
    return h.assign(2, 0).poll(2, (0, CORRUPT), corrupt=wrong).drain((0, CORRUPT), (1, CORRUPT))


@case("epoch-order in the final read", epoch_order=1)
def _(h: History) -> History:
    return two(h).drain((0, A, 3), (1, B, 2))


@case("epoch-order in one replica", epoch_order=1)
def _(h: History) -> History:
    two(h).drain((0, A, 1), (1, B, 1))
    return h.replica("n1", (0, A, 1), (1, B, 1)).replica("n2", (0, A, 1), (1, B, 0), hw=1)

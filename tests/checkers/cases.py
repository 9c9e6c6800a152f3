"""Tiny hand-written histories, named after the anomaly: each bad one shows it, and nothing but what follows
from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.checkers.histories import TOPIC, History
from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    CORRUPT,
    FAILED,
    FOREIGN,
    UNKNOWN,
    Record,
    TopicInfo,
    Type,
)

A, B, C, D, E = 160, 176, 192, 208, 224
"""Values."""


@dataclass(frozen=True)
class Case:
    name: str
    history: History
    expected: dict[str, int]
    """Anomaly -> how many findings. Nothing else may be found."""


Build = Callable[[History], History]
_CASES: list[tuple[str, dict[str, int], Build, dict[str, object]]] = []


def case(name: str, **expected: int) -> Callable[[Build], Build]:
    """Expected counts by anomaly, with ``_`` for ``-``; ``idempotence=False`` changes the run."""

    def add(build: Build) -> Build:
        changes: dict[str, object] = {}
        if "idempotence" in expected:
            changes["idempotence"] = bool(expected.pop("idempotence"))
        found = {anomaly.replace("_", "-"): count for anomaly, count in expected.items()}
        _CASES.append((name, found, build, changes))
        return build

    return add


def all_cases() -> list[Case]:
    return [
        Case(name, build(History(f"case {name}", topics=(TopicInfo(TOPIC, 2, 3, 2),), **changes)), expected)
        for name, expected, build, changes in _CASES
    ]


def two(h: History) -> History:
    """A at 0 and B at 1, acked one after the other."""
    return h.send(1, (A, 0)).send(1, (B, 1))


@case("good: nothing special")
def _(h: History) -> History:
    return (
        two(h)
        .assign(2, 0)
        .poll(2, (0, A), (1, B))
        .end(3, 2)
        .drain((0, A, 0), (1, B, 0))
        .replicas((0, A, 0), (1, B, 0))
    )


# --- loss


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


# --- integrity


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


# --- order


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


# --- transactions


@case("write-cycle", write_cycle=1)
def _(h: History) -> History:
    one = (1, 1, ((0, 0, A), (1, 1, B)), ())
    other = (2, 4, ((0, 1, C), (1, 0, D)), ())
    return h.transaction(one, other).drain((0, A), (1, C)).drain((0, D), (1, B), partition=1)


@case("write-cycle that reads lead into and out of", write_cycle=1, read_cycle=1)
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


# --- groups


def read_by_a_group(h: History) -> History:
    """Two records, given to the only member of a group."""
    return two(h).rebalance(2, 1, p0=0).poll(2, (0, A), (1, B))


@case("good: a group that commits what it was given")
def _(h: History) -> History:
    read_by_a_group(h).commit(2, 1, 1).commit(2, 2, 1).committed(3, 2)
    return h.rebalance(4, 2, p0=2).commit(4, 2, 2).drain((0, A), (1, B))


@case("commit-regression by a commit", commit_regression=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 2, 1).commit(2, 1, 1).drain((0, A), (1, B))


@case("commit-regression seen by a reader", commit_regression=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 1, 1).commit(2, 2, 1).committed(3, 1).drain((0, A), (1, B))


@case("good: a consumer that was put back commits less")
def _(h: History) -> History:
    read_by_a_group(h).commit(2, 2, 1).assign(2, 0).poll(2, (0, A)).commit(2, 1, 1).committed(3, 1)
    return h.drain((0, A), (1, B))


@case("commit-beyond-end", commit_beyond_end=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 3, 1).drain((0, A), (1, B))


@case("group-skip", group_skip=1)
def _(h: History) -> History:
    two(h).send(1, (C, 2)).rebalance(2, 1, p0=0).poll(2, (0, A)).rebalance(2, 2, p0=2).poll(2, (2, C))
    return h.commit(2, 3, 2).drain((0, A), (1, B), (2, C))


@case("zombie-commit", zombie_commit=1)
def _(h: History) -> History:
    read_by_a_group(h).rebalance(4, 2, p0=0).poll(4, (0, A), (1, B))
    return h.commit(2, 2, 1).drain((0, A), (1, B))


@case("good: the commit of a fenced member fails")
def _(h: History) -> History:
    read_by_a_group(h).rebalance(4, 2, p0=0).poll(4, (0, A), (1, B))
    return h.commit(2, 2, 1, kind=Type.FAIL).drain((0, A), (1, B))


# --- visibility


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

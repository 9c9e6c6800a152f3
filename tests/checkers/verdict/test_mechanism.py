"""How an incident came about, in sentences: what the cluster's own history says of the change of leader."""

from __future__ import annotations

from tests.checkers.incident_parts import part
from wrackline.checkers.inputs.cluster_history import exact_spans
from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.sentences import mechanism
from wrackline.checkers.verdict.leadership import Leaders, leaders_of
from wrackline.history.model import CONTROL, PARTITION, Event, Type

NODES = {"1": "n1", "2": "n2", "3": "n3"}
Ids = tuple[int, ...]


def change(
    at_s: float, leader: int, epoch: int, isr: Ids, elr: Ids = (), last: Ids = (), **more: bool
) -> Event:
    extra = {"at_ns": int(at_s * 1e9), "leader": leader, "partition_epoch": 0, "replicas": [1, 2, 3]}
    extra |= {"isr": list(isr), "elr": list(elr), "last_known_elr": list(last), **more}
    return Event(CONTROL, Type.INFO, PARTITION, topic="log", partition=0, leader_epoch=epoch, extra=extra)


LAST_KNOWN_LEADER = [
    change(1, 1, 0, (1, 2, 3)),
    change(4, 1, 0, (1,), (2,)),
    change(9, -1, 1, (), (1, 2), (1,)),
    change(10, -1, 1, (), (1,), (1,)),
    change(12, -1, 1, (), (), (1,)),
    change(12.5, 1, 2, (1,), recovering=True),
    change(13, 1, 2, (1,)),
]
"""B59 on Kafka 4.4.0: the leader is the last in the ISR, loses its power, and is elected when it is back."""


def leaders(*changes: Event) -> Leaders:
    return leaders_of(exact_spans(changes, NODES, 20_000_000_000)["log-0"], is_exact=True)


def told(found: Leaders) -> list[str]:
    lost = part("lost-write", ("log", 0), 3, 5)
    return mechanism(Joined.of(lost), found.changes[-1], found, (0, 1))


def test_a_leader_that_was_elected_uncleanly_after_a_time_without_one() -> None:
    found = leaders(*LAST_KNOWN_LEADER)
    assert len(found.changes) == 1
    assert told(found) == [
        "n1 led log-0 until 9.0 s, in leader epoch 0, with n1 in the ISR and n2 in the ELR.",
        "Nobody led it until 12.5 s, with nobody in the ISR, n1 and n2 in the ELR and n1 in LastKnownELR.",
        "n2 left the ELR at 10.0 s and n1 left the ELR at 12.0 s.",
        "n1 led it again from 12.5 s on, elected uncleanly, in leader epoch 2, with n1 in the ISR.",
    ]


def test_a_leader_that_follows_another_at_once() -> None:
    found = leaders(change(1, 1, 0, (1, 2), (3,)), change(9, 2, 1, (2,), (1,)))
    assert told(found) == [
        "n1 led log-0 until 9.0 s, in leader epoch 0, with n1 and n2 in the ISR and n3 in the ELR.",
        "n2 led it from then on, in leader epoch 1, with n2 in the ISR and n1 in the ELR.",
    ]


def test_an_earlier_time_without_a_leader_is_of_another_change() -> None:
    found = leaders(
        change(1, 1, 0, (1, 2)),
        change(4, -1, 1, (1, 2)),
        change(5, 2, 2, (2,)),
        change(9, -1, 3, (2,)),
        change(12, 1, 4, (1,)),
    )
    assert [len(one.vacant) for one in found.changes] == [1, 1]
    assert told(found)[0] == "n2 led log-0 until 9.0 s, in leader epoch 2, with n2 in the ISR."


def test_what_metadata_do_not_say_is_left_out() -> None:
    found = leaders(change(1, 1, -1, ()), change(5, -1, -1, ()), change(9, 2, -1, ()))
    assert told(found) == [
        "n1 led log-0 until 5.0 s.",
        "Nobody led it until 9.0 s.",
        "n2 led it from 9.0 s on.",
    ]


def test_an_epoch_that_several_leaders_had_names_none_of_them() -> None:
    """Profile zk08 has no leader epochs."""
    known = leaders(change(1, 1, 4, (1, 2)), change(5, 2, 5, (2,)), change(9, 1, 6, (1,)))
    assert [known.of_epoch(epoch) for epoch in (4, 5, 6, 7)] == [None, 1, 2, None]
    unknown = leaders(change(1, 1, 0, (1, 2)), change(5, 2, 0, (2,)), change(9, 1, 0, (1,)))
    assert unknown.of_epoch(0) is None

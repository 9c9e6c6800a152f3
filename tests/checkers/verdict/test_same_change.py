"""One change of leaders that several partitions paid for."""

from __future__ import annotations

from tests.checkers.incident_parts import part
from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.same_change import Loss, headline_of, is_loss, said_of, together
from wrackline.checkers.verdict.leadership import Change

SECOND = 1_000_000_000


def loss(partition: int, at_s: float, before: str, after: str, lost: int = 3) -> Loss:
    at_ns = int(at_s * SECOND)

    def span(leader: str) -> LeaderSpan:
        return LeaderSpan("log", partition, 0, at_ns, leader, 0, (), (), ())

    lost_there = part("lost-write", ("log", partition), 0, lost - 1, at_end=True)
    change = Change(at_ns, at_ns, at_ns, span(before), span(after))
    return Loss(Joined.of(lost_there), change, ("log", partition))


def partitions(groups: list[list[Loss]]) -> list[list[int]]:
    return [[one.place[1] for one in group] for group in groups]


def test_a_node_that_becomes_leader_of_several() -> None:
    found = [loss(2, 15.9, "n2", "n3", 3), loss(0, 15.8, "n1", "n3", 5), loss(1, 15.8, "n1", "n3", 1)]
    [group] = together(found)
    assert headline_of(group, Meaning.VIOLATION) == (
        "9 acknowledged records of log-0, log-1 and log-2 are gone since n3 became their leader at 15.8 s"
    )
    assert said_of(found[1], group) == (
        "n3 became leader of log-1 and log-2 within the same second, and those partitions lost records too."
    )


def test_a_node_that_ceases_to_lead_several() -> None:
    found = [loss(0, 15.8, "n1", "n2"), loss(1, 15.8, "n1", "n3")]
    [group] = together(found)
    assert headline_of(group, Meaning.VIOLATION) == (
        "6 acknowledged records of log-0 and log-1 are gone since n1 ceased to lead them at 15.8 s"
    )
    assert said_of(found[0], group) == (
        "n1 ceased to lead log-1 within the same second, and that partition lost records too."
    )


def test_names_of_many_partitions_are_counted() -> None:
    found = [loss(partition, 15.8, "n1", "n2", 1) for partition in range(12)]
    [group] = together(found)
    assert headline_of(group, Meaning.VIOLATION).startswith(
        "12 acknowledged records of log-0, log-1, log-2 and 9 more partitions are gone"
    )


def test_changes_apart_in_time_or_of_other_nodes_are_other_changes() -> None:
    assert together([loss(0, 15.8, "n1", "n2"), loss(1, 16.9, "n1", "n2")]) == []
    assert together([loss(0, 15.8, "n1", "n2"), loss(1, 15.8, "n3", "n4")]) == []
    assert together([loss(0, 15.8, "n1", "n2"), loss(0, 16.0, "n1", "n2")]) == []
    found = [loss(0, 15.8, "n1", "n2"), loss(1, 15.8, "n1", "n3"), loss(2, 15.8, "n3", "n1")]
    found += [loss(3, 15.9, "n4", "n1"), loss(0, 30.0, "n1", "n2"), loss(1, 30.5, "n1", "n2")]
    assert partitions(together(found)) == [[0, 1], [2, 3], [0, 1]]


def test_what_another_contract_allows_is_no_loss_of_this_one() -> None:
    one = loss(0, 15.8, "n1", "n2").incident
    assert is_loss(one, Meaning.VIOLATION)
    assert not is_loss(one, Meaning.ALLOWED)

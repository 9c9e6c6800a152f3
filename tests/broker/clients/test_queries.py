"""The question of a guided schedule, put to real brokers: who answers, who refuses, and what is on record."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster
from tests.nemesis.doubles import Recorded
from wrackline.fleets.base import Host
from wrackline.history.model import ASKER, Event, Type
from wrackline.nemesis.guided import queries
from wrackline.nemesis.guided.steps import AskEnd, GuidedError
from wrackline.systems.base import Node

pytestmark = pytest.mark.real

FLEET: Any = SimpleNamespace(entered=nullcontext)
"""Brokers on loopback are in this network already."""


def asked(cluster: Cluster, who: int, told_by: int) -> list[Event]:
    """What is on record of a question to one broker by a client that knows what another one knows."""
    nodes = [
        Node(number, Host(f"n{number}", "127.0.0.1"), frozenset({"broker"}), broker.port)
        for number, broker in cluster.brokers.items()
    ]
    system: Any = SimpleNamespace(nodes=nodes)
    recorded = Recorded()
    queries.ask_end(FLEET, system, AskEnd(f"n{who}", f"n{told_by}", "asked", 0), recorded.record)
    return recorded.events


@pytest.fixture(scope="module")
def leader(cluster: Cluster) -> int:
    cluster.create_topic("asked")
    produce(cluster.bootstrap, "asked", [b"1", b"2", b"3"])
    return cluster.leader("asked")


def test_a_leader_answers_whose_epoch_the_client_knows(cluster: Cluster, leader: int) -> None:
    told_by = leader % 3 + 1
    invoke, answer = asked(cluster, leader, told_by)
    assert (invoke.process, invoke.type, invoke.f) == (ASKER, Type.INVOKE, "end")
    assert (invoke.topic, invoke.partition) == ("asked", 0)
    assert (answer.process, answer.type, answer.f, answer.high_watermark) == (ASKER, Type.OK, "end", 3)
    assert answer.latency_ns is not None


def test_one_that_does_not_lead_refuses(cluster: Cluster, leader: int) -> None:
    _, answer = asked(cluster, leader % 3 + 1, leader)
    assert (answer.type, answer.high_watermark) == (Type.FAIL, None)
    assert "not_leader_or_follower" in (answer.error or "")


def test_one_that_knows_no_such_epoch_refuses(
    cluster: Cluster, leader: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a leader that was paused while another was elected."""
    monkeypatch.setattr(queries, "_leader_epoch", lambda *_: 1_000)
    _, answer = asked(cluster, leader, leader)
    assert answer.type is Type.FAIL
    assert "unknown_leader_epoch" in (answer.error or "")


def test_where_nobody_tells_the_epoch_the_question_cannot_be_put() -> None:
    nodes = [Node(1, Host("n1", "127.0.0.1"), frozenset({"broker"}), 1)]
    system: Any = SimpleNamespace(nodes=nodes)
    recorded = Recorded()
    with pytest.raises(GuidedError, match="n1 could not be asked where asked ends: cannot connect"):
        queries.ask_end(FLEET, system, AskEnd("n1", "n1", "asked", 0), recorded.record)
    assert recorded.events == []

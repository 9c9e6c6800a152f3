"""Sessions and connections in virtual time, seen from the inbox of each client: what `test_coordination` does
not ask both carriers for."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.broker.model.coordination import (
    Coordinate,
    Coordinated,
    Create,
    Get,
    OpenSession,
    Operation,
    Outcome,
    SessionChanged,
    SessionState,
    Set,
)
from wrackline.broker.model.types import NodeId
from wrackline.zookeeper.simulator.ensemble import ZOOKEEPER, Ensemble, Event

TIMEOUT_MS = 3_000


class World:
    """A clock, cuts and inboxes."""

    def __init__(self, seed: int = 0) -> None:
        self.now_ms = 0.0
        self.cuts: dict[tuple[NodeId, NodeId], int] = {}
        self.lives: dict[NodeId, int] = {}
        self.paused: set[NodeId] = set()
        self.inbox: dict[NodeId, list[Event]] = {}
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = 0
        self.zookeeper = Ensemble(self, seed)

    def at(self, when_ms: float, action: Callable[[], object]) -> None:
        self._numbers += 1
        heappush(self._queue, (max(when_ms, self.now_ms), self._numbers, action))

    def life(self, node: NodeId) -> int:
        return self.lives.get(node, 0)

    def is_paused(self, node: NodeId) -> bool:
        return node in self.paused

    def tell(self, node: NodeId, event: Event) -> None:
        self.inbox.setdefault(node, []).append(event)

    def run(self, ms: float) -> None:
        end = self.now_ms + ms
        while self._queue and self._queue[0][0] <= end:
            self.now_ms, _, action = heappop(self._queue)
            action()
        self.now_ms = end

    def open(self, node: NodeId) -> None:
        self.lives[node] = self.lives.get(node, 0) + 1
        self.zookeeper.open(node, OpenSession(TIMEOUT_MS))
        self.run(50)

    def ask(self, node: NodeId, correlation: int, operation: Operation) -> None:
        self.zookeeper.ask(node, Coordinate(correlation, operation))

    def states(self, node: NodeId) -> list[SessionState]:
        return [event.state for event in self.inbox[node] if isinstance(event, SessionChanged)]

    def outcome(self, node: NodeId, correlation: int) -> Outcome:
        [answer] = [
            event.answer
            for event in self.inbox[node]
            if isinstance(event, Coordinated) and event.correlation == correlation
        ]
        return answer.outcome


@pytest.fixture
def world() -> World:
    made = World()
    for node in (1, 2):
        made.open(node)
    made.ask(1, 1, Create("/leader", b"1", ephemeral=True))
    made.ask(2, 1, Get("/leader", watch=True))
    made.run(50)
    return made


def test_a_killed_process_keeps_its_nodes_until_its_time_is_over(world: World) -> None:
    world.lives[1] = 0
    world.run(TIMEOUT_MS * 0.9)
    assert world.zookeeper.tree.data("/leader") == b"1"
    world.run(TIMEOUT_MS * 0.4)
    assert world.zookeeper.tree.data("/leader") is None


def test_a_paused_process_finds_out_when_it_goes_on(world: World) -> None:
    world.paused.add(1)
    world.run(TIMEOUT_MS * 1.5)
    assert world.zookeeper.tree.data("/leader") is None
    assert world.states(1) == [SessionState.CONNECTED]
    world.paused.clear()
    world.run(1_000)
    assert world.states(1)[-2:] == [SessionState.DISCONNECTED, SessionState.EXPIRED]
    world.ask(1, 9, Get("/leader"))
    assert world.outcome(1, 9) is Outcome.SESSION_EXPIRED


def test_a_change_of_leader_ends_no_session_and_answers_nothing(world: World) -> None:
    world.zookeeper.change_leader(TIMEOUT_MS * 3)
    world.ask(1, 5, Get("/leader"))
    assert world.outcome(1, 5) is Outcome.CONNECTION_LOSS
    world.run(TIMEOUT_MS * 2.9)
    assert world.states(1) == [SessionState.CONNECTED, SessionState.DISCONNECTED]
    world.run(TIMEOUT_MS)
    assert world.states(1)[-1] is SessionState.CONNECTED
    assert world.zookeeper.tree.data("/leader") == b"1"
    assert world.zookeeper.expired == []


def test_a_write_under_way_when_a_connection_is_lost_was_carried_out_or_was_not() -> None:
    carried_out = set()
    for seed in range(20):
        world = World(seed)
        world.open(1)
        world.ask(1, 1, Create("/a", b"1"))
        world.zookeeper.disconnect(1)
        world.run(50)
        assert world.outcome(1, 1) is Outcome.CONNECTION_LOSS
        carried_out.add(world.zookeeper.tree.data("/a"))
    assert carried_out == {b"1", None}


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1_000),
    st.lists(
        st.sampled_from(["set", "cut", "mend", "drop", "leader", "pause", "go on", "wait"]), max_size=25
    ),
)
def test_every_question_has_one_answer_and_answers_keep_their_order(seed: int, doings: list[str]) -> None:
    world = World(seed)
    world.open(1)
    world.zookeeper.administer(Create("/a", b""))
    asked = 0
    for doing in doings:
        match doing:
            case "set":
                for _ in range(3):
                    asked += 1
                    world.ask(1, asked, Set("/a", str(asked).encode()))
                world.run(1)
            case "cut":
                world.cuts[1, ZOOKEEPER] = world.cuts[ZOOKEEPER, 1] = 1
            case "mend":
                world.cuts.clear()
            case "drop":
                world.zookeeper.disconnect(1)
            case "leader":
                world.zookeeper.change_leader(700)
            case "pause":
                world.paused.add(1)
            case "go on":
                world.paused.clear()
            case "wait":
                world.run(900)
    world.cuts.clear()
    world.paused.clear()
    world.run(TIMEOUT_MS * 4)
    answered = [event.correlation for event in world.inbox[1] if isinstance(event, Coordinated)]
    assert sorted(answered) == list(range(1, asked + 1))
    known = [n for n in answered if world.outcome(1, n) is Outcome.OK]
    assert known == sorted(known)
    last = int(world.zookeeper.tree.data("/a") or b"0")
    assert last >= max(known, default=0)

"""What ``broker/model/coordination.py`` promises, held by both of its carriers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.zookeeper.server.carriers import (
    Carrier,
    Real,
    Simulated,
    answers,
    connected,
    done,
    place,
    real_server,
    states,
)
from wrackline.broker.model.coordination import (
    Change,
    Children,
    Coordinated,
    Create,
    Delete,
    Get,
    Operation,
    Outcome,
    SessionChanged,
    SessionState,
    Set,
    WatchFired,
)
from wrackline.zookeeper.simulator.tree import Tree

_NAMES = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with real_server() as port:
        yield port


@pytest.fixture(params=["simulated", "real"])
def carrier(request: pytest.FixtureRequest) -> Iterator[Carrier]:
    """Two clients with sessions."""
    real = Real(request.getfixturevalue("server")) if request.param == "real" else None
    found: Carrier = real or Simulated()
    try:
        for client in (1, 2):
            found.open(client)
        for client in (1, 2):
            connected(found, client)
        yield found
    finally:
        if real is not None:
            real.end()


@pytest.fixture
def own(carrier: Carrier) -> str:
    """A node of this test alone."""
    return place(carrier, 1, f"/t{next(_NAMES)}")


def test_a_watch_is_heard_before_an_answer_that_shows_the_new_state(carrier: Carrier, own: str) -> None:
    done(carrier, 1, 1, Create(f"{own}/a", b"old"))
    done(carrier, 2, 1, Get(f"{own}/a", watch=True))
    numbers = count(2)
    carrier.ask(1, 2, Set(f"{own}/a", b"new"))
    heard = carrier.heard(2)

    def new_is_read() -> bool:
        carrier.ask(2, next(numbers), Get(f"{own}/a"))
        return any(answer.data == b"new" for answer in answers(heard).values())

    carrier.until(new_is_read)
    [watch] = [at for at, event in enumerate(heard) if event == WatchFired(f"{own}/a", Change.DATA)]
    for at, event in enumerate(heard):
        if isinstance(event, Coordinated):
            assert (event.answer.data == b"new") is (at > watch)


def test_a_watch_that_an_own_write_fires_is_heard_before_the_answer_to_the_write(
    carrier: Carrier, own: str
) -> None:
    """The server says the two in one breath, and kazoo would hand them to two threads."""
    rounds = 300
    done(carrier, 1, 0, Create(f"{own}/a"))
    for number in range(1, rounds + 1):
        carrier.ask(1, 2 * number - 1, Get(f"{own}/a", watch=True))
        carrier.ask(1, 2 * number, Set(f"{own}/a", b"x"))
    heard = carrier.heard(1)
    carrier.until(lambda: 2 * rounds in answers(heard))
    told = [
        event.correlation if isinstance(event, Coordinated) else "watch"
        for event in heard[heard.index(Coordinated(1, answers(heard)[1])) :]
    ]
    assert told == [one for number in range(1, rounds + 1) for one in (2 * number - 1, "watch", 2 * number)]


def test_a_watch_where_there_is_no_node_tells_of_its_creation(carrier: Carrier, own: str) -> None:
    assert done(carrier, 2, 1, Get(f"{own}/a", watch=True)).outcome is Outcome.NO_NODE
    made = done(carrier, 1, 1, Create(f"{own}/a", b"x", ephemeral=True))
    carrier.until(lambda: WatchFired(f"{own}/a", Change.CREATED) in carrier.heard(2))
    read = done(carrier, 2, 2, Get(f"{own}/a"))
    assert (read.data, read.stat) == (b"x", made.stat)
    assert made.stat is not None
    assert made.stat.owner == connected(carrier, 1)


def test_answers_keep_the_order_of_their_questions(carrier: Carrier, own: str) -> None:
    """Of whatever kind: some are answered by a detour in kazoo."""
    for round_ in range(10):
        path = f"{own}/{round_}"
        kinds: tuple[Operation, ...] = (
            Create(path),
            Get(path, watch=True),
            Set(path, b"1"),
            Children(own, watch=True),
            Delete(path),
        )
        for at, operation in enumerate(kinds):
            carrier.ask(1, round_ * 10 + at, operation)
    carrier.until(lambda: 94 in answers(carrier.heard(1)))
    asked = [number for number in answers(carrier.heard(1)) if number >= 0]
    assert asked == sorted(asked)
    assert len(asked) == 50


def test_a_session_and_its_watches_outlive_a_connection(carrier: Carrier, own: str) -> None:
    done(carrier, 1, 1, Create(f"{own}/mine", b"1", ephemeral=True))
    for number, name in enumerate(("data", "gone")):
        done(carrier, 2, 10 + number, Create(f"{own}/{name}"))
        done(carrier, 1, 10 + number, Get(f"{own}/{name}", watch=True))
    done(carrier, 1, 20, Get(f"{own}/missing", watch=True))
    done(carrier, 1, 21, Children(own, watch=True))
    done(carrier, 1, 22, Get(f"{own}/mine", watch=True))
    session = connected(carrier, 1)
    carrier.cut(1)
    carrier.drop(1)
    carrier.until(lambda: states(carrier.heard(1))[-1] is SessionState.DISCONNECTED)
    done(carrier, 2, 20, Set(f"{own}/data", b"new"))
    done(carrier, 2, 21, Delete(f"{own}/gone"))
    done(carrier, 2, 22, Create(f"{own}/missing"))
    carrier.mend(1)
    assert connected(carrier, 1) == session
    done(carrier, 1, 30, Get(f"{own}/mine"))
    heard = carrier.heard(1)
    again = max(at for at, event in enumerate(heard) if isinstance(event, SessionChanged))
    assert {event for event in heard[again:] if isinstance(event, WatchFired)} == {
        WatchFired(f"{own}/data", Change.DATA),
        WatchFired(f"{own}/gone", Change.DELETED),
        WatchFired(f"{own}/missing", Change.CREATED),
        WatchFired(own, Change.CHILDREN),
    }
    assert not any(isinstance(event, WatchFired) for event in heard[:again])
    # The one that nothing has fired is still there, and fires once.
    done(carrier, 2, 23, Set(f"{own}/mine", b"2"))
    done(carrier, 2, 24, Set(f"{own}/mine", b"3"))
    done(carrier, 1, 31, Get(f"{own}/mine"))
    assert heard.count(WatchFired(f"{own}/mine", Change.DATA)) == 1


def test_what_was_under_way_when_a_connection_ends_has_an_unknown_outcome(carrier: Carrier, own: str) -> None:
    carrier.cut(1)
    for number in range(1, 6):
        carrier.ask(1, number, Create(f"{own}/{number}"))
    carrier.drop(1)
    carrier.until(lambda: len(answers(carrier.heard(1))) == 6)
    carrier.ask(1, 6, Get(own))
    heard = carrier.heard(1)
    carrier.until(lambda: 6 in answers(heard))
    assert {answers(heard)[number].outcome for number in range(1, 7)} == {Outcome.CONNECTION_LOSS}
    lost = heard.index(SessionChanged(SessionState.DISCONNECTED))
    assert all(
        heard.index(event) > lost
        for event in heard
        if isinstance(event, Coordinated) and event.correlation > 0
    )
    carrier.mend(1)
    connected(carrier, 1)
    assert done(carrier, 1, 7, Get(own)).ok


def test_a_silent_server_is_noticed_after_two_thirds_of_the_time_whatever_is_asked(
    carrier: Carrier, own: str
) -> None:
    """kazoo takes each request for a ping: who asks all the time would wait for ever."""
    carrier.cut(1)
    numbers = count(1)

    def is_lost() -> bool:
        carrier.ask(1, next(numbers), Get(own))
        return SessionState.DISCONNECTED in states(carrier.heard(1))

    carrier.until(is_lost, limit_s=carrier.timeout_ms / 1000 * 0.9)
    carrier.mend(1)
    carrier.until(lambda: states(carrier.heard(1))[-1] is SessionState.CONNECTED)


def test_the_end_of_a_session_takes_its_nodes_and_the_client_hears_of_it(carrier: Carrier, own: str) -> None:
    session = connected(carrier, 1)
    done(carrier, 1, 1, Create(f"{own}/mine", ephemeral=True))
    done(carrier, 2, 1, Get(f"{own}/mine", watch=True))
    carrier.expire(1)
    carrier.until(lambda: WatchFired(f"{own}/mine", Change.DELETED) in carrier.heard(2))
    carrier.until(lambda: states(carrier.heard(1))[-1] is SessionState.EXPIRED)
    assert done(carrier, 1, 2, Get(own)).outcome is Outcome.SESSION_EXPIRED
    carrier.open(1)
    assert connected(carrier, 1) != session
    assert done(carrier, 1, 3, Create(f"{own}/mine", ephemeral=True)).ok


def test_a_session_that_is_not_heard_of_expires_and_the_client_hears_late(carrier: Carrier, own: str) -> None:
    done(carrier, 1, 1, Create(f"{own}/mine", ephemeral=True))
    done(carrier, 2, 1, Get(f"{own}/mine", watch=True))
    carrier.cut(1)
    carrier.until(lambda: WatchFired(f"{own}/mine", Change.DELETED) in carrier.heard(2))
    assert states(carrier.heard(1)) == [SessionState.CONNECTED, SessionState.DISCONNECTED], "it cannot know"
    carrier.mend(1)
    carrier.until(lambda: states(carrier.heard(1))[-1] is SessionState.EXPIRED)


def test_a_closed_session_takes_its_nodes_along(carrier: Carrier, own: str) -> None:
    done(carrier, 1, 1, Create(f"{own}/mine", ephemeral=True))
    done(carrier, 2, 1, Get(f"{own}/mine", watch=True))
    carrier.close(1)
    carrier.until(
        lambda: WatchFired(f"{own}/mine", Change.DELETED) in carrier.heard(2),
        limit_s=carrier.timeout_ms / 1000 * 0.6,
    )


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/z"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=2), st.booleans(), st.booleans()),
    st.builds(Get, PATHS, st.booleans()),
    st.builds(Set, PATHS, st.binary(max_size=2), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Children, PATHS, st.booleans()),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 2), OPERATIONS), min_size=1, max_size=40))
def test_the_simulators_tree_answers_and_fires_as_a_real_zookeeper(
    server: int, steps: list[tuple[int, Operation]]
) -> None:
    real, tree = Real(server), Tree()
    try:
        for client in (1, 2):
            real.open(client)
            connected(real, client)
        root = place(real, 1, f"/w{next(_NAMES)}")
        tree.apply(0, Create(root))
        fired: dict[int, list[WatchFired]] = {1: [], 2: []}
        number = 0
        for number, (client, asked) in enumerate(steps):
            operation = _below(root, asked)
            found = done(real, client, number, operation)
            expected, watches = tree.apply(client, operation)
            assert (found.outcome, found.path or operation.path, found.data, found.children) == (
                expected.outcome,
                expected.path or operation.path,
                expected.data,
                expected.children,
            )
            if expected.stat is not None and not isinstance(operation, Children):
                assert found.stat is not None
                assert found.stat.version == expected.stat.version
                assert (found.stat.owner == 0) is (expected.stat.owner == 0)
            for watch in watches:
                fired[watch.session].append(WatchFired(watch.path, watch.change))
        for client in (1, 2):
            done(real, client, number + 1, Get(root))  # what comes before it has been heard
            heard = [event for event in real.heard(client) if isinstance(event, WatchFired)]
            assert heard == fired[client]
    finally:
        real.end()


def _below(root: str, operation: Operation) -> Operation:
    match operation:
        case Create(path, data, ephemeral, sequential):
            return Create(root + path, data, ephemeral, sequential)
        case Get(path, watch):
            return Get(root + path, watch)
        case Set(path, data, version):
            return Set(root + path, data, version)
        case Delete(path, version):
            return Delete(root + path, version)
        case Children(path, watch):
            return Children(root + path, watch)

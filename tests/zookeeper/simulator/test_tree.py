"""The tree against a model that is too simple to be wrong: dictionaries, and watches that compare what their
session would see."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.broker.model.coordination import (
    Change,
    Children,
    Create,
    Delete,
    Get,
    Operation,
    Outcome,
    Set,
)
from wrackline.zookeeper.simulator.tree import Tree


class Known(NamedTuple):
    data: bytes
    version: int
    owner: int


class Model:
    """Nodes by path; a watch is what its session saw when it asked."""

    def __init__(self) -> None:
        self.nodes: dict[str, Known] = {"/": Known(b"", 0, 0)}
        self.born: dict[str, int] = {}
        self.lives: dict[str, int] = {}
        """How often a path was created: a node that was deleted and made anew is another one."""
        self.watches: dict[tuple[int, str, type], object] = {}

    def children(self, path: str) -> tuple[str, ...]:
        below = path.rstrip("/") + "/"
        return tuple(sorted(p[len(below) :] for p in self.nodes if p != "/" and parent(p) == path))

    def sees(self, path: str, kind: type) -> object:
        if path not in self.nodes:
            return None
        if kind is Children:
            return self.lives.get(path), self.children(path)
        return self.lives.get(path), self.nodes[path]

    def carry_out(self, session: int, op: Operation) -> tuple[Outcome, object]:
        node = self.nodes.get(op.path)
        match op:
            case Create():
                above = self.nodes.get(parent(op.path))
                if above is None:
                    return Outcome.NO_NODE, None
                if above.owner:
                    return Outcome.NO_CHILDREN_FOR_EPHEMERALS, None
                number = self.born.get(parent(op.path), 0)
                path = op.path + (f"{number:010d}" if op.sequential else "")
                if path in self.nodes:
                    return Outcome.NODE_EXISTS, None
                self.born[parent(op.path)] = number + 1
                self.lives[path] = self.lives.get(path, 0) + 1
                self.nodes[path] = Known(op.data, 0, session if op.ephemeral else 0)
                return Outcome.OK, path
            case Children():
                if node is not None and op.watch:
                    self.watches[session, op.path, Children] = self.sees(op.path, Children)
                return (Outcome.NO_NODE, ()) if node is None else (Outcome.OK, self.children(op.path))
            case Get():
                if op.watch:
                    self.watches[session, op.path, Get] = self.sees(op.path, Get)
                return (Outcome.NO_NODE, None) if node is None else (Outcome.OK, (node.data, node.version))
        if node is None:
            return Outcome.NO_NODE, None
        if op.version not in (-1, node.version):
            return Outcome.BAD_VERSION, None
        if isinstance(op, Set):
            self.nodes[op.path] = node._replace(data=op.data, version=node.version + 1)
            return Outcome.OK, None
        if self.children(op.path):
            return Outcome.NOT_EMPTY, None
        del self.nodes[op.path]
        return Outcome.OK, None

    def expire(self, session: int) -> None:
        self.watches = {key: seen for key, seen in self.watches.items() if key[0] != session}
        self.nodes = {path: node for path, node in self.nodes.items() if node.owner != session}

    def fired(self) -> set[tuple[int, str]]:
        """Whoever would see something else now; once."""
        told = {key for key, seen in self.watches.items() if self.sees(key[1], key[2]) != seen}
        for key in told:
            del self.watches[key]
        return {(session, path) for session, path, _ in told}


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/z"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=2), st.booleans(), st.booleans()),
    st.builds(Get, PATHS, st.booleans()),
    st.builds(Set, PATHS, st.binary(max_size=2), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Children, PATHS, st.booleans()),
)
STEPS = st.lists(st.tuples(st.integers(1, 3), st.one_of(OPERATIONS, st.none())), max_size=60)
"""(session, what it asks for); None: its session ends."""


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_answers_and_watches_are_those_of_the_model(steps: list[tuple[int, Operation | None]]) -> None:
    tree, model = Tree(), Model()
    for session, operation in steps:
        if operation is None:
            fired = tree.expire(session)
            model.expire(session)
        else:
            answer, fired = tree.apply(session, operation)
            outcome, seen = model.carry_out(session, operation)
            assert answer.outcome is outcome
            if outcome is Outcome.OK and isinstance(operation, Create):
                assert answer.path == seen
            elif outcome is Outcome.OK and isinstance(operation, Get):
                assert answer.stat is not None
                assert (answer.data, answer.stat.version) == seen
            elif outcome is Outcome.OK and isinstance(operation, Children):
                assert answer.children == seen
        assert {(one.session, one.path) for one in fired} == model.fired()
        assert len({(one.session, one.path) for one in fired}) == len(fired), "a watch fires once"
    assert set(tree.nodes) == set(model.nodes)


def test_a_node_that_is_made_anew_is_told_from_the_former_one() -> None:
    tree = Tree()
    first, _ = tree.apply(1, Create("/leader", b"1", ephemeral=True))
    tree.expire(1)
    second, _ = tree.apply(2, Create("/leader", b"2", ephemeral=True))
    assert first.stat is not None
    assert second.stat is not None
    assert second.stat.created > first.stat.created
    assert (first.stat.owner, second.stat.owner) == (1, 2)


def test_the_end_of_a_session_deletes_its_nodes_and_tells_who_watches() -> None:
    tree = Tree()
    tree.apply(1, Create("/leader", b"1", ephemeral=True))
    tree.apply(2, Get("/leader", watch=True))
    tree.apply(1, Get("/leader", watch=True))
    assert [(one.session, one.path, one.change) for one in tree.expire(1)] == [(2, "/leader", Change.DELETED)]
    assert tree.data("/leader") is None
    assert tree.expire(1) == []


def test_sequential_nodes_never_take_a_former_name() -> None:
    tree = Tree()
    tree.apply(1, Create("/q"))
    names = []
    for _ in range(3):
        answer, _ = tree.apply(1, Create("/q/r-", sequential=True))
        names.append(answer.path)
        tree.apply(1, Delete(answer.path))
    assert names == ["/q/r-0000000000", "/q/r-0000000001", "/q/r-0000000002"]

"""ZooKeeper's tree: nodes, versions, ephemeral nodes and one-shot watches. No time and no network.

Every write that changes something is one transaction with the next number (zxid). Whoever applies it gets the
watches that it fired, to be delivered to their sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from wrackline.broker.model.coordination import (
    ANY_VERSION,
    Answer,
    Change,
    Children,
    Create,
    Delete,
    Get,
    Operation,
    Outcome,
    Set,
    Stat,
)

ROOT = "/"


class Fired(NamedTuple):
    """One watch of one session, which is no more."""

    session: int
    path: str
    change: Change


@dataclass(slots=True)
class Node:
    data: bytes
    created: int
    modified: int
    version: int = 0
    owner: int = 0
    children: set[str] = field(default_factory=set)
    """Names, without the path."""
    born: int = 0
    """How many children it ever had: the digits of the next sequential one."""

    def stat(self) -> Stat:
        return Stat(self.created, self.modified, self.version, self.owner)


class Tree:
    """``apply`` carries one operation out for a session; ``expire`` ends a session's nodes and watches."""

    def __init__(self) -> None:
        self.zxid = 0
        """The last transaction."""
        self.nodes: dict[str, Node] = {ROOT: Node(b"", 0, 0)}
        self.on_change: Callable[[str], None] = lambda path: None  # noqa: ARG005
        """Called with the path after each creation, write and deletion of a node."""
        self._data_watches: dict[str, dict[int, None]] = {}
        """Path -> sessions, in the order in which they asked: they are told in this order."""
        self._child_watches: dict[str, dict[int, None]] = {}
        self._fired: list[Fired] = []

    # --- looking from outside ------------------------------------------------------------------------------

    def data(self, path: str) -> bytes | None:
        node = self.nodes.get(path)
        return None if node is None else node.data

    def children(self, path: str) -> list[str]:
        node = self.nodes.get(path)
        return [] if node is None else sorted(node.children)

    # --- operations ----------------------------------------------------------------------------------------

    def apply(self, session: int, operation: Operation) -> tuple[Answer, list[Fired]]:
        """The answer, and the watches fired, which whoever asked hears before the answer."""
        self._fired = []
        match operation:
            case Create():
                answer = self._create(session, operation)
            case Get():
                answer = self._get(session, operation)
            case Set():
                answer = self._set(operation)
            case Delete():
                answer = self._delete(operation)
            case Children():
                answer = self._children(session, operation)
        return answer, self._fired

    def expire(self, session: int) -> list[Fired]:
        """The session is over: its watches go, then its ephemeral nodes, in one transaction."""
        self._fired = []
        for watches in (self._data_watches, self._child_watches):
            for path in [path for path, sessions in watches.items() if session in sessions]:
                del watches[path][session]
        owned = sorted(path for path, node in self.nodes.items() if node.owner == session)
        if owned:
            self.zxid += 1
        for path in owned:
            self._remove(path)
        return self._fired

    def _create(self, session: int, asked: Create) -> Answer:
        parent_path, _, name = asked.path.rpartition("/")
        parent = self.nodes.get(parent_path or ROOT)
        if parent is None or not name:
            return Answer(Outcome.NO_NODE)
        if parent.owner:
            return Answer(Outcome.NO_CHILDREN_FOR_EPHEMERALS)
        path = f"{asked.path}{parent.born:010d}" if asked.sequential else asked.path
        if path in self.nodes:
            return Answer(Outcome.NODE_EXISTS)
        self.zxid += 1
        node = Node(asked.data, self.zxid, self.zxid, owner=session if asked.ephemeral else 0)
        self.nodes[path] = node
        parent.children.add(path.rpartition("/")[2])
        parent.born += 1
        self._fire(self._data_watches, path, Change.CREATED)
        self._fire(self._child_watches, parent_path or ROOT, Change.CHILDREN)
        self.on_change(path)
        return Answer(Outcome.OK, path, stat=node.stat())

    def _get(self, session: int, asked: Get) -> Answer:
        node = self.nodes.get(asked.path)
        if asked.watch:
            self._data_watches.setdefault(asked.path, {})[session] = None
        if node is None:
            return Answer(Outcome.NO_NODE)
        return Answer(Outcome.OK, asked.path, node.data, node.stat())

    def _set(self, asked: Set) -> Answer:
        node = self.nodes.get(asked.path)
        if node is None:
            return Answer(Outcome.NO_NODE)
        if asked.version not in (ANY_VERSION, node.version):
            return Answer(Outcome.BAD_VERSION)
        self.zxid += 1
        node.data, node.modified, node.version = asked.data, self.zxid, node.version + 1
        self._fire(self._data_watches, asked.path, Change.DATA)
        self.on_change(asked.path)
        return Answer(Outcome.OK, asked.path, stat=node.stat())

    def _delete(self, asked: Delete) -> Answer:
        node = self.nodes.get(asked.path)
        if node is None or asked.path == ROOT:
            return Answer(Outcome.NO_NODE)
        if asked.version not in (ANY_VERSION, node.version):
            return Answer(Outcome.BAD_VERSION)
        if node.children:
            return Answer(Outcome.NOT_EMPTY)
        self.zxid += 1
        self._remove(asked.path)
        return Answer(Outcome.OK, asked.path)

    def _children(self, session: int, asked: Children) -> Answer:
        node = self.nodes.get(asked.path)
        if node is None:
            return Answer(Outcome.NO_NODE)
        if asked.watch:
            self._child_watches.setdefault(asked.path, {})[session] = None
        return Answer(Outcome.OK, asked.path, stat=node.stat(), children=tuple(sorted(node.children)))

    def _remove(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        del self.nodes[path]
        self.nodes[parent or ROOT].children.discard(name)
        self._fire(self._data_watches, path, Change.DELETED)
        self._fire(self._child_watches, path, Change.DELETED)
        self._fire(self._child_watches, parent or ROOT, Change.CHILDREN)
        self.on_change(path)

    def _fire(self, watches: dict[str, dict[int, None]], path: str, change: Change) -> None:
        """A session that watches data and children of a node hears once that it is deleted."""
        for session in watches.pop(path, {}):
            fired = Fired(session, path, change)
            if fired not in self._fired:
                self._fired.append(fired)

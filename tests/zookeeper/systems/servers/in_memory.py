"""Nodes of ZooKeeper in memory, in place of a session: what is asked and written, without what watches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

T = TypeVar("T")


class InMemory:
    """Both a session, and the question that it is asked."""

    def __init__(self, **nodes: bytes) -> None:
        self.nodes: dict[str, bytes] = dict(nodes)
        self.made: list[str] = []
        self.waited: list[str] = []
        self.gone_at_once: tuple[str, ...] = ()
        """Paths of what the controller takes up at once, and removes."""

    def ask(self, question: Callable[[Any], T], timeout_s: float) -> T:
        assert timeout_s > 0
        return question(self)

    def children(self, path: str) -> list[str]:
        below = path.rstrip("/") + "/"
        return sorted({one.removeprefix(below).split("/")[0] for one in self.nodes if one.startswith(below)})

    def get(self, path: str) -> bytes | None:
        return self.nodes.get(path)

    def all_of(self, paths: Sequence[str]) -> list[bytes | None]:
        return [self.nodes.get(path) for path in paths]

    def stat(self, path: str) -> Any:
        return SimpleNamespace(czxid=77) if path in self.nodes else None

    def put(self, path: str, data: bytes) -> None:
        self.nodes[path] = data

    def create(self, path: str, data: bytes, *, sequence: bool = False) -> bool:
        path = f"{path}{len(self.made):010d}" if sequence else path
        if path in self.nodes:
            return False
        self.made.append(path)
        if path not in self.gone_at_once:
            self.nodes[path] = data
        return True

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        self.waited.append(what)
        assert holds(), what

"""kazoo's client, with what ``zookeeper/server/session.py`` needs and kazoo leaves out: one session, one
order, watches that are set again, and an end of connections that are silent for too long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from wrackline.broker.model.coordination import Change, Children, Get, Operation, Outcome

_KAZOO = logging.getLogger("broker.zookeeper.kazoo")
_KAZOO.setLevel(logging.ERROR)
"""It tells of every attempt to connect, many times a second while no server answers."""

CONNECT_S = 1.0
"""One attempt to connect: a SYN that was lost is sent again after one second, then two, then four."""


class Watches(NamedTuple):
    """Paths that the server is to tell of, as SetWatches has them."""

    data: set[str]
    missing: set[str]
    """Of which it is to tell when they are created."""
    children: set[str]

    def asked(self, operation: Operation, outcome: Outcome) -> None:
        match operation, outcome:
            case Get(path, True), Outcome.OK:
                self.data.add(path)
            case Get(path, True), Outcome.NO_NODE:
                self.missing.add(path)
            case Children(path, True), Outcome.OK:
                self.children.add(path)

    def fired(self, path: str, change: Change) -> None:
        if change is not Change.CHILDREN:
            self.data.discard(path)
            self.missing.discard(path)
        if change in (Change.CHILDREN, Change.DELETED):
            self.children.discard(path)


@dataclass(frozen=True, slots=True)
class _SetWatches:
    """A request that kazoo does not have: watch again, and tell what has changed since ``zxid``."""

    zxid: int
    paths: tuple[tuple[str, ...], ...]
    type: ClassVar[int] = 101

    def serialize(self) -> bytes:
        parts = [wire.long_struct.pack(self.zxid)]
        for paths in self.paths:
            parts += [wire.int_struct.pack(len(paths)), *map(wire.write_string, paths)]
        return b"".join(parts)

    @classmethod
    def deserialize(cls, _: bytes, __: int) -> bool:
        return True


def persistently() -> KazooRetry:
    """Returns how a lost server is tried again: soon, and then about five times a second.

    With a backoff of 1 the pauses would dwindle to nothing, for kazoo multiplies each by a chance of its own.
    A hundred attempts a second would then keep a slow server from its start."""
    return KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=0.2)


class Client(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """A client that has one session in its life."""

    def __init__(self, servers: str, timeout_s: float, on_state: Callable[[str, int, int], None]) -> None:
        super().__init__(
            servers,
            timeout=timeout_s,
            handler=_InOrder(timeout_s * 2 / 3),
            connection_retry=persistently(),
            logger=_KAZOO,
        )
        self._on_state = on_state
        self.add_listener(self._tell)

    def _tell(self, state: str) -> None:
        """Reports the state in the thread of the connection, before it reads another word."""
        told = partial(self._on_state, state, self._session_id or 0, self.last_zxid)
        if self.handler.running:
            self.handler.completion_queue.put(told)
        else:
            told()

    def _session_callback(self, state: str) -> None:
        if state == KeeperState.EXPIRED_SESSION:
            self._stopped.set()  # no other session by itself
        super()._session_callback(state)

    def ask(self, request: Any, on_result: Callable[[Any], None] | None) -> None:
        """kazoo's own methods answer some requests by a detour, later than a watch that came after."""
        result = self.handler.async_result()
        if on_result is not None:
            result.rawlink(on_result)
        self._call(request, result)

    def watch_again(self, watches: Watches, zxid: int, watcher: Callable[[Any], None]) -> None:
        """Sets the watches again in a new connection, on which nothing was asked yet: nothing is reported
        meanwhile."""
        for path in watches.data | watches.missing:
            self._data_watchers[path].add(watcher)
        for path in watches.children:
            self._child_watchers[path].add(watcher)
        self.ask(_SetWatches(zxid, tuple(tuple(sorted(paths)) for paths in watches)), None)

    def say_goodbye(self) -> None:
        with suppress(KazooException, OSError, AttributeError):  # the connection may end at the same time
            self.stop()
        self.dispose()

    def dispose(self) -> None:
        self._stopped.set()
        with suppress(KazooException):
            self._safe_close()
            self.close()


class _InOrder(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Answers and watches in one queue, and a connection that is silent for too long is lost."""

    def __init__(self, silent_s: float) -> None:
        super().__init__()
        self._silent_s = silent_s
        self._heard = time.monotonic()
        self._pipe: object = None

    def dispatch_callback(self, callback: Any) -> None:
        self.completion_queue.put(partial(callback.func, *callback.args))

    def create_socket_pair(self) -> Any:
        pair = super().create_socket_pair()
        self._pipe = pair[0]
        return pair

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        return super().create_connection(*args, **{**kwargs, "timeout": CONNECT_S})

    def select(self, readers: list[Any], writers: list[Any], errors: list[Any], timeout: float) -> Any:
        if self._pipe in readers:  # the connection stands
            left_s = self._heard + self._silent_s - time.monotonic()
            timeout = min(timeout, max(0.0, left_s))
        ready = super().select(readers, writers, errors, timeout)
        if any(one is not self._pipe for one in ready[0]):
            self._heard = time.monotonic()
        elif self._pipe in readers and time.monotonic() - self._heard >= self._silent_s:
            raise ConnectionDropped(f"nothing heard for {self._silent_s:g} s")
        return ready

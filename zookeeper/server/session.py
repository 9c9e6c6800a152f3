"""The carrier of the port ``Coordination`` on a host: a session with a real ZooKeeper, by kazoo.

kazoo reads and pings in a thread of its own, as ZooKeeper's own client does, so that a session lives on while
the loop waits for a disk. Everything that it hears comes to the loop through one queue, in the order in which
the server said it. What kazoo leaves to others, and the port promises, is done here:

- Watches outlive a connection: kazoo forgets them, so they are set again in the next one (SetWatches).
- One session is one client: kazoo would open another by itself, and carry out there what was asked before.
- A connection on which nothing is heard for two thirds of the session's time is lost, also while requests are
  sent: kazoo counts each of them as a ping.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import EventType, KazooState, ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

from wrackline.broker.model.coordination import (
    Answer,
    Change,
    Children,
    CloseSession,
    Coordinate,
    Coordinated,
    Create,
    Delete,
    Get,
    OpenSession,
    Operation,
    Outcome,
    SessionChanged,
    SessionState,
    Set,
    Stat,
    WatchFired,
)
from wrackline.zookeeper.server.client import Client, Watches

_LOG = logging.getLogger("broker.zookeeper")

GOODBYE_S = 2.0
"""So long a closed session may take to be closed at the server; after that it ends by its own time."""
_EPHEMERAL, _SEQUENTIAL = 1, 2
_OUTCOMES: Mapping[type[Exception], Outcome] = {
    NoNodeError: Outcome.NO_NODE,
    NodeExistsError: Outcome.NODE_EXISTS,
    BadVersionError: Outcome.BAD_VERSION,
    NotEmptyError: Outcome.NOT_EMPTY,
    NoChildrenForEphemeralsError: Outcome.NO_CHILDREN_FOR_EPHEMERALS,
}
_UNKNOWN = (ConnectionLoss, ConnectionClosedError, SessionMovedError)
_CHANGES = {
    EventType.CREATED: Change.CREATED,
    EventType.DELETED: Change.DELETED,
    EventType.CHANGED: Change.DATA,
    EventType.CHILD: Change.CHILDREN,
}

Event = SessionChanged | Coordinated | WatchFired


class ZooKeeper:
    """Lives on one event loop. ``post`` hands an event to the core; ``before_asking`` is called before
    anything leaves for ZooKeeper."""

    def __init__(
        self,
        servers: str,
        post: Callable[[Event], None],
        before_asking: Callable[[], None] = lambda: None,
    ) -> None:
        """``servers``: ``host:port,...``"""
        self._servers = servers
        self._post = post
        self._before_asking = before_asking
        self._session: _Session | None = None
        self.carriers: Mapping[type, Callable[[Any], None]] = {
            OpenSession: self._open,
            Coordinate: self._ask,
            CloseSession: self._close,
        }

    def _open(self, effect: OpenSession) -> None:
        self._session = _Session(self._servers, effect.timeout_ms, self._post)

    def _ask(self, effect: Coordinate) -> None:
        self._before_asking()
        if self._session is None:
            self._post(Coordinated(effect.correlation, Answer(Outcome.SESSION_EXPIRED)))
        else:
            self._session.ask(effect)

    def _close(self, _: CloseSession) -> None:
        self._before_asking()
        if self._session is not None:
            self._session.close()

    async def closed(self) -> None:
        """Waits until a session that was closed is closed at the server, too. One that was not ends by its
        time, as that of a process that was killed."""
        if self._session is not None:
            await self._session.closed()


class _Session:
    """One session, from its opening until it has expired or is closed."""

    def __init__(self, servers: str, timeout_ms: int, post: Callable[[Event], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._post = post
        self._connected = False
        self._over = False
        self._asked: dict[int, None] = {}
        """Correlations without an answer, in order."""
        self._watches = Watches(set(), set(), set())
        self._last_fired: object = None
        self._closing: threading.Thread | None = None
        self._client = Client(servers, timeout_ms / 1000, self._state_changed)
        self._client.start_async()

    # --- asking --------------------------------------------------------------------------------------------

    def ask(self, effect: Coordinate) -> None:
        correlation, operation = effect.correlation, effect.operation
        if self._over or not self._connected:
            outcome = Outcome.SESSION_EXPIRED if self._over else Outcome.CONNECTION_LOSS
            self._post(Coordinated(correlation, Answer(outcome)))
            return
        self._asked[correlation] = None
        watch = self._heard_watch
        match operation:
            case Create(path, data, ephemeral, sequential):
                flags = _EPHEMERAL * ephemeral | _SEQUENTIAL * sequential
                request = wire.Create2(path, data, OPEN_ACL_UNSAFE, flags)
            case Get(path, True):
                # Where there is no node, reading leaves no watch, and asking whether there is one does. Both
                # go out together, so that answers keep the order of their questions.
                self._client.ask(wire.Exists(path, watch), None)
                request = wire.GetData(path, watch)
            case Get(path):
                request = wire.GetData(path, None)
            case Set(path, data, version):
                request = wire.SetData(path, data, version)
            case Delete(path, version):
                request = wire.Delete(path, version)
            case Children(path, watched):
                request = wire.GetChildren2(path, watch if watched else None)
        self._client.ask(request, lambda result: self._on_loop(self._answered, effect, result))

    def _answered(self, effect: Coordinate, result: Any) -> None:
        correlation, error = effect.correlation, result.exception
        if correlation not in self._asked:
            return  # answered already, when the connection or the session came to its end
        if isinstance(error, _UNKNOWN):
            self._disconnected()
        elif isinstance(error, SessionExpiredError):
            self._ended()
        elif error is None or type(error) in _OUTCOMES:
            outcome = Outcome.OK if error is None else _OUTCOMES[type(error)]
            self._watches.asked(effect.operation, outcome)
            del self._asked[correlation]
            self._post(Coordinated(correlation, _answer(effect.operation, outcome, result.value)))
        else:
            raise error

    # --- what kazoo's threads tell -------------------------------------------------------------------------

    def _on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        """Calls on the loop from any thread. After the end of the loop there is nobody to tell."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _heard_watch(self, event: Any) -> None:
        if event.type in _CHANGES:
            self._on_loop(self._fired, event)

    def _fired(self, event: Any) -> None:
        """kazoo tells the watchers of a node's data and those of its children apart; both are we."""
        if event is self._last_fired or self._over:
            return
        self._last_fired = event
        change = _CHANGES[event.type]
        self._watches.fired(event.path, change)
        self._post(WatchFired(event.path, change))

    def _state_changed(self, state: str, session: int, zxid: int) -> None:
        self._on_loop(self._changed, state, session, zxid)

    def _changed(self, state: str, session: int, zxid: int) -> None:
        if self._over:
            return
        if state == KazooState.LOST:
            self._ended()
            return
        self._disconnected()
        if state == KazooState.CONNECTED:
            self._connected = True
            if any(self._watches):
                self._client.watch_again(self._watches, zxid, self._heard_watch)
            _LOG.info("connected, session %#x", session)
            self._post(SessionChanged(SessionState.CONNECTED, session))

    def _disconnected(self) -> None:
        if self._connected:
            self._connected = False
            _LOG.warning("the connection is lost")
            self._post(SessionChanged(SessionState.DISCONNECTED))
            self._answer_all(Outcome.CONNECTION_LOSS)

    def _ended(self) -> None:
        if not self._over:
            self._over, self._connected = True, False
            _LOG.warning("the session has expired")
            threading.Thread(target=self._client.dispose, daemon=True).start()
            self._post(SessionChanged(SessionState.EXPIRED))
            self._answer_all(Outcome.SESSION_EXPIRED)

    def _answer_all(self, outcome: Outcome) -> None:
        asked, self._asked = self._asked, {}
        for correlation in asked:
            self._post(Coordinated(correlation, Answer(outcome)))

    # --- the end -------------------------------------------------------------------------------------------

    def close(self) -> None:
        if not self._over:
            self._over, self._connected = True, False
            self._closing = threading.Thread(target=self._client.say_goodbye, daemon=True)
            self._closing.start()

    async def closed(self) -> None:
        deadline = self._loop.time() + GOODBYE_S
        while self._closing is not None and self._closing.is_alive() and self._loop.time() < deadline:
            await asyncio.sleep(0.005)


def _answer(operation: Operation, outcome: Outcome, value: Any) -> Answer:
    if outcome is not Outcome.OK:
        return Answer(outcome)
    match operation:
        case Create():
            return Answer(outcome, value[0], stat=_stat(value[1]))
        case Get(path):
            return Answer(outcome, path, value[0] or b"", _stat(value[1]))
        case Set(path):
            return Answer(outcome, path, stat=_stat(value))
        case Delete(path):
            return Answer(outcome, path)
        case Children(path):
            return Answer(outcome, path, stat=_stat(value[1]), children=tuple(sorted(value[0])))


def _stat(found: ZnodeStat) -> Stat:
    return Stat(found.czxid, found.mzxid, found.version, found.ephemeralOwner)

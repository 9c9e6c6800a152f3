"""A broker's side of its session with ZooKeeper: questions with their continuation, and reads that are kept
fresh by watches.

A *kept read* is one path whose value the broker wants to know from now on. It is read with a watch, read
again when the watch fires, when a connection was lost meanwhile, and in each new session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wrackline.broker.core.continuations import Continuations
from wrackline.broker.model.coordination import (
    Answer,
    Change,
    Children,
    CloseSession,
    Coordinate,
    Coordinated,
    Get,
    OpenSession,
    Operation,
    Outcome,
    SessionChanged,
    SessionState,
    WatchFired,
)

OnAnswer = Callable[[Answer], None]
_OWN_RULE = "session-own-rule"
_DONE = (Outcome.OK, Outcome.NO_NODE)


@dataclass(slots=True, eq=False)
class _Kept:
    path: str
    children: bool
    on_value: OnAnswer
    """Called with OK or NO_NODE."""
    fresh: bool = False
    dropped: bool = False


class Coordination:
    """``on_session``: there is a new session. ``on_reconnected``: the same session goes on, and what was
    asked before may have been carried out. ``on_lost``: nothing that rests on the session may be done any
    more.

    The broker gives its session up by a rule of its own: when nothing was heard for a third of the session's
    time after the connection was lost. The connection is lost after two thirds without an answer, so that
    ZooKeeper does not end the session, and let somebody else lead, before this broker has stopped to.
    """

    def __init__(
        self,
        ctx: Continuations,
        session_timeout_ms: int,
        *,
        on_session: Callable[[], None],
        on_reconnected: Callable[[], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._ctx = ctx
        self._session_timeout_ms = session_timeout_ms
        self._on_session = on_session
        self._on_reconnected = on_reconnected
        self._on_lost = on_lost
        self.session = 0
        """0: none, or given up."""
        self.connected = False
        self._known = 0
        """The session that ZooKeeper last told of."""
        self._asked: dict[int, OnAnswer] = {}
        self._correlation = 0
        self._zxid = 0
        """The newest transaction that an answer has told of."""
        self._kept: dict[tuple[str, bool], _Kept] = {}

    def open(self) -> None:
        self._ctx.out.append(OpenSession(self._session_timeout_ms))

    def close(self) -> None:
        """The session's nodes go at once. Another one may be opened."""
        self._ctx.cancel_timer(_OWN_RULE)
        self.connected, self.session = False, 0
        self._ctx.out.append(CloseSession())

    def ask(self, operation: Operation, on_answer: OnAnswer) -> None:
        """``on_answer`` is called exactly once."""
        self._correlation += 1
        self._asked[self._correlation] = on_answer
        if not isinstance(operation, Get | Children):
            self._ctx.trace("zk_ask", session=self._known, path=operation.path)
        self._ctx.out.append(Coordinate(self._correlation, operation))

    # --- kept reads ----------------------------------------------------------------------------------------

    def keep(self, path: str, on_value: OnAnswer, *, children: bool = False) -> None:
        """Read the path, and again whenever it has changed. A second call for a path changes nothing."""
        if (path, children) not in self._kept:
            kept = self._kept[path, children] = _Kept(path, children, on_value)
            self._read(kept)

    def drop(self, path: str, *, children: bool = False) -> None:
        """Forgets the questions under way at a path."""
        kept = self._kept.pop((path, children), None)
        if kept is not None:
            kept.dropped = True

    def keeps(self, path: str, *, children: bool = False) -> bool:
        return (path, children) in self._kept

    def _read(self, kept: _Kept) -> None:
        kept.fresh = False
        if self.connected:
            operation = Children(kept.path, watch=True) if kept.children else Get(kept.path, watch=True)
            self.ask(operation, lambda answer: self._read_done(kept, answer))

    def _read_done(self, kept: _Kept, answer: Answer) -> None:
        if kept.dropped or answer.outcome not in _DONE:
            return
        kept.fresh = True
        if kept.children and answer.outcome is Outcome.NO_NODE:
            # No watch is left where there is no node: wait until there is one.
            self.ask(Get(kept.path, watch=True), lambda found: self._read_if_there(kept, found))
        kept.on_value(answer)

    def _read_if_there(self, kept: _Kept, found: Answer) -> None:
        """Reads a node that may have been created between the two questions; an answer that is missing is
        asked for again when there is a connection."""
        if found.ok and not kept.dropped:
            self._read(kept)
        kept.fresh = kept.fresh and found.outcome in _DONE

    # --- events --------------------------------------------------------------------------------------------

    def handle(self, event: SessionChanged | Coordinated | WatchFired) -> None:
        match event:
            case Coordinated():
                self._heard(event.answer)
                self._asked.pop(event.correlation)(event.answer)
            case WatchFired():
                self._fired(event)
            case SessionChanged():
                self._changed(event)

    def _heard(self, answer: Answer) -> None:
        """Notes the transaction of an answer: whatever this broker does from here on rests on it, and may
        rest on all before."""
        if answer.stat is not None and answer.stat.modified > self._zxid:
            self._zxid = answer.stat.modified
            self._ctx.trace("zk", zxid=self._zxid, path=answer.path)

    def _fired(self, event: WatchFired) -> None:
        """A creation or deletion concerns the node's data and its children."""
        for children in (False, True):
            kept = self._kept.get((event.path, children))
            other = Change.DATA if children else Change.CHILDREN
            if kept is not None and event.change is not other:
                self._read(kept)

    def _changed(self, event: SessionChanged) -> None:
        ctx = self._ctx
        ctx.trace("session", state=event.state.value, session=event.session)
        match event.state:
            case SessionState.CONNECTED:
                self._connected(event.session)
            case SessionState.DISCONNECTED:
                self.connected = False
                third_ms = self._session_timeout_ms / 3
                ctx.set_timer(_OWN_RULE, ctx.now_ms + third_ms, lambda: self._give_up("no connection"))
            case SessionState.EXPIRED:
                self.connected = False
                self._give_up("expired")
                self.open()

    def _connected(self, session: int) -> None:
        self._ctx.cancel_timer(_OWN_RULE)
        new = session != self._known
        self.connected, self.session, self._known = True, session, session
        for kept in list(self._kept.values()):
            if new or not kept.fresh:
                self._read(kept)
        if new:
            self._on_session()
        else:
            self._on_reconnected()

    def _give_up(self, why: str) -> None:
        """Gives the session up, by our own clock, or because ZooKeeper says so."""
        self._ctx.cancel_timer(_OWN_RULE)
        if self.session:
            self.session = 0
            self._on_lost(why)

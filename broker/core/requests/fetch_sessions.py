"""Fetch sessions at the server: who asks again for the same partitions need not name them (KIP-227,
docs/protocol.md 2.13).

A session remembers the partitions its owner asks for and what it was last told of each. A request in it
carries what changed on the asker's side; the answer carries only partitions that have something to say.

The cache holds a fixed number of sessions. Ids are derived from this life of the broker, so that a session of
a former life is not taken for one of this (its answer is FETCH_SESSION_ID_NOT_FOUND).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID
from zlib import crc32

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest, FetchResponse, FetchResult
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, SessionFacts

Key = tuple[UUID, int] | TopicPartition
"""By topic id where there is one: a topic that was deleted still has its place in the session."""


@dataclass(slots=True)
class _Known:
    """One partition of a session: what is asked for it, and what its owner was last told."""

    asked: FetchPartition
    high_watermark: int = -1
    log_start: int = -1


@dataclass(slots=True)
class FetchSession:
    id: int
    replica_id: int
    made_ms: float
    used_ms: float
    epoch: int = 1
    """Of the next request."""
    partitions: dict[Key, _Known] = field(default_factory=dict)
    """In the order in which they are served; who was served goes to the end."""

    @property
    def privileged(self) -> bool:
        return self.replica_id >= 0

    def facts(self, now_ms: float) -> SessionFacts:
        return SessionFacts(
            self.privileged, len(self.partitions), now_ms - self.made_ms, now_ms - self.used_ms
        )

    def take(self, request: FetchRequest) -> None:
        """Takes what the request adds, changes and forgets."""
        for part in request.partitions:
            known = self.partitions.get(_key(part))
            if known is None:
                self.partitions[_key(part)] = _Known(part)
            else:
                known.asked = part
        for tp, topic_id in request.forgotten:
            self.partitions.pop(tp if topic_id is None else (topic_id, tp.partition), None)

    def news(self, results: Iterable[FetchResult]) -> tuple[FetchResult, ...]:
        """The results that the owner does not know already, noted as known to it."""
        changed = []
        for result in results:
            key = _key(result)
            known = self.partitions.get(key)
            if known is None or not _tell(known, result):
                continue
            changed.append(result)
            if result.records:
                self.partitions[key] = self.partitions.pop(key)
        return tuple(changed)


class FetchSessions:
    """The cache. ``open`` before a fetch is served, ``close`` when its answer is known."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sessions: dict[int, FetchSession] = {}
        """Least recently used first."""
        self._made = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest) -> FetchRequest | ErrorCode:
        """The request with all partitions of its session, or why there is no such session."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return request
        session = self._sessions.get(request.session_id)
        if session is None or session.replica_id != request.replica_id:
            return ErrorCode.fetch_session_id_not_found
        if session.epoch != request.session_epoch:
            return ErrorCode.invalid_fetch_session_epoch
        session.take(request)
        session.epoch = self._ctx.rules.sessions.next_epoch(session.epoch)
        if not session.partitions:
            del self._sessions[session.id]
            return replace(request, session_id=NO_SESSION, session_epoch=FINAL_EPOCH)
        self._used(session)
        asked = tuple(
            known.asked if known.asked.tp.topic else self._named(known)
            for known in session.partitions.values()
        )
        return request.with_partitions(asked)

    def _named(self, known: _Known) -> FetchPartition:
        """Asked for by an id that meant nothing here yet: a follower may know a topic before its leader does
        (as Kafka's FetchSession.maybeResolveUnknownName)."""
        asked = known.asked
        topic = None if asked.topic_id is None else self._ctx.image.topics_by_id.get(asked.topic_id)
        if topic is not None:
            known.asked = asked = replace(asked, tp=TopicPartition(topic.name, asked.tp.partition))
        return asked

    def close(self, request: FetchRequest, results: tuple[FetchResult, ...]) -> FetchResponse:
        """``request`` as ``open`` gave it. A session that has gone on meanwhile (its owner gave this request
        up) must not be told things the owner will not hear."""
        if request.session_epoch == FINAL_EPOCH:
            return FetchResponse(results)
        if request.session_epoch == INITIAL_EPOCH:
            return FetchResponse(results, session_id=self._make(request, results))
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchResponse((), ErrorCode.fetch_session_id_not_found)
        if session.epoch != self._ctx.rules.sessions.next_epoch(request.session_epoch):
            return FetchResponse((), ErrorCode.invalid_fetch_session_epoch)
        return FetchResponse(session.news(results), session_id=session.id)

    # --- slots ---------------------------------------------------------------------------------------------

    def _used(self, session: FetchSession) -> None:
        session.used_ms = self._ctx.now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)

    def _make(self, request: FetchRequest, results: tuple[FetchResult, ...]) -> int:
        """The id of a new session, NO_SESSION when there is no room for it or nothing to remember."""
        if not request.partitions or not self._room(request):
            return NO_SESSION
        now = self._ctx.now_ms
        session = FetchSession(self._new_id(), request.replica_id, now, now)
        session.take(replace(request, forgotten=()))
        session.news(results)
        self._sessions[session.id] = session
        return session.id

    def _room(self, request: FetchRequest) -> bool:
        """Is there a slot, or one that can be made free?"""
        slots = self._ctx.config.max_incremental_fetch_session_cache_slots
        if len(self._sessions) < slots:
            return True
        rules, now = self._ctx.rules.sessions, self._ctx.now_ms
        spared = float(self._ctx.config.min_incremental_fetch_session_eviction_ms)
        newcomer = SessionFacts(request.replica_id >= 0, len(request.partitions), 0, 0)
        # Oldest use first; among those consumers before followers, then the smaller one.
        candidates = sorted(
            self._sessions.values(),
            key=lambda s: (s.facts(now).idle_ms <= spared, s.privileged, len(s.partitions), s.used_ms),
        )
        for session in candidates:
            if rules.may_evict(session.facts(now), newcomer, spared):
                del self._sessions[session.id]
                return True
        return False

    def _new_id(self) -> int:
        while True:
            self._made += 1
            session_id = crc32(b"%s %d" % (self._ctx.incarnation.bytes, self._made)) & 0x7FFFFFFF
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id


def _key(part: FetchPartition | FetchResult) -> Key:
    return part.tp if part.topic_id is None else (part.topic_id, part.tp.partition)


def _tell(known: _Known, result: FetchResult) -> bool:
    """Has the partition something to say? Then its owner knows it from now on."""
    news = (
        bool(result.records)
        or result.error is not NO_ERROR
        or result.diverging is not None
        or result.high_watermark != known.high_watermark
        or result.log_start != known.log_start
    )
    known.high_watermark, known.log_start = result.high_watermark, result.log_start
    if result.error is not NO_ERROR or result.diverging is not None:
        # When the error goes away, that is news. With a divergence a follower takes no high watermark
        # (KAFKA-14704): were it held for told, an idle partition's would stay behind for ever.
        known.high_watermark = -1
    return news

"""Followers fetch from their leaders (docs/protocol.md 2.11, K09, K13, K16, K51-K54).

One ``Fetcher`` per destination broker and slot; each has one current request for all its partitions, and a
fetch session that shortens it (``fetcher_session``). When partitions are added or come out of a pause while
that request is parked at the leader, a new one overtakes it on another channel; the answer to the old one is
still looked at, since every partition judges by itself whether an answer is to its present state.
"""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.epoch_probe import EpochProbe
from wrackline.broker.core.replication.fetching.fetcher_session import FetcherSession
from wrackline.broker.core.replication.fetching.following import Asked, Following, Outcome
from wrackline.broker.core.replication.fetching.range_probe import RangeProbe
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest, FetchResponse, Response
from wrackline.broker.model.types import NO_EPOCH, NO_LEADER, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR

_CHANNELS = 4
"""Overtaking requests take turns on these, so that connections are few and waiting behind a poll is rare."""
_SESSION_ERRORS = (ErrorCode.fetch_session_id_not_found, ErrorCode.invalid_fetch_session_epoch)


def slot_of(tp: TopicPartition, fetchers: int) -> int:
    """Returns which of a destination's fetchers has the partition: the same in every process (no hash seed in
    it)."""
    return crc32(str(tp).encode()) % fetchers


class Fetchers:
    """All of this broker's fetchers, and which partition is in which: in at most one (I16)."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._fetchers: dict[tuple[NodeId, int], Fetcher] = {}
        self._home: dict[TopicPartition, Fetcher] = {}
        self._resets = 0

    def add(self, replica: Replica) -> None:
        """Fetch from the replica's leader from its log end on; nothing without a leader."""
        if replica.leader_id == NO_LEADER:
            return
        slot = slot_of(replica.tp, self._ctx.config.num_replica_fetchers)
        key = replica.leader_id, slot
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = Fetcher(self._ctx, *key)
        self._resets += 1
        self._home[replica.tp] = fetcher
        self._ctx.trace(
            "fetch_tx",
            tp=str(replica.tp),
            to=replica.leader_id,
            leader_epoch=replica.leader_epoch,
            offset=replica.log.leo,
            last_epoch=replica.log.epochs.latest,
        )
        fetcher.add(Following(self._ctx, replica, self._resets))

    def remove(self, tp: TopicPartition) -> None:
        fetcher = self._home.pop(tp, None)
        if fetcher is not None:
            fetcher.remove(tp)

    def flushed(self, tp: TopicPartition) -> None:
        """Notes a flush: in mode every-write a follower fetches on, and so acknowledges, only what it has
        flushed (R01)."""
        fetcher = self._home.get(tp)
        if fetcher is not None:
            fetcher.due = True

    def of(self, tp: TopicPartition) -> tuple[NodeId, ...]:
        """The destinations of all fetchers that have the partition."""
        return tuple(key[0] for key, fetcher in self._fetchers.items() if fetcher.has(tp))

    def stop(self) -> None:
        for tp in list(self._home):
            self.remove(tp)

    def pump(self) -> None:
        """Sends, at the end of an event, what is to be sent."""
        for fetcher in self._fetchers.values():
            if fetcher.due:
                fetcher.pump()


class Fetcher:
    def __init__(self, ctx: Context, destination: NodeId, slot: int) -> None:
        self._ctx = ctx
        self._destination = destination
        self._slot = slot
        self._name = f"fetcher-{slot}"
        self._timer = f"fetcher:{destination}:{slot}"
        self._partitions: dict[TopicPartition, Following] = {}
        self._current: int | None = None
        """Correlation of the request that is to be answered before the next one is sent."""
        self._overtake = False
        self._newest = -1
        """Correlation of the newest request that was answered."""
        self._generation = 0
        self._pause_until = 0.0
        self._probe = RangeProbe(ctx, destination)
        self._epoch_probe = EpochProbe(ctx, destination)
        self._session = FetcherSession(
            ctx.rules.sessions, outlives_stay=ctx.rules.switches.session_outlives_stay
        )
        self.due = False

    def add(self, following: Following) -> None:
        self._partitions[following.replica.tp] = following
        # It may have been here before, and away when its answer came.
        self._session.not_taken()
        self._overtake = self.due = True
        if self._ctx.rules.switches.asks_epoch_first:
            self._epoch_probe.ask(following, self._woken)

    def remove(self, tp: TopicPartition) -> None:
        """The others may have waited for its flush, of which nobody will hear if its log is deleted."""
        del self._partitions[tp]
        self.due = True

    def has(self, tp: TopicPartition) -> bool:
        return tp in self._partitions

    # --- asking --------------------------------------------------------------------------------------------

    def pump(self) -> None:
        self.due = False
        if self._current is not None and not self._overtake:
            return
        if not self._partitions or self._waits_for_flush():
            return
        now = self._ctx.now_ms
        if now < self._pause_until:
            self._wake_at(self._pause_until)
            return
        ready = [f for f in self._partitions.values() if f.paused_until <= now and not f.probing]
        paused = [f.paused_until for f in self._partitions.values() if f.paused_until > now]
        if paused:
            self._wake_at(min(paused))
        if ready:
            self._send(ready)

    def _waits_for_flush(self) -> bool:
        """Tells whether the fetcher waits for a flush: what is fetched on is acknowledged, and in mode
        every-write that must be on disk first. One flush under way holds the whole fetcher, which makes a
        round of fetch, append, flush."""
        replicas = (following.replica for following in self._partitions.values())
        return any(replica.log.flushed < replica.log.leo and replica.every_write for replica in replicas)

    def _fetched_epoch(self, replica: Replica) -> int:
        rules = self._ctx.rules
        if not rules.switches.fetch_names_epoch:
            return NO_EPOCH
        return rules.truncation.fetched_epoch(replica.log.epochs.latest, replica.after_empty)

    def _wake_at(self, at_ms: float) -> None:
        self._ctx.set_timer(self._timer, at_ms, self._woken)

    def _woken(self) -> None:
        self._overtake = self.due = True

    def _send(self, ready: list[Following]) -> None:
        config = self._ctx.config
        if self._current is not None:
            self._generation += 1
            # On another connection: it may come in before the request it overtakes.
            self._session.reset()
        turn = self._generation % _CHANNELS
        channel = self._name if turn == 0 else f"{self._name}.{turn}"
        asked: dict[TopicPartition, Asked] = {}
        partitions = []
        for following in ready:
            replica = following.replica
            log = replica.log
            asked[replica.tp] = Asked(log.leo, replica.leader_epoch, following.reset, log.epochs.latest)
            partitions.append(
                FetchPartition(
                    tp=replica.tp,
                    fetch_offset=log.leo,
                    max_bytes=self._ctx.throttle.max_bytes(replica.tp, self._ctx.image),
                    current_leader_epoch=replica.leader_epoch,
                    last_fetched_epoch=self._fetched_epoch(replica),
                    log_start=log.log_start,
                    topic_id=replica.topic_id,
                )
            )
        wishes = self._session.ask(tuple(partitions))
        request = FetchRequest(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=1,
            max_bytes=config.replica_fetch_response_max_bytes,
            partitions=wishes.partitions,
            replica_id=config.node_id,
            broker_epoch=self._ctx.broker_epoch,
            session_id=wishes.session_id,
            session_epoch=wishes.session_epoch,
            forgotten=wishes.forgotten,
            session_topics=wishes.topics,
        )
        sent: list[int] = []
        timeout = min(
            config.request_timeout_ms,
            config.replica_fetch_wait_max_ms + max(1_000, config.replica_lag_time_max_ms // 2),
        )
        correlation = self._ctx.send(
            self._destination,
            channel,
            request,
            timeout,
            lambda response: self._answered(sent[0], asked, response),
        )
        sent.append(correlation)
        self._current, self._overtake = correlation, False

    # --- answers -------------------------------------------------------------------------------------------

    def _answered(
        self, correlation: int, asked: dict[TopicPartition, Asked], response: Response | None
    ) -> None:
        overtaken = correlation < self._newest
        self._newest = max(self._newest, correlation)
        current = correlation == self._current
        if current:
            self._current = None
            self.due = True
        if not isinstance(response, FetchResponse) or response.error is not NO_ERROR:
            if current:
                self._failed(response)
            return
        if current:
            self._session.answered(response)
        for result in response.partitions:
            following, question = self._partitions.get(result.tp), asked.get(result.tp)
            if following is None or question is None:
                continue
            if overtaken:  # its high watermark is an older one; the session does not tell the newer one again
                newest = max(result.high_watermark, following.replica.high_watermark)
                result = replace(result, high_watermark=newest)
            outcome = following.answered(question, result)
            if outcome is Outcome.ADVANCED:
                # Last in line next time, so that one busy partition cannot starve the others of bytes.
                self._partitions[result.tp] = self._partitions.pop(result.tp)
            elif outcome is Outcome.OUT_OF_RANGE:
                self._probe.ask(following, self._woken)
            elif outcome is Outcome.IGNORED and current:
                self._session.not_taken()

    def _failed(self, response: Response | None) -> None:
        """A lost session only needs a full request, at once; anything else needs time."""
        self._session.failed()
        lost = isinstance(response, FetchResponse) and response.error in _SESSION_ERRORS
        if not lost:
            self._pause_until = self._ctx.now_ms + self._ctx.config.replica_fetch_backoff_ms

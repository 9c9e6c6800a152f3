"""Following in the quorum (docs/protocol.md 2.12.4): fetch what comes next, cut where the logs part, commit
what the leader has committed."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.log import Entry
from wrackline.broker.core.quorum.roles import RETRY
from wrackline.broker.core.quorum.snapshot_fetching import RaftSnapshots
from wrackline.broker.model.effects import Exit, Trace
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    Response,
)
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID
from wrackline.broker.rules.leadership.raft import RaftRole

_FETCH_BYTES = 1 << 20


class RaftFollower(RaftSnapshots):
    def _fetch(self) -> None:
        """The next records, once those that came are safe (KAFKA-10533)."""
        held = self._rules.held(self.log.leo, self.log.flushed_to)
        if self._fetching or self.role is not RaftRole.FOLLOWER or held < self.log.leo:
            return
        self._fetching = True
        config, turn = self._ctx.config, self._turn
        asked = FetchPartition(
            tp=METADATA,
            fetch_offset=self.log.leo,
            max_bytes=_FETCH_BYTES,
            current_leader_epoch=self.epoch,
            last_fetched_epoch=self.log.last_epoch,
            log_start=self.log.log_start,
            topic_id=METADATA_TOPIC_ID,
            directory_id=self.state.directory_id,
        )
        wait_ms = config.quorum_fetch_wait_max_ms
        request = FetchRequest(wait_ms, 1, 4 * _FETCH_BYTES, (asked,), replica_id=self._ctx.me)

        def answered(response: Response | None) -> None:
            if turn == self._turn:
                self._fetching = False
                self._fetched(response)

        timeout_ms = min(wait_ms + config.quorum_request_timeout_ms, config.quorum_fetch_timeout_ms)
        self._ctx.ask(self.state.leader_id, request, timeout_ms, answered)

    def _fetched(self, response: Response | None) -> None:
        result = (
            response.partitions[0] if isinstance(response, FetchResponse) and response.partitions else None
        )
        if response is None:
            self._missed()
        if result is None:
            self._fetch_later()
            return
        leader = result.current_leader
        if leader is not None and self._learn(leader.leader_id, leader.leader_epoch):
            return
        if leader is None or leader.leader_epoch != self.epoch or result.error is not ErrorCode.none:
            self._fetch_later()
            return
        self._has_fetched, self._misses, self.leader_heard_ms = True, 0, self._ctx.now_ms
        self._wait(self._ctx.config.quorum_fetch_timeout_ms, self._ask_around)
        self._take(result)

    def _missed(self) -> None:
        """The connection to the leader is refused, cut or silent. Where the next try, at once, fails too,
        this voter asks around after a random pause as after an EndQuorumEpoch, and does not wait out the
        fetch timeout (docs/protocol.md 2.12.1). The pre-vote keeps a leader that answers a majority from
        being disturbed (KIP-996)."""
        self._misses += 1
        if self._has_fetched and self._misses > 1:
            self._has_fetched = False
            config = self._ctx.config
            pause_ms = self._ctx.chance.below(config.quorum_election_backoff_max_ms)
            # The other voters find out within a retry or two.
            self._wait(pause_ms + 2 * config.quorum_retry_backoff_ms, self._ask_around)

    def _fetch_later(self) -> None:
        self._ctx.wait(RETRY, self._ctx.config.quorum_retry_backoff_ms, self._fetch)

    def _take(self, result: FetchResult) -> None:
        out = self._ctx.out
        if result.snapshot is not None:
            self._download(result.snapshot)
            return
        if result.diverging is not None:
            own = self.log.end_of(result.diverging.epoch)
            to = self._truncation.on_divergence(own, result.diverging, self.log.leo)
            out.append(Trace("raft_truncate", {"to": to, "leo": self.log.leo, "epoch": self.epoch}))
            if to < self.log.high_watermark:
                out.append(
                    Exit(
                        1,
                        f"the leader of epoch {self.epoch} lacks records from offset {to} on "
                        f"that were committed (high watermark {self.log.high_watermark}): "
                        "committed metadata is lost (2.12.4)",
                    )
                )
                return
            self.log.truncate(to, out)
        elif result.records:
            try:
                self.log.take(bytes(result.records), out)  # type: ignore[arg-type]
            except ValueError as error:
                out.append(Trace("raft_bad_fetch", {"why": str(error)}, loud=True))
                self._fetch_later()
                return
        if result.diverging is None:
            entries = self.log.advance(min(result.high_watermark, self.log.leo))
            if entries:
                self._committed(entries)
        self._fetch()

    def _committed(self, entries: list[Entry]) -> None:
        self.committed += entries
        self._ctx.out.append(Trace("raft_hwm", {"hwm": self.log.high_watermark, "epoch": self.epoch}))
